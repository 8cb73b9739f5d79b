"""Evaluations out of one function of an episode, and the one of environments that bring none."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from coterie.datatypes import Episode, Problem, Trajectory, UserError
from coterie.envs import EnvSpec
from coterie.evaluation import Evaluation, Row, evaluation_of, per_episode
from coterie.evaluation.evaluation import Outcomes, Resampled
from coterie.evaluation.per_episode import EVALUATION as BY_REWARD
from coterie.evaluation.per_episode import measure
from coterie.train import main

ROLES = ("alice", "bob")


def trace(agent: str, status: str = "ok", info: Any = None, **terms: float) -> Trajectory:
    return Trajectory(
        agent=agent,
        role=agent.rpartition("_")[0],
        tokens=np.zeros(1, dtype=np.int64),
        mask=np.ones(1, dtype=np.bool_),
        logprobs=np.zeros(1, dtype=np.float32),
        reward=sum(terms.values()),
        reward_terms=terms,
        groups={},
        status=status,
        info=info or {},
    )


def episode(*traces: Trajectory, **info: Any) -> Episode:
    return Episode("p", 0, 0, "eval", traces, info)


def examined(evaluation: Evaluation, *episodes: Episode) -> Outcomes:
    problems = [Problem(f"p{place}", "?", "1") for place in range(len(episodes))]

    async def play(problems: Sequence[Problem], *, mode: str, replicas: int = 1) -> list[Episode]:
        assert (len(problems), mode, replicas) == (len(episodes), "eval", 1)
        return list(episodes)

    async def outcomes() -> Outcomes:
        return await evaluation.examine(play, problems, ROLES, None)

    return asyncio.run(outcomes())


def test_the_default_measures_rewards_terms_numbers_and_failures() -> None:
    metrics = measure(
        episode(
            trace("alice_0", final=1.0, own=0.5, info={"correct": True, "answer": "7"}),
            trace("alice_1", final=0.0, own=0.5, info={"correct": False, "bad": float("nan")}),
            trace("bob_0", right=1.0, info={"failed": False}),
            trace("bob_1", status="failed: deadline", right=0.0),
        )
    )
    assert metrics == {
        "reward/alice": 1.0,  # (1.5 + 0.5) / 2
        "reward/bob": 1.0,  # who failed is left out
        "reward/team": 1.0,
        "reward/alice/final": 0.5,
        "reward/alice/own": 0.5,
        "measured/alice/correct": 0.5,
        "failed/team": 0.25,
    }


def test_a_role_that_never_answered_has_no_reward() -> None:
    metrics = measure(episode(trace("alice_0", right=0.5), trace("bob_0", status="failed: x")))
    assert metrics["reward/bob"] is None
    assert metrics["reward/team"] == 0.5


def test_an_episode_without_a_trace_has_failed() -> None:
    assert measure(episode()) == {"reward/team": None, "failed/team": 1.0}


def test_an_agent_whose_contexts_made_several_rows_counts_once() -> None:
    # One seat won with three positions, the other lost with two.
    won, lost = trace("player_0", game=1.0), trace("player_1", game=-1.0)
    assert measure(episode(won, won, won, lost, lost))["reward/player"] == 0.0
    # Of two agents one failed, in whatever number of contexts.
    failed = trace("alice_0", status="failed: deadline")
    assert measure(episode(failed, failed, failed, won))["failed/team"] == 0.5


def test_the_lines_of_the_default() -> None:
    metrics = ["reward/alice", "reward/alice/own/er", "measured/bob/tries", "failed/team"]
    assert BY_REWARD.table(ROLES, dict.fromkeys(metrics)) == [
        Row("Reward alice", "reward/alice", "higher"),
        Row("Reward alice: own/er", "reward/alice/own/er", "higher"),
        Row("tries bob", "measured/bob/tries", "neither"),
        Row("Failed team", "failed/team", "lower"),
    ]


@pytest.mark.parametrize(
    ("moments", "shown"),
    [
        ([{"lost": 0.0, "right": 0.0}], ["right"]),
        ([{"lost": 0.0, "right": 0.0}, {"lost": 0.5}], ["lost", "right"]),
        ([{"lost": Resampled(0.0, np.zeros(2), 3)}, {"lost": None}], []),
        ([{"lost": Resampled(0.1, np.zeros(2), 3)}, {"lost": 0.0}], ["lost"]),
        ([{"lost": float("nan")}], ["lost"]),
    ],
)
def test_a_line_of_what_seldom_happens_is_left_out_where_it_never_did(
    moments: list[Any], shown: list[str]
) -> None:
    rare = per_episode(lambda episode: {}, row=lambda name: Row(name, name, rare=name == "lost"))
    assert [row.metric for row in rare.table(ROLES, *moments)] == shown


def test_means_over_the_problems_that_have_a_number() -> None:
    evaluation = per_episode(lambda played: played.info, better={"right": "higher"})
    outcomes = examined(
        evaluation,
        episode(right=True, tries=2),
        episode(right=np.bool_(False), tries=np.float32(3)),
        episode(right=None, late=float("nan")),
        episode(right=1),
    )
    assert outcomes == {
        "problems": ["p0", "p1", "p2", "p3"],
        "measured": {
            "right": [1.0, 0.0, None, 1.0],
            "tries": [2.0, 3.0, None, None],
            "late": [None, None, None, None],
        },
    }
    metrics = evaluation.estimate(outcomes, 200, 0)
    assert metrics["right"].value == pytest.approx(2 / 3)
    assert (metrics["tries"].value, metrics["tries"].count) == (2.5, 2)
    assert np.isnan(metrics["late"].value)
    low, high = metrics["right"].interval()
    assert 0 <= low < 2 / 3 < high <= 1
    assert evaluation.table(ROLES, {"right": 1}, {"right": 1, "tries": 1}) == [
        Row("right", "right", "higher"),
        Row("tries", "tries", "neither"),
    ]


def test_without_any_number_there_is_no_table() -> None:
    evaluation = per_episode(lambda played: {})
    assert evaluation.estimate(examined(evaluation, episode()), 10, 0) == {}


@pytest.mark.parametrize("value", ["7", float("inf"), [1.0]])
def test_what_is_no_number_is_named(value: Any) -> None:
    with pytest.raises(UserError, match=r"the evaluation measured 'right' as .*a finite number"):
        examined(per_episode(lambda played: {"right": value}), episode())


def fails(_: Episode) -> dict[str, float]:
    raise KeyError("alice_9")


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (fails, r"the evaluation of p: measure\(episode\) raised KeyError: 'alice_9'"),
        (lambda played: sys.exit(0), "raised SystemExit: 0"),
        (lambda played: None, "gave None; it must give a dictionary of numbers by name"),
        (lambda played: [1.0], r"gave \[1.0\]; it must give a dictionary"),
        (lambda played: {3: 1.0}, r"gave \{3: 1.0\}; it must give a dictionary"),
    ],
)
def test_a_measure_that_fails_is_one_sentence(function: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        examined(per_episode(function), episode())


def test_better_is_one_of_three_words() -> None:
    with pytest.raises(UserError, match="better is 'up'; say higher, lower or neither"):
        per_episode(lambda played: {}, better={"right": "up"})


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package's module with an evaluation, and with other things."""
    module = ModuleType("elsewhere")
    known = {"GOOD": per_episode(lambda played: {}), "BAD": 7}
    specs = {
        name: EnvSpec("e", 0, "coterie.envs.solo:SoloEnv", roles=("solver",), evaluation=path)
        for name, path in (("SPEC", "elsewhere:BAD"), ("LOST", "elsewhere:NOTHING"))
    }
    vars(module).update(known | specs)
    monkeypatch.setitem(sys.modules, "elsewhere", module)


@pytest.mark.usefixtures("elsewhere")
def test_an_environment_from_elsewhere_names_its_own() -> None:
    spec = EnvSpec("e", 0, "elsewhere:E", evaluation="elsewhere:GOOD")
    assert evaluation_of(spec) is sys.modules["elsewhere"].GOOD
    assert evaluation_of(EnvSpec("e", 0, "elsewhere:E")) is BY_REWARD


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ("elsewhere:SPEC", "(elsewhere:BAD) is a int; it must be an evaluation.Evaluation"),
        ("elsewhere:LOST", "(elsewhere:NOTHING) cannot be loaded: AttributeError"),
    ],
)
def test_a_broken_evaluation_is_refused_before_anything_is_loaded(
    env: str, sentence: str, refused: Any, tmp_path: Path
) -> None:
    flags = ("--agents.solver.model", "tiny:alice", "--run-dir", tmp_path / "run")
    assert f"the evaluation of env 'e' {sentence}" in refused(main, "--env", env, *flags)
    assert not (tmp_path / "run").exists()
