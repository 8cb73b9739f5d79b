"""Whole runs on a GPU; two of them on a CPU as well, where the other rooms have all of them."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from coterie.cli.command_line import parse
from coterie.training.config.preflight import preflight
from coterie.training.session import open_session

WAYS = {
    "default": (),
    "float32": ("--agents.alice.dtype", "float32", "--agents.bob.dtype", "float32"),
    "adapters": ("--agents.bob.model", "tiny:alice"),
    "recomputed": ("--agents.alice.recompute", "always", "--agents.bob.recompute", "always"),
    "readers": ("--algo.distillation.likeliest", "8", "--algo.distillation.reader", "average"),
    "reference": ("--algo.kl-coefficient", "0.01", "--learner.minibatches", "2"),
    "entropy": ("--algo.entropy-coefficient", "0.01", "--learner.no-skip-idle-rows"),
}
ON_BOTH = ("default", "adapters")
GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: there is no GPU"),
]
RUNS = [pytest.param(way, "cpu", id=f"{way}-cpu") for way in ON_BOTH]
RUNS += [pytest.param(way, "cuda", id=f"{way}-gpu", marks=GPU) for way in WAYS]


def on(device: str, way: str) -> list[str]:
    flags = list(WAYS[way])
    for role in ("alice", "bob"):
        flags += [f"--agents.{role}.device", device]
        if way == "adapters":
            flags += [f"--agents.{role}.tuning", "lora"]
    return flags


@pytest.mark.parametrize(("way", "device"), RUNS)
def test_a_run_learns_what_it_samples_and_goes_on(
    opened: Callable[..., Any], train: Callable[..., Any], way: str, device: str
) -> None:
    session = opened(*on(device, way))
    assert {role.handle.device.type for role in session.team.loaded.values()} == {device}
    metrics = train(session)
    dtype = session.team.loaded["alice"].handle.dtype
    assert dtype == (torch.float32 if device == "cpu" or way == "float32" else torch.bfloat16)
    # What is sampled after an update has the learner's probabilities, up to rounding.
    bound = 1e-4 if dtype == torch.float32 else 5e-2
    for step in metrics:
        for role in ("alice", "bob"):
            assert step[f"learner/{role}/mismatch/mean"] < bound
            assert math.isfinite(step[f"learner/{role}/loss"])
            assert step[f"learner/{role}/skipped_steps"] == 0
    assert max(step["learner/alice/grad_norm"] for step in metrics) > 0
    assert max(step["learner/alice/distillation/rows"] for step in metrics) > 0
    settings = parse(["--resume", str(session.run.path), "--steps", "3"])
    session.__exit__()
    with open_session(settings, preflight(settings)) as again:
        for role, role_again in again.team.loaded.items():
            before = session.team.loaded[role].handle.parameters()
            for name, weight in role_again.handle.parameters().items():
                assert weight.device.type == device
                assert torch.equal(weight, before[name])
        assert train(again)[-1]["learner/alice/mismatch/mean"] < bound


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: there is no GPU")
def test_a_gpu_samples_in_float32_what_a_cpu_samples(opened: Callable[..., Any]) -> None:
    rows = []
    for device in ("cpu", "cuda"):
        batch = opened(*on(device, "float32")).sample(1)
        rows.append([row.tokens.tolist() for e in batch.episodes for row in e.trajectories])
    same = sum(ours == other for ours, other in zip(*rows))
    assert same > 0.9 * len(rows[0])  # rounding decides a few tokens
