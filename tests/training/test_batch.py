"""What one training step takes of what was played."""

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from itertools import count, islice
from typing import Any

import numpy as np
import pytest

from coterie.algorithms import Algorithm, get
from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.role_algorithms import RoleAlgorithms as team
from coterie.datatypes import Episode, Reading, Trajectory, UserError
from coterie.problems.curriculum import Played
from coterie.training.batch import (
    Read,
    StepBatch,
    measured,
    sample_batch,
    with_divergences,
)

from . import rows

TAUGHT = Distillation(beta=1.0, fade=0.5, teacher="another")
DAPO = get("dapo")
BY_TEACHER = dataclasses.replace(DAPO, distillation=TAUGHT)


def row(agent: str, problem: str, reward: float, sampled: int = 2) -> Trajectory:
    role = agent.rpartition("_")[0]
    groups = {"problem": problem, "problem+role": f"{problem}/{role}"}
    paid = {"reward": reward, "reward_terms": {"x": reward}}
    return rows.row(role, sampled, agent=agent, groups=groups, **paid)


def episode(problem: str, *rows: Trajectory, seed: int = 0) -> Episode:
    return Episode(problem, seed, 1, "train", rows)


def paid(problem: str, rewards: dict[str, float]) -> Episode:
    """An episode of these agents."""
    return episode(problem, *(row(agent, problem, r) for agent, r in rewards.items()))


async def unread(rows: Sequence[Trajectory]) -> dict[int, Reading | None]:
    """No role has a teacher."""
    return {}


def step(
    play: Callable[[int], list[Episode]],
    algorithms: team | Algorithm,
    problems: int = 1,
    *,
    key: str = "problem+role",
    learners: Sequence[str] = ("alice",),
    read: Read = unread,
) -> tuple[StepBatch, list[int]]:
    """The batch, and how many problems each round asked for."""
    rounds: list[int] = []

    async def played(count: int) -> list[Episode]:
        rounds.append(count)
        return play(count)

    algorithms = algorithms if isinstance(algorithms, team) else team(algorithms)
    batch = asyncio.run(sample_batch(played, read, algorithms, key, problems, learners))
    return batch, rounds


def sampled(
    algorithm: Algorithm,
    problems: int,
    rewards: Callable[[int], dict[str, float]],
    learners: tuple[str, ...] = ("alice",),
) -> tuple[StepBatch, list[int]]:
    """:func:`step`, in which ``rewards`` is told how many problems its round played before."""
    rounds = count(1)

    def play(problems: int) -> list[Episode]:
        number = next(rounds)
        return [paid(f"p{number}.{place}", rewards(place)) for place in range(problems)]

    return step(play, algorithm, problems, learners=learners)


def twenty_informative(place: int) -> dict[str, float]:
    return {"alice_0": 0.0, "alice_1": float(place < 20)}


def test_a_step_trains_on_its_number_of_problems() -> None:
    batch, rounds = sampled(DAPO, 32, twenty_informative)
    assert rounds == [32, 32]
    groups = list(dict.fromkeys(trajectory.groups["problem"] for trajectory in batch.rows))
    # The first twenty of the first round, and twelve of the twenty of the second.
    assert groups == [f"p1.{i}" for i in range(20)] + [f"p2.{i}" for i in range(12)]
    assert len(batch.rows) == 64
    assert len(batch.episodes) == 64


def test_a_small_set_fills_a_step_with_problems_that_come_again() -> None:
    names = [f"p{place}" for place in range(3)]

    def play(count: int) -> list[Episode]:
        # A problem of which the role learns nothing is among them.
        return [
            episode(n, row("alice_0", n, 0.0), row("alice_1", n, float(n != "p2")), seed=seed)
            for seed, n in enumerate((names * count)[:count])
        ]

    batch, _ = step(play, DAPO, 6)
    # Four of the six episodes of a round inform; the second round has the two that lack.
    assert batch.rounds == 2
    assert {row.groups["problem"] for row in batch.rows} == {"p0", "p1"}
    assert len(batch.rows) == 2 * (4 + 2)


