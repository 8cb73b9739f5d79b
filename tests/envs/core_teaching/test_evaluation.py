"""The evaluation of core-teaching, on outcomes written out by hand."""

import asyncio
import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from coterie.datatypes import Episode, Problem, Trajectory
from coterie.envs.core_teaching.evaluation import EVALUATION, estimate, examine, rows
from coterie.envs.core_teaching.settings import CoreTeachingSettings
from coterie.evaluation.run_table import comparison

from .scripted import CORE

# Four problems, two cold samples a role.
#            alice    bob      team@1 (1 - (1-a)(1-b))   team@2 (any)
#   p0       1 0      0 0      1 - .5 * 1  = .5           1
#   p1       0 0      1 1      1                          1
#   p2       0 0      0 0      0                          0
#   p3       1 1      1 0      1                          1
#   pass@1   .375     .375     .625                       .75
#   pass@2   .5       .5
OUTCOMES: dict[str, Any] = {
    "problems": ["p0", "p1", "p2", "p3"],
    "correct": {
        "alice": [[1, 0], [0, 0], [0, 0], [1, 1]],
        "bob": [[0, 0], [1, 1], [0, 0], [1, 0]],
    },
    # eligible, rescued, controls, right controls, helped, hurt, neutral
    "hints": [
        [2, 1, 0, 0, 1, 0, 1],
        [1, 1, 1, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
        [1, 0, 1, 1, 0, 1, 1],
    ],
    "leaked": [0.0, 0.5, None, 1.0],
}


def test_every_metric_of_a_case_worked_out_by_hand() -> None:
    metrics = {name: m.value for name, m in estimate(OUTCOMES, 100, 0).items()}
    assert metrics == pytest.approx(
        {
            "pass@1/alice": 0.375,
            "pass@1/bob": 0.375,
            "pass@2/alice": 0.5,
            "pass@2/bob": 0.5,
            "team_pass@1": 0.625,
            "team_pass@2": 0.75,
            "both_wrong@1": 0.375,
            "both_wrong@2": 0.25,
            "gain@1": 0.25,
            "gain@2": 0.25,
            "rescue_rate": 2 / 4,
            "retry_rate": 1 / 2,
            "rescue_advantage": 0.0,
            "hint_lift": (2 - 1) / 5,
            "leak_rate": 0.5,
        }
    )


def test_rates_count_their_cases_and_means_their_problems() -> None:
    metrics = estimate(OUTCOMES, 100, 0)
    assert metrics["rescue_rate"].count == 4
    assert metrics["retry_rate"].count == 2
    assert metrics["pass@1/alice"].count == 4
    assert metrics["leak_rate"].count == 3


def test_resamples_pair_up_problem_by_problem() -> None:
    # The same outcomes twice differ by exactly nothing on every resample.
    metrics, again = estimate(OUTCOMES, 500, 3), estimate(OUTCOMES, 500, 3)
    for name, first in metrics.items():
        np.testing.assert_array_equal(first.replicates, again[name].replicates)
    # The mean of .5, 1, 0, 1 over resamples of four problems has standard deviation
    # sqrt(.171875 / 4) = .2073.
    spread = estimate(OUTCOMES, 20_000, 1)["team_pass@1"].replicates.std()
    assert spread == pytest.approx(0.2073, abs=0.005)


def test_what_failed_to_answer_is_missing_and_not_wrong() -> None:
    outcomes = json.loads(json.dumps(OUTCOMES))
    outcomes["correct"]["alice"][1] = [None, 1]
    metrics = estimate(outcomes, 10, 0)
    assert metrics["pass@1/alice"].value == pytest.approx((0.5 + 1 + 0 + 1) / 4)
    # Two samples of p1 do not exist.
    assert metrics["pass@2/alice"].count == 3


def _episode(problem: str, mode: str) -> Episode:
    def row(agent: str, **info: Any) -> Trajectory:
        status = info.pop("status", "ok")
        empty = np.zeros(0)
        return Trajectory(
            agent=agent,
            role=agent[:-2],
            tokens=empty.astype(np.int64),
            mask=empty.astype(bool),
            logprobs=empty.astype(np.float32),
            reward=0.0,
            reward_terms={},
            groups={},
            status=status,
            info={"correct": False} | info,
        )

    traces = (row("a_0", correct=True), row("a_1", status="failed: x"), row("b_0"))
    counts = {"eligible": 1, "rescued": 1, "controls": 2, "controls_correct": 1, "helped": 1}
    info = counts | {"hurt": 0, "neutral": 0, "hinted": 2, "leaked": 1}
    return Episode(problem, 0, 0, mode, traces, info if mode == "probe" else {})


def _examined(settings: CoreTeachingSettings) -> dict[str, Any]:
    async def play(problems: Sequence[Problem], *, mode: str) -> list[Episode]:
        return [_episode(problem.id, mode) for problem in problems]

    return asyncio.run(examine(play, [Problem("p", "q", "g")], ("a", "b"), settings))


def test_outcomes_are_read_off_the_episodes() -> None:
    assert _examined(CORE) == {
        "problems": ["p"],
        "correct": {"a": [[1, None]], "b": [[0]]},
        "hints": [[1, 1, 2, 1, 1, 0, 0]],
        "leaked": [0.5],
    }


def test_without_a_second_trace_there_is_nothing_to_probe() -> None:
    outcomes = _examined(CoreTeachingSettings(k_cold=1, k_hinted=0))
    assert outcomes["hints"] == []
    metrics = estimate(outcomes, 10, 0)
    assert np.isnan(metrics["rescue_rate"].value)
    assert metrics["pass@1/a"].value == 1.0


@pytest.mark.parametrize("alone", [{}, {"pass@1/alice": 0.5801}])
def test_the_table_fits_a_terminal_and_marks_what_changed(alone: dict[str, float]) -> None:
    better = json.loads(json.dumps(OUTCOMES))
    better["correct"]["alice"] = [[1, 1]] * 4
    first, last = estimate(OUTCOMES, 200, 0), estimate(better, 200, 0)
    out = io.StringIO()
    console = Console(file=out, width=80)
    console.print(comparison(first, last, rows(("alice", "bob")), alone))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    (alice,) = [line for line in lines if line.startswith("Pass@1 alice")]
    assert ".375 [" in alice
    assert lines[0].endswith("alone") == alice.endswith("  .580") == bool(alone)
    assert "1.000 [1.00 1.00]" in alice
    assert "+.625 [" in alice
    # One line a metric: nothing is wrapped.
    assert len(lines) == 1 + len(rows(("alice", "bob")))
    assert {row.metric for row in EVALUATION.rows(("alice", "bob"))} <= set(first)
