"""Parts of all gates: plain sampling with transformers, shares, and bounds on them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from miniatures.recipe import Ask

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

_ROWS = 256


def asking(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerFast") -> Ask:
    """Return what samples one completion per prompt, at temperature 1 without filters; text without
    end mark. A completion that is cut off is not marked; its format shows it."""
    import torch

    @torch.inference_mode()
    def ask(prompts: Sequence[str], seed: int, most: int) -> list[str]:
        completions: list[str] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for start in range(0, len(prompts), _ROWS):
                texts = list(prompts[start : start + _ROWS])
                batch = tokenizer(texts, padding=True, return_tensors="pt")
                sampling = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
                ids = cast(Any, model).generate(**batch, max_new_tokens=most, **sampling)
                new = ids[:, batch["input_ids"].shape[1] :]
                completions += tokenizer.batch_decode(new, skip_special_tokens=True)
        return completions

    return ask


def share(outcomes: Sequence[bool]) -> float:
    """Return the fraction of true outcomes; 0 if there are none."""
    return sum(outcomes) / len(outcomes) if outcomes else 0.0


def complaints(measured: Mapping[str, Any], gate: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return a sentence per measurement that is outside its bounds, or NaN."""
    misses: list[str] = []
    for name, (least, most) in gate.items():
        first, _, second = name.partition(" - ")
        value = measured[first] - (measured[second] if second else 0.0)
        if not value >= least:
            misses.append(f"{name} {value:.3f} < {least}")
        elif not value <= most:
            misses.append(f"{name} {value:.3f} > {most}")
    return misses


def as_json(measured: Any) -> Any:
    """Convert measurements to plain data, rounded to the precision of the sample size."""
    if isinstance(measured, Mapping):
        return {key: as_json(value) for key, value in measured.items()}
    if isinstance(measured, list):
        return [as_json(value) for value in measured]
    return round(measured, 4) if isinstance(measured, float) else measured
