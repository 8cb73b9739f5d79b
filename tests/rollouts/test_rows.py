"""The training rows of an episode, token by token."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from .scripted import Threads, TwoTurns, answering, run


def test_a_trajectory_holds_the_exact_tokens_with_their_mask_and_logprobs() -> None:
    env = TwoTurns(loss_weight=0.8, learned_after=np.array([1]), correct=True)
    episode = run(env)
    a, b = episode.trajectories
    #                       P  P  a  a  E  a  a
    assert a.tokens.tolist() == [1, 2, 3, 4, 9, 3, 4]
    assert a.mask.tolist() == [False, False, True, True, False, True, True]
    assert a.logprobs.tolist() == [0, 0, -1, -2, 0, -1, -2]
    assert a.turns == ((2, 4), (5, 7))
    assert (a.reward, a.reward_terms) == (1.5, {"x": 1.0, "y": 0.5})
    assert (a.loss_weight, a.groups, a.info) == (0.8, {"problem": "p"}, {"correct": True})
    assert (a.weight_version, a.finish, a.status) == (4, ("stop", "stop"), "ok")
    assert a.learned_after is not None
    assert a.learned_after.tolist() == [1]
    assert b.learned_after is None
    # The environment says nothing of b: one term, grouped with its replicas.
    assert b.tokens.tolist() == [5, 6]
    assert (b.reward, b.reward_terms) == (2.0, {"reward": 2.0})
    assert b.groups == {"problem+role": "p1@11/b"}
    assert (episode.problem_id, episode.step, episode.mode) == ("p1", 3, "train")
    assert episode.info == {"solved": 1}
    assert (episode.gold, episode.kind) == ("2", "math")


def test_a_rewritten_context_starts_a_new_row() -> None:
    episode = run(TwoTurns(rewrite=True), {"a": answering(3), "b": answering(6)})
    rows = [row for row in episode.trajectories if row.agent == "a_0"]
    assert [row.tokens.tolist() for row in rows] == [[1, 2, 3], [7, 7, 3, 9, 3]]
    assert [np.flatnonzero(row.mask).tolist() for row in rows] == [[2], [4]]
    assert [row.reward for row in rows] == [1.5, 1.5]
    assert [row.member for row in episode.trajectories] == ["p1@11/0/a_0"] * 2 + ["p1@11/0/b_0"]


@pytest.mark.parametrize(
    ("branches", "rows"),
    [
        (True, [([1, 9, 2, 9], [1, 3]), ([5, 9], [1]), ([1, 9, 3, 9], [3])]),
        (False, [([1, 9], [1]), ([5, 9], [1]), ([1, 9, 2, 9], [3]), ([1, 9, 3, 9], [3])]),
    ],
)
def test_an_agent_goes_on_with_the_row_that_has_its_context(branches: bool, rows: Any) -> None:
    env = Threads([1], [5], [1, 9, 2], [1, 9, 3], branches=branches)
    trajectories = run(env, {"a": answering(9)}).trajectories
    assert [(r.tokens.tolist(), np.flatnonzero(r.mask).tolist()) for r in trajectories] == rows


def test_turns_that_are_not_learned_are_context() -> None:
    (row, _) = run(TwoTurns(trained_turns=[-1])).trajectories
    # 1 2 (3 4) 9 (3 4)
    assert np.flatnonzero(row.mask).tolist() == [2, 3, 5, 6]
    assert row.untrained == ((2, 4),)
    learned = row.as_learned()
    assert np.flatnonzero(learned.mask).tolist() == [5, 6]
    assert learned.logprobs[:5].tolist() == [0.0] * 5
    assert learned.tokens.tolist() == row.tokens.tolist()
    (everything, _) = run(TwoTurns(trained_turns=[0, 1])).trajectories
    assert everything.as_learned().mask.tolist() == everything.mask.tolist()
    (nothing, _) = run(TwoTurns(trained_turns=[])).trajectories
    assert not nothing.as_learned().trainable
    assert nothing.trainable  # its reward is compared all the same
    # After another context nothing of the turns is lost.
    behind = dataclasses.replace(row, learned_after=np.array([8])).as_learned()
    assert behind.tokens.tolist() == [8, 3, 4, 9, 3, 4]
    assert np.flatnonzero(behind.mask).tolist() == [4, 5]


def test_turns_are_counted_over_all_rows_of_an_agent_in_the_order_played() -> None:
    first, second, _ = run(TwoTurns(trained_turns=[1], rewrite=True)).trajectories
    assert not first.as_learned().trainable
    assert second.as_learned().mask.tolist() == second.mask.tolist()
    env = Threads([1], [5], [1, 9, 2], branches=True, trained_turns=[2])
    first, second = run(env, {"a": answering(9)}).trajectories
    assert np.flatnonzero(first.as_learned().mask).tolist() == [3]
    assert not second.as_learned().trainable


def test_rewards_of_turns_stand_in_every_row_of_their_agent() -> None:
    (row, other) = run(TwoTurns(turn_rewards=[0.5, 1])).trajectories
    assert (row.turn_rewards, row.turn_numbers) == ((0.5, 1.0), (0, 1))
    assert (other.turn_rewards, other.turn_numbers) == ((), ())
    assert "turn_rewards" not in row.info
    rows = run(TwoTurns(turn_rewards=[0.5, 1], rewrite=True)).trajectories[:2]
    assert [row.turn_rewards for row in rows] == [(0.5, 1.0)] * 2
    assert [row.turn_numbers for row in rows] == [(0,), (1,)]