def test_surplus_draws_of_a_problem_are_dropped() -> None:
    # Rewards of the problem differ in every draw but the first.
    draws = [
        episode("p", row("alice_0", "p", 1.0), row("alice_1", "p", reward), seed=seed)
        for seed, reward in enumerate((1.0, 0.5, 0.25, 0.0))
    ]
    batch, rounds = step(lambda _: draws, dataclasses.replace(DAPO, generation_batch=4), 2)
    assert rounds == [4]
    assert [row.reward for row in batch.rows] == [1.0, 0.5, 1.0, 0.25]


def test_draws_of_one_row_are_compared_with_each_other() -> None:
    draws = [episode("p", row("alice_0", "p", float(seed)), seed=seed) for seed in range(3)]
    batch, rounds = step(lambda _: draws, DAPO, 3)
    assert (rounds, len(batch.rows)) == ([3], 3)


def test_the_replicas_of_a_problem_fill_one_place() -> None:
    replicas = [
        episode(f"p{i}", row(f"alice_{replica}", f"p{i}", float(replica)), seed=i)
        for i in range(3)
        for replica in range(4)
    ]

    async def read(rows: Sequence[Trajectory]) -> dict[int, Reading | None]:
        return {i: Reading(np.zeros(1, np.float32)) for i in range(len(rows))}

    for algorithm, reader in ((DAPO, unread), (BY_TEACHER, read)):
        batch, rounds = step(lambda _: replicas, algorithm, 3, read=reader)
        assert (rounds, len(batch.rows)) == ([3], 12)


def test_a_round_plays_a_generation_batch() -> None:
    algorithm = dataclasses.replace(DAPO, generation_batch=96)
    batch, rounds = sampled(algorithm, 16, twenty_informative)
    assert rounds == [96]
    assert len(batch.rows) == 32


def test_a_group_in_which_nobody_learns_is_not_informative() -> None:
    def only_bob_varies(place: int) -> dict[str, float]:
        return {"alice_0": 0.0, "alice_1": 0.0, "bob_0": 0.0, "bob_1": 1.0}

    algorithm = dataclasses.replace(DAPO, max_generation_batches=3)
    batch, rounds = sampled(algorithm, 4, only_bob_varies)
    assert (rounds, batch.rows) == ([4, 4, 4], [])
    batch, rounds = sampled(algorithm, 4, only_bob_varies, learners=("alice", "bob"))
    assert rounds == [4]
    assert {trajectory.role for trajectory in batch.rows} == {"bob"}


def test_groups_of_one_are_refused_before_another_round() -> None:
    rounds: list[int] = []

    def play(count: int) -> list[Episode]:
        rounds.append(count)
        return [paid(f"p{i}", {"alice_0": float(i % 2)}) for i in range(count)]

    with pytest.raises(UserError, match="single row"):
        step(play, DAPO, 4, key="problem")
    assert rounds == [4]


def test_a_group_is_informative_if_a_hint_tells_more_than_its_rewards() -> None:
    hinted = dataclasses.replace(row("alice_0", "p", 0.0), reread_after=np.arange(3))
    played = [episode("p", hinted, row("alice_1", "p", 0.0))]
    dapo = dataclasses.replace(DAPO, max_generation_batches=1)
    distilled = dataclasses.replace(dapo, distillation=Distillation(beta=1.0))
    assert [len(step(lambda _: played, a)[0].rows) for a in (distilled, dapo)] == [2, 0]


def test_a_failed_row_without_the_group_is_left_out() -> None:
    failed = dataclasses.replace(row("alice_2", "p", 0.0), groups={}, status="failed: cut off")
    played = episode("p", *(row(f"alice_{i}", "p", float(i)) for i in range(2)), failed)
    batch, _ = step(lambda _: [played], DAPO, key="problem")
    assert [trajectory.agent for trajectory in batch.rows] == ["alice_0", "alice_1"]


