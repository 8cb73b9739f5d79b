"""What vLLM is told about one completion."""

from collections.abc import Sequence
from typing import Any

from vocabulary import Sampling


def sampling_params(sampling: Sampling, seed: int, eos_ids: Sequence[int]) -> Any:
    """vLLM's ``SamplingParams``: every end of a turn ends it, nothing is penalised."""
    from vllm import SamplingParams  # pyright: ignore[reportMissingImports]
    from vllm.sampling_params import RequestOutputKind  # pyright: ignore[reportMissingImports]

    stop = [s for s in sampling.stop if s]
    return SamplingParams(
        max_tokens=sampling.max_new_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        # A generator's seed is a signed number of 64 bits.
        seed=seed & (2**63 - 1),
        stop=stop or None,
        stop_token_ids=list(eos_ids) or None,
        include_stop_str_in_output=True,
        ignore_eos=True,
        detokenize=bool(stop),
        skip_special_tokens=False,
        # The sampled token's own.
        logprobs=0,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
