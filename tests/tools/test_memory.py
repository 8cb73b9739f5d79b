"""What is measured beside TRL's update: the same update, and the memory that it really took."""

import argparse
import copy
import warnings

import numpy as np
import pytest
import torch

from speed import memory

LENGTHS = [6, 12, 9, 3]


@pytest.mark.slow  # TRL is long in coming
@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_both_sides_take_the_same_step(tuning: str) -> None:
    size = memory.SIZES["1m"]
    module = memory.build(size, tuning, "float32")
    made = memory.rows(size.vocabulary, 20, LENGTHS)
    other = copy.deepcopy(module)
    start = {name: p.detach().clone() for name, p in module.named_parameters() if p.requires_grad}
    memory.ours(module, tuning, "always")(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what TRL says when it is imported and begins
        memory.trl(other, 20)(made)
    went = [
        torch.cat([(dict(one.named_parameters())[n] - p).flatten() for n, p in start.items()])
        for one in (module, other)
    ]
    assert went[0].norm() > 0
    # AdamW's first step is nearly the sign of a gradient, and some are nearly 0.
    assert torch.cosine_similarity(*went, dim=0) > 0.98


def test_a_peak_is_seen_above_what_is_there_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def update(made: list) -> None:
        np.ones(len(made) * 10 * memory.MIB, np.uint8)

    monkeypatch.setattr(memory, "ours", lambda *_: update)
    options = argparse.Namespace(
        sizes=["1m"], tunings=["lora"], dtype="float32", recompute="auto", threads=1
    )
    options.prompt, options.answers, options.rows = 4, [2, 4], 8
    threads = torch.get_num_threads()
    found = memory.measure("ours", options)
    torch.set_num_threads(threads)
    # 8 rows of 10 MiB, less the gradients of an adapter of rank 16 (.1 MiB); none by the clock.
    assert found["peak"] == pytest.approx(80, abs=3)
    assert 0 < found["cpu"] < 5
