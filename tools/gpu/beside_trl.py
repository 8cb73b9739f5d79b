"""One update of the same rows by this project's learner and by TRL's GRPOTrainer.

Both compute in bfloat16 from the same random weights: full weights are held in float32 (TRL's
within ``torch.autocast``), an adapter in float32 on a base in bfloat16. TRL computes activations
twice, here ``auto`` decides.
"""

import gc
import time
import warnings
from typing import Any

import numpy as np
import torch

from coterie.agents.models.blocks import compute_in
from coterie.agents.models.lora import add_adapter
from coterie.agents.models.spec import LoraSpec
from gpu.arithmetic import ceiling
from gpu.peak import most_taken
from gpu.shapes import device, make, settle
from gpu.update import ours, rows, trl

_ROWS = {"small": (8, 16, 8), "0.5b": (32, 256, 512), "3b": (16, 256, 512)}
"""Rows of one group, tokens of their prompt, and of the longest answer."""


def measure(shape: str, tuning: str) -> dict[str, Any]:
    """Seconds and bytes beside weights and moments, of each side; the faster of two updates."""
    warnings.simplefilter("ignore")
    count, prompt, longest = _ROWS[shape]
    figures: dict[str, Any] = {"rows": count, "ceiling_tflops": ceiling() / 1e12}
    for side in ("ours", "trl"):
        wide = torch.float32 if tuning == "full" else torch.bfloat16
        module: Any = make(shape, wide)
        vocabulary = module.config.vocab_size
        made = rows(vocabulary, prompt, _lengths(count, longest))
        figures["tokens"] = sum(len(row.tokens) for row in made)
        if tuning == "lora":
            module = add_adapter(module, "alice", LoraSpec(), 0)
        if side == "ours":
            if tuning == "full":
                compute_in(module, torch.bfloat16)
            update = ours(module, tuning, "auto", torch.bfloat16)
        else:
            update = trl(module, prompt, torch.bfloat16)
        update(rows(vocabulary, prompt, [4, 4]))
        seconds = []
        with most_taken(device()) as taken:
            for _ in range(2):
                settle()
                start = time.perf_counter()
                update(made)
                settle()
                seconds.append(time.perf_counter() - start)
        figures[f"{side}_s"] = min(seconds)
        figures[f"{side}_gib"] = sum(taken) / 2**30
        del module, update
        gc.collect()
        torch.cuda.empty_cache()
    figures["times_as_fast"] = figures["trl_s"] / figures["ours_s"]
    return figures


def _lengths(count: int, longest: int) -> list[int]:
    return [int(length) for length in np.linspace(longest / 4, longest, count)]
