"""Shared parts of all gates: plain sampling with transformers, shares, and bounds on them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
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
    """Sample one completion per prompt, at temperature 1 without filters; text without end mark.

    A completion that does not end within ``max_new_tokens`` is not marked; its format shows it.
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


def share(outcomes: Sequence[bool]) -> float:
    """Return the fraction of true outcomes; 0 if there are none."""
    return sum(outcomes) / len(outcomes) if outcomes else 0.0


def missed(*bounds: tuple[str, float, float, float]) -> list[str]:
    """Return a sentence per (name, value, least, most) whose value is outside, or NaN."""
    misses: list[str] = []
    for name, value, least, most in bounds:
        if not value >= least:
            misses.append(f"{name} {value:.3f} < {least}")
        elif not value <= most:
            misses.append(f"{name} {value:.3f} > {most}")
    return misses


def as_json(measured: Any) -> Any:
    """Convert measurements to plain data, rounded to the precision of the sample size."""
    if is_dataclass(measured) and not isinstance(measured, type):
        measured = asdict(measured)
    if isinstance(measured, Mapping):
        return {key: as_json(value) for key, value in measured.items()}
    if isinstance(measured, list):
        return [as_json(value) for value in measured]
    return round(measured, 4) if isinstance(measured, float) else measured