def test_a_row_without_the_group_is_refused_by_a_sentence() -> None:
    other = dataclasses.replace(row("alice_1", "p", 1.0), groups={"other": "p"})
    episodes = [episode("p", row("alice_0", "p", 0.0), other)]
    sentence = "alice_1 belongs to no group called 'problem'; known keys: other"
    with pytest.raises(UserError, match=sentence):
        step(lambda _: episodes, DAPO, key="problem")
    with pytest.raises(UserError, match=sentence):
        measured(StepBatch(episodes, [], 1), team(get("grpo")), "problem", ["alice"])


def taught(
    algorithms: team,
    rewards: Callable[[int], dict[str, float]],
    key: str = "problem+role",
    longest: int = 3,
) -> tuple[StepBatch, list[int]]:
    """:func:`step` of three problems, with alice and bob; teachers read rows of at most ``longest``
    tokens. An agent's name is followed by its number of sampled tokens: ``alice_0:2``."""
    numbers, shown = count(), set[int]()

    def one(name: str, problem: str, reward: float) -> Trajectory:
        agent, _, tokens = name.partition(":")
        return row(agent, problem, reward, int(tokens or 2))

    def play(count: int) -> list[Episode]:
        return [
            episode(f"p{i}", *(one(name, f"p{i}", r) for name, r in rewards(i).items()))
            for i in islice(numbers, count)
        ]

    async def read(rows: Sequence[Trajectory]) -> dict[int, Reading | None]:
        taught = {i: r for i, r in enumerate(rows) if algorithms.of(r.role).distillation.reads(r)}
        assert not {*map(id, taught.values())} & shown, "a row is read twice"
        shown.update(map(id, taught.values()))
        reading = Reading(np.zeros(1, np.float32))
        return {i: reading if len(r.tokens) <= longest else None for i, r in taught.items()}

    return step(play, algorithms, 3, key=key, learners=("alice", "bob"), read=read)


def problems_of(batch: StepBatch, role: str) -> list[str]:
    return list(dict.fromkeys(r.groups["problem"] for r in batch.rows if r.role == role))


def every_third(place: int) -> dict[str, float]:
    """Rewards of alice never differ, those of bob at every third problem."""
    return {"alice_0": 0.0, "alice_1": 0.0, "bob_0": 0.0, "bob_1": float(place % 3 == 0)}


def test_a_role_with_a_teacher_does_not_fill_the_step_of_the_other() -> None:
    batch, rounds = taught(team(DAPO, {"alice": BY_TEACHER}), every_third)
    assert rounds == [3, 3, 3]
    assert problems_of(batch, "alice") == ["p0", "p1", "p2"]
    assert problems_of(batch, "bob") == ["p0", "p3", "p6"]
    # Only what is trained on has been read.
    assert {id(r) for r in batch.rows if r.role == "alice"} == batch.readings.keys()


def test_rounds_end_where_the_other_role_has_too_little() -> None:
    few = dataclasses.replace(DAPO, max_generation_batches=2)
    by_teacher = dataclasses.replace(few, distillation=TAUGHT)
    batch, rounds = taught(team(few, {"alice": by_teacher}), every_third)
    assert rounds == [3, 3]
    assert problems_of(batch, "alice") == ["p0", "p1", "p2"]
    assert problems_of(batch, "bob") == ["p0", "p3"]


def test_a_problem_fills_the_step_if_all_roles_have_a_teacher() -> None:
    batch, rounds = taught(team(BY_TEACHER), every_third)
    assert rounds == [3]
    assert problems_of(batch, "alice") == problems_of(batch, "bob") == ["p0", "p1", "p2"]


def test_dynamic_sampling_comes_back_when_the_teacher_has_faded() -> None:
    batch, rounds = taught(team(BY_TEACHER).after(0.5), every_third)
    assert rounds == [3, 3, 3]
    assert problems_of(batch, "bob") == ["p0", "p3", "p6"]
    assert not problems_of(batch, "alice")
    assert not batch.readings
    assert taught(team(BY_TEACHER).after(0.49), every_third)[1] == [3]


