"""Each example as its page says: ``python train.py --env ...``, for a few steps."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie.train import main

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
    ("flags", "learners", "table"),
    [
        # Nobody says how it is evaluated: by what was paid and what was measured.
        (
            ("--env", "examples.debate:SPEC"),
            ("alice", "bob", "judge"),
            {"reward/team", "reward/alice/own", "measured/judge/correct", "failed/team"},
        ),
        (
            ("--env", "examples.solver_verifier:SPEC"),
            ("solver", "verifier"),
            {"solver right", "verdicts right", "tries"},
        ),
        (
            ("--env", "nim", "--agents.player.model", "tiny:alice"),
            ("player",),
            {"reward/player", "reward/team", "failed/team"},
        ),
    ],
)
def test_every_role_learns_and_is_seen_before_and_after(
    flags: tuple[str, ...],
    learners: tuple[str, ...],
    table: set[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps, summary = trained(tmp_path / "run", *flags)
    for role in learners:
        assert max(step[f"learner/{role}/grad_norm"] for step in steps) > 0
    assert steps[0]["credit/groups"] == 4 * len(learners)
    assert table <= set(summary["before"])
    assert summary["before"].keys() == summary["after"].keys()
    assert len(capsys.readouterr().out.split("\nheld out")[1].splitlines()) > len(table)
