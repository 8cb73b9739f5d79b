"""Imitation before reward by learners in processes of their own."""

import json
from pathlib import Path

import pytest

from coterie import train

FLAGS = (
    *("--steps", "1", "--problems.held-out", "4", "--rollout.problems-per-step", "4"),
    *("--warmup.steps", "2", "--warmup.problems-per-step", "4", "--eval.resamples", "10"),
    *("--algo.kl-coefficient", "0.1", "--threads", "1"),
)


@pytest.mark.slow
def test_learners_elsewhere_imitate_the_same(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert train.main([*FLAGS, "--run-dir", str(here)]) == 0
    apart = ("--agents.bob.learner-devices", "2", "--cluster.cpus", "0.25")
    assert train.main([*FLAGS, *apart, "--run-dir", str(there)]) == 0
    for step, other_step in zip(_steps(here), _steps(there), strict=True):
        assert step.keys() == other_step.keys()
        # Two ranks add up in another order.
        assert other_step == pytest.approx(step, rel=1e-3, abs=1e-5)
    # The reference of the divergence is the warmed-up model there, too.
    [step] = [json.loads(line) for line in (there / "metrics.jsonl").read_text().splitlines()]
    assert step["learner/bob/kl"] == pytest.approx(0, abs=1e-6)


def _steps(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "warmup.jsonl").read_text().splitlines()]
