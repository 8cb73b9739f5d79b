"""Plain sampling with transformers, for the gate."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

_ROWS = 256


@torch.inference_mode()
def sample(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompts: Sequence[str],
    *,
    seed: int,
    max_new_tokens: int = 40,
) -> list[str]:
    """One completion a prompt, at temperature 1 with no filter; text without the end mark.

    A completion that does not end within ``max_new_tokens`` keeps no mark of it: its format tells.
    """
    completions: list[str] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for start in range(0, len(prompts), _ROWS):
            batch = tokenizer(
                list(prompts[start : start + _ROWS]), padding=True, return_tensors="pt"
            )
            ids = cast(Any, model).generate(
                **batch,
                max_new_tokens=max_new_tokens,
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
            )
            new = ids[:, batch["input_ids"].shape[1] :]
            completions += tokenizer.batch_decode(new, skip_special_tokens=True)
    return completions