def test_a_row_that_the_teacher_cannot_read_informs_nobody() -> None:
    def long_but_last(place: int) -> dict[str, float]:
        """alice's rows have 4 tokens with their prompt, of which the teacher reads 3; at p1 her
        rewards differ, at p4 one row is short."""
        tokens = 2 if place == 4 else 3
        return {f"alice_0:{tokens}": 0.0, "alice_1:3": float(place == 1), "bob_0": 0.0}

    few = dataclasses.replace(DAPO, max_generation_batches=2, distillation=TAUGHT)
    batch, rounds = taught(team(few, {"bob": DAPO}), long_but_last)
    assert rounds == [3, 3]
    assert problems_of(batch, "alice") == ["p1", "p4"]
    read = [batch.readings[id(r)] is not None for r in batch.rows if r.role == "alice"]
    assert read == [False, False, True, False]
    # Without rewards alice learns nothing from p1.
    alone = dataclasses.replace(TAUGHT, fade=0.0, rewards=False)
    few = dataclasses.replace(few, distillation=alone)
    batch, _ = taught(team(few, {"bob": DAPO}), long_but_last)
    assert problems_of(batch, "alice") == ["p4"]


def test_roles_that_are_compared_with_each_other_are_trained_together() -> None:
    batch, rounds = taught(team(DAPO, {"alice": BY_TEACHER}), every_third, key="problem")
    assert rounds == [3, 3, 3]
    assert problems_of(batch, "bob") == ["p0", "p1", "p2", "p3", "p6"]
    # A group is whole, and all of its rows are read.
    assert problems_of(batch, "alice") == problems_of(batch, "bob")
    assert {id(r) for r in batch.rows if r.role == "alice"} == batch.readings.keys()


def test_informative_is_what_differs_before_the_over_long_penalty() -> None:
    # Of three tokens 0 is taken off, of four 1: DAPO's rounds look at what came before that.
    algorithm = dataclasses.replace(
        DAPO, max_generation_batches=1, overlong_limit=4, overlong_buffer=1
    )
    lengths_differ = episode("a", row("alice_0", "a", 1.0, 3), row("alice_1", "a", 1.0, 4))
    evened_out = episode("b", row("alice_0", "b", 0.0, 3), row("alice_1", "b", 1.0, 4))
    batch, _ = step(lambda _: [lengths_differ, evened_out], algorithm, 2)
    assert [(kept.groups["problem"], kept.reward) for kept in batch.rows] == [("b", 0.0)] * 2
    assert batch.rows[1].reward_terms == {"x": 1.0, "overlong": -1.0}
    # What is logged carries the penalty, too.
    logged = [row.reward for episode in batch.episodes for row in episode.trajectories]
    assert logged == [1.0, 0.0, 0.0, 0.0]


APART = ((2, 0, 0), (0, 2, 0), (0, 1, 1))


@pytest.mark.parametrize(
    ("combine", "terms", "informs"),
    [
        ("normalise-then-sum", APART, True),
        ("sum-then-normalise", APART, False),
        # One term is 2 less the other: scaled, they cancel out.
        ("normalise-then-sum", ((2, 0), (0, 2), (0, 2)), False),
    ],
)
def test_terms_that_are_scaled_apart_inform_where_they_do_not_cancel_out(
    combine: Any, terms: tuple[tuple[int, ...], ...], informs: bool
) -> None:
    """Each row earns 2 in all."""
    played = [
        dataclasses.replace(row(f"alice_{i}", "p", 2.0), reward_terms=dict(zip("xyz", paid)))
        for i, paid in enumerate(terms)
    ]
    usual = dataclasses.replace(DAPO, max_generation_batches=1)
    algorithms = team(usual, {"alice": dataclasses.replace(usual, combine=combine)})
    batch, _ = step(lambda _: [episode("p", *played)], algorithms, key="problem")
    assert bool(batch.rows) == informs
    assert measured(batch, algorithms, "problem", ["alice"]) == {"p": Played(2.0, informs)}


