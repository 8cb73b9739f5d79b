"""Rereading after the hint of another problem, on a step that is made by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.datatypes import Episode, Problem, Trajectory
from coterie.envs.bytes_codec import BytesCodec
from coterie.training.batch import StepBatch
from evidence.other_hints import ASKED, OFFERS, family, main, other_hint, with_other_hints

# Alice's peer is right in that share of its traces; it has nothing on the third.
STEP = (
    ("1 + 2 =", "one", 1.0),
    ("3 @ 4 =", "two", 1.0),
    ("5 - 6 =", None, 0.0),
    ("7 - 8 =", "four", 1 / 3),
    ("9 # 1 =", "five", 2 / 3),
    ("2 + 3 =", "six", 2 / 3),
)
CODEC = BytesCodec()


def trajectory(role: str, question: str, read: bool) -> Trajectory:
    before = np.array(CODEC.open("own hint")) if read else None
    return Trajectory(
        agent=f"{role}_0",
        role=role,
        tokens=np.array(CODEC.open(question)),
        mask=np.zeros(len(question), bool),
        logprobs=np.zeros(len(question), np.float32),
        reward=0.0,
        reward_terms={},
        groups={},
        reread_after=before,
    )


def step(read: set[int]) -> StepBatch:
    """Alice's traces of the problems ``read`` are to be read again, bob's of none."""
    episodes = [
        Episode(
            f"chains:{place}",
            seed=0,
            step=1,
            mode="train",
            trajectories=(
                trajectory("alice", question, place in read),
                trajectory("bob", question, False),
            ),
            info={
                OFFERS: {"alice": [hint, share]} if hint else {},
                ASKED: [question, "number", family(problem(question))],
            },
        )
        for place, (question, hint, share) in enumerate(STEP)
    ]
    return StepBatch(episodes, [row for e in episodes for row in e.trajectories], rounds=1)


def problem(question: str, **meta: str) -> Problem:
    return Problem("chains:1", question, "", "number", meta=meta)


def context(role: str, problem: Problem, hint: str) -> Any:
    assert problem.kind == "number"  # of which the prompt speaks
    return np.array(CODEC.open(f"{role}|{problem.question}|{hint}"))


def test_families() -> None:
    assert family(problem("1 + 2 - 3 =")) == "+-"
    assert family(problem("1 @ 2 # 3 =")) == "@#"
    assert family(problem("1 + α4 =")) == "+- names"
    # Word problems of a file have no signs.
    assert family(problem("Ann has two cows and buys one.", category="plus")) == "plus"


@pytest.mark.parametrize(
    ("place", "same", "cross"),
    [
        # The next + - problem with a sure hint is the last: the third has none, the fourth a lucky
        # one. The next @ # problem is the second.
        (0, "six", "two"),
        # The others of + - are the first and the last, round about.
        (5, "one", "two"),
        (3, "six", "five"),
        (1, "five", "six"),
        (4, "two", "six"),
    ],
)
def test_the_hint_is_of_another_problem_of_that_family(place: int, same: str, cross: str) -> None:
    episodes = step({place}).episodes
    assert other_hint(episodes, place, "alice", "other-same") == same
    assert other_hint(episodes, place, "alice", "other-cross") == cross
    assert other_hint(episodes, place, "alice", "own") == STEP[place][1]


def test_a_lucky_hint_is_better_than_none() -> None:
    """Of + - there is another with a third right, of @ # nothing."""
    episodes = [episode for place, episode in enumerate(step(set()).episodes) if place in (2, 3)]
    assert other_hint(episodes, 0, "alice", "other-same") == "four"
    assert other_hint(episodes, 0, "alice", "other-cross") is None
    # The only hint is the problem's own.
    assert other_hint(episodes, 1, "alice", "other-same") is None


def test_only_rows_that_are_read_again_get_another_context() -> None:
    batch = step({0, 4})
    changed, counts = with_other_hints(batch, "other-same", context)
    read = {row.tokens.tobytes(): row.reread_after for row in changed.rows if row.role == "alice"}
    assert [
        None if (after := read[row.tokens.tobytes()]) is None else CODEC.decode(after)
        for row in batch.rows
        if row.role == "alice"
    ] == ["alice|1 + 2 =|six", None, None, None, "alice|9 # 1 =|two", None]
    assert counts == {"alice": (2, 2)}
    # Credit finds a row by its identity, in episodes as in rows.
    rows = [row for episode in changed.episodes for row in episode.trajectories]
    assert {*map(id, rows)} == {*map(id, changed.rows)}


def test_a_row_without_another_hint_is_not_read_again() -> None:
    batch = step({1})
    alone = StepBatch(batch.episodes[1:3], [*batch.episodes[1].trajectories], rounds=1)
    changed, counts = with_other_hints(alone, "other-same", context)
    assert [row.reread_after for row in changed.rows] == [None, None]
    assert counts == {"alice": (1, 0)}


@pytest.mark.slow
def test_with_the_own_hint_it_is_core_teaching(tmp_path: Path) -> None:
    """Two steps of both programs end in the same weights; with another hint they do not."""
    from coterie.train import main as train

    flags = ("--algo", "gspo", "--steps", "2", "--eval.no-enabled", "--threads", "1")
    other = ("--env", "evidence.other_hints:SPEC", *flags)
    assert train(("--env", "core-teaching", *flags, "--run-dir", str(tmp_path / "core"))) == 0
    for name in ("own", "other-same"):
        assert main((*other, "--env.hint-of", name, "--run-dir", str(tmp_path / name))) == 0
    weights = {
        name: (tmp_path / name / "final/alice/model.safetensors").read_bytes()
        for name in ("core", "own", "other-same")
    }
    assert weights["own"] == weights["core"] != weights["other-same"]
