"""Each example as its page says: ``python train.py --env ...``, for a few steps."""

import json
from pathlib import Path
from typing import Any

import pytest

from train import main

pytestmark = pytest.mark.usefixtures("installed")

SMALL = (
    *("--steps", "3", "--rollout.problems-per-step", "4", "--rollout.replicas", "4"),
    *("--problems.held-out", "4", "--eval.resamples", "10"),
)


def trained(path: Path, *flags: str) -> tuple[list[dict[str, float]], dict[str, Any]]:
    """The metrics of each step, and the run's summary."""
    assert main([*flags, *SMALL, "--run-dir", str(path)]) == 0
    lines = (path / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], json.loads((path / "summary.json").read_text())


@pytest.mark.parametrize(
    ("flags", "learners"),
    [
        (("--env", "examples.debate:SPEC"), ("alice", "bob", "judge")),
        (("--env", "examples.solver_verifier:SPEC"), ("solver", "verifier")),
        (("--env", "nim", "--agents.player.model", "tiny:alice"), ("player",)),
    ],
)
def test_every_role_learns(
    flags: tuple[str, ...], learners: tuple[str, ...], tmp_path: Path
) -> None:
    steps, summary = trained(tmp_path / "run", *flags)
    for role in learners:
        assert max(step[f"learner/{role}/grad_norm"] for step in steps) > 0
        assert {f"reward/{role}", "reward/team"} <= set(summary["after"])
    assert steps[0]["credit/groups"] == 4 * len(learners)


def test_a_frozen_judge(tmp_path: Path) -> None:
    flags = ("--env", "examples.debate:SPEC", "--train-role", "alice", "bob", "--env.rounds", "1")
    steps, _ = trained(tmp_path / "run", *flags)
    assert "learner/judge/loss" not in steps[0]
    assert "reward/judge" in steps[0]
    episode = json.loads((tmp_path / "run" / "episodes.jsonl").read_text().splitlines()[0])
    turns = {row["agent"]: len(row["turns"]) for row in episode["trajectories"]}
    assert turns == {"alice_0": 1, "bob_0": 1, "judge_0": 1}
    assert {"final_correct", "own_correct"} <= set(episode["info"])
