"""Tokens a second of the local sampler."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import ModelSpec
from coterie.agents.sampling import Sampler, SamplingRequest
from coterie.datatypes import Sampling, derive_seed
from gpu.shapes import WORK, checkpoint, device, settle

_PROMPT = 128


def measure(shape: str, scratch: Path) -> dict[str, Any]:
    """Measure sampling of rows whose prompts differ, in tokens a second.

    The decoder on fused weights is measured where the sampler makes a copy for it, then the model's
    own forward pass.
    """
    spec = ModelSpec(str(checkpoint(shape, scratch / shape)), device=str(device()))
    handle = load_team({"a": spec}, set())["a"].handle
    work, figures = WORK[shape], {}
    for name, fused in (("fused", True), ("forward", False)):
        sampler = Sampler(handle, lambda ids: "", (), fused=fused)
        if fused and not sampler.fused:
            continue  # the model is too large for a copy
        new = work.new if fused else max(16, work.new // 8)
        sampler.sample(_requests(handle.vocab_size, 2, 8))
        settle()
        start = time.perf_counter()
        answers = sampler.sample(_requests(handle.vocab_size, work.sampled, new))
        seconds = time.perf_counter() - start
        figures[f"{name}_tokens_s"] = sum(len(answer.tokens) for answer in answers) / seconds
        figures[f"{name}_rows"] = work.sampled
    return figures


def _requests(vocabulary: int, rows: int, new: int) -> list[SamplingRequest]:
    rng = np.random.default_rng(0)
    return [
        SamplingRequest(rng.integers(0, vocabulary, _PROMPT), derive_seed(0, row), Sampling(new))
        for row in range(rows)
    ]