def test_without_dynamic_sampling_everything_is_trained_on() -> None:
    batch, rounds = sampled(get("grpo"), 32, twenty_informative)
    assert (rounds, len(batch.rows)) == ([32], 64)


def test_frozen_rows_enter_only_the_groups_of_roles_that_learn() -> None:
    rewards = {"alice_0": 1.0, "alice_1": 0.0, "large_0": 6.0, "large_1": 0.0}
    batch, _ = sampled(get("reinforce++"), 2, lambda _: rewards)
    assert [row.role for row in batch.rows] == ["alice"] * 4
    batch, _ = step(lambda _: [paid("p", rewards)], get("grpo"), key="problem")
    assert [row.role for row in batch.rows] == ["alice", "alice", "large", "large"]


def test_the_divergence_of_an_agent_is_that_of_all_its_contexts() -> None:
    class Learner:
        def divergences(self, own: list[Trajectory]) -> np.ndarray:
            return np.array([0.1, 0.3, 0.6])

    played = [row("alice_0", "p", 1.0) for _ in range(3)]
    members = ("p/0/alice_0", "p/0/alice_0", "p/1/alice_0")
    played = [dataclasses.replace(r, member=m) for r, m in zip(played, members)]
    algorithm = dataclasses.replace(get("rloo"), kl_in_reward=0.5)
    learners: Any = {"alice": Learner()}
    rows, metrics = with_divergences(played, learners, team(algorithm))
    np.testing.assert_allclose([r.reward for r in rows], [0.8, 0.8, 0.7])
    # (0.4 + 0.6) / 2; by rows it would be a third.
    np.testing.assert_allclose(metrics["divergence"], 0.5)
    # Agents of a role without a penalty have no divergence, and do not make the mean smaller.
    _, metrics = with_divergences([*played, row("bob_0", "p", 1.0)], learners, team(algorithm))
    np.testing.assert_allclose(metrics["divergence"], 0.5)


def test_the_difficulty_of_a_problem_is_that_of_the_roles_that_learn() -> None:
    rewards = {
        "p0": {"alice_0": 1.0, "alice_1": 0.0, "bob_0": 0.0, "bob_1": 0.0},
        "p1": {"alice_0": 1.0, "alice_1": 1.0, "bob_0": 0.0, "bob_1": 1.0},
        "p2": {"alice_0": 0.0, "alice_1": 0.0},
    }
    episodes = [paid(name, by_agent) for name, by_agent in rewards.items()]
    failed = dataclasses.replace(row("alice_0", "p3", 1.0), status="failed")
    episodes.append(episode("p3", failed))
    # No row is trained on, which does not matter.
    batch, plain = StepBatch(episodes, [], 1), team(get("grpo"))
    # Bob's differing rewards are no difference for alice.
    assert measured(batch, plain, "problem+role", ["alice"]) == {
        "p0": Played(0.5, True),
        "p1": Played(1.0, False),
        "p2": Played(0.0, False),
    }
    # A penalty on length changes neither the difficulty nor what differs.
    long = Algorithm(overlong_limit=4, overlong_buffer=3)
    both_long = episode("p4", *(row("alice_0", "p4", 0.3, n) for n in (3, 4)))
    penalised, _ = step(lambda _: [both_long], long)
    assert [row.reward for row in penalised.rows] == pytest.approx([0.3 - 2 / 3, -0.7])
    (played,) = measured(penalised, team(long), "problem+role", ["alice"]).values()
    assert (played.reward, played.mixed) == (pytest.approx(0.3), False)
    both = measured(batch, plain, "problem+role", ["alice", "bob"])
    assert both["p0"] == Played(0.25, True)
    assert both["p1"] == Played(0.75, True)
