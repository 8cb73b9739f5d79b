"""The spec of an engine, and vLLM's arguments for it and for a completion."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coterie.agents.models.spec import CHANGE_BASE
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import Sampling, UserError

Transfer = Literal["ipc", "nccl"]
"""vLLM's backends of weight transfer: ``ipc`` on a shared GPU, ``nccl`` between GPUs."""


@dataclass(frozen=True)
class EngineSpec:
    """The model and the options of an engine."""

    model: str
    """Folder or hub id."""
    tokenizer: str
    """Folder or hub id."""
    dtype: str
    """``float32``, ``bfloat16`` or ``float16``."""
    device: str
    """``cpu``, or ``cuda:N``."""
    context: int
    revision: str | None = None
    tokenizer_revision: str | None = None
    trust_remote_code: bool = False
    lora_rank: int = 0
    """Largest rank of adapters; 0: there are none."""
    adapters: int = 0
    """Number of roles with an adapter."""
    seed: int = 0
    tensor_parallel: int = 1
    """Number of GPUs, from ``device`` on."""
    transfer: Transfer = "ipc"
    """The backend of weight transfer on a GPU, unless weights come through files."""

    @property
    def on_gpu(self) -> bool:
        """Whether the engine runs on a GPU."""
        return self.device.startswith("cuda")


def engine_arguments(spec: EngineSpec, settings: VllmSettings) -> dict[str, Any]:
    """Return the fields of vLLM's ``AsyncEngineArgs`` for ``spec``."""
    arguments: dict[str, Any] = {
        "model": spec.model,
        "tokenizer": spec.tokenizer,
        "revision": spec.revision,
        "tokenizer_revision": spec.tokenizer_revision,
        "trust_remote_code": spec.trust_remote_code,
        "dtype": spec.dtype,
        "seed": spec.seed % 2**31,
        "max_model_len": spec.context,
        "tensor_parallel_size": spec.tensor_parallel,
        "max_num_seqs": settings.max_sequences,
        "enforce_eager": settings.eager or not spec.on_gpu,
        "gpu_memory_utilization": settings.gpu_memory,
        "enable_sleep_mode": spec.on_gpu and settings.sleep_level > 0,
        # Report the probabilities of sampling, after temperature.
        "logprobs_mode": "processed_logprobs",
        # A teacher may be asked for any number of likeliest tokens.
        "max_logprobs": -1,
        # Ignore the checkpoint's generation settings.
        "generation_config": "vllm",
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
    }
    if not spec.on_gpu:
        # Chunked prefill draws a random number too many and winds the generator back, which
        # generators on a CPU cannot do.
        arguments |= {
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(spec.context, 8192),
        }
        if os.environ.get("VLLM_CPU_OMP_THREADS_BIND") == "nobind":
            # The name "uni" would mean "mp" here: another process, which binds threads to cores,
            # and a queue in shared memory for every token.
            arguments["distributed_executor_backend"] = (
                "vllm.v1.executor.uniproc_executor.UniProcExecutor"
            )
    if spec.lora_rank:
        # For every role the current version and the next one.
        arguments |= {
            "enable_lora": True,
            "max_lora_rank": supported_rank(spec.lora_rank),
            "max_loras": 2 * spec.adapters,
        }
    if spec.on_gpu:
        from vllm.config import WeightTransferConfig  # pyright: ignore[reportMissingImports]

        arguments["weight_transfer_config"] = WeightTransferConfig(backend=spec.transfer)
    return arguments


def sampling_params(sampling: Sampling, seed: int, eos_ids: Sequence[int]) -> Any:
    """Return vLLM's ``SamplingParams``: every id that ends a turn stops, without penalties."""
    # Without vLLM pyright takes this folder for it.
    from vllm import SamplingParams  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]
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
        # Only the sampled token's.
        logprobs=0,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def reading_params(likeliest: int) -> Any:
    """Return vLLM's ``SamplingParams`` to score a prompt: its own tokens and the ``likeliest`` ones
    at each place."""
    from vllm import SamplingParams  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]
    from vllm.sampling_params import RequestOutputKind  # pyright: ignore[reportMissingImports]

    return SamplingParams(
        max_tokens=1,
        temperature=0.0,
        prompt_logprobs=likeliest,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


PLAIN = "plain LoRA adapters: matrices of one rank and alpha, without DoRA, biases, whole modules"
_ODD = (
    "use_dora", "lora_bias", "modules_to_save", "trainable_token_indices", "rank_pattern",
    "alpha_pattern", "layer_replication", "alora_invocation_tokens",
)  # fmt: skip


def is_plain(config: Mapping[str, Any]) -> bool:
    """Whether vLLM computes an adapter as peft does. It ignores the ranks and alphas of single
    layers (0.32), and changes of the base.

    Args:
        config: the content of ``adapter_config.json``.
    """
    start = str(config.get("init_lora_weights")).lower()
    odd = any(config.get(name) for name in _ODD) or config.get("bias", "none") != "none"
    return not odd and not start.startswith(CHANGE_BASE)


def supported_rank(rank: int) -> int:
    """The smallest rank of at least ``rank`` that vLLM supports."""
    for size in (8, 16, 32, 64, 128, 256, 320, 512):
        if rank <= size:
            return size
    raise UserError(f"vLLM takes LoRA ranks up to 512, not {rank}")
