"""The episodes of a training step, and which of their rows are trained on."""

import dataclasses
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from coterie.agents.team.backend import RoleLearner
from coterie.algorithms import (
    Algorithm,
    Credit,
    informative_groups,
    with_divergence_penalty,
    with_overlong_penalty,
)
from coterie.algorithms.batching import by_agent
from coterie.algorithms.credit import check_groups
from coterie.algorithms.role_algorithms import RoleAlgorithms
from coterie.algorithms.turn_credit import TurnBonus
from coterie.datatypes import Episode, Reading, Trajectory
from coterie.problems.curriculum import Played
from coterie.training.quotas import Draw, quotas


@dataclass(frozen=True)
class StepBatch:
    """The episodes of one step, and the rows that get credit."""

    episodes: list[Episode]
    """All episodes that were played."""
    rows: list[Trajectory]
    """The rows that are trained on: all trajectories, or those of informative groups."""
    rounds: int
    """Rounds of sampling: more than one only under dynamic sampling."""
    readings: Mapping[int, Reading | None] = dataclasses.field(default_factory=dict)
    """``id(row)`` -> the probabilities of its tokens by the teacher of its role; None: it cannot
    read the row."""

    @property
    def readings_by_role(self) -> dict[str, list[Reading | None]]:
        """Role -> what its teacher has read of each row that is trained on."""
        by_role: dict[str, list[Reading | None]] = {}
        for row in self.rows:
            if id(row) in self.readings:
                by_role.setdefault(row.role, []).append(self.readings[id(row)])
        return by_role

    @property
    def played(self) -> list[Trajectory]:
        """All rows that were played, whether or not they are trained on."""
        return [row for episode in self.episodes for row in episode.trajectories]


Read = Callable[[Sequence[Trajectory]], Awaitable[Mapping[int, Reading | None]]]
"""Rows -> index of a row -> the probabilities of its tokens by the teacher of its role
(:meth:`coterie.agents.team.team.Team.read`)."""


async def sample_batch(
    play: Callable[[int], Awaitable[list[Episode]]],
    read: Read,
    algorithms: RoleAlgorithms,
    key: str,
    problems: int,
    learners: Collection[str],
) -> StepBatch:
    """Play one step's problems, and have teachers read the rows; under dynamic sampling, until
    enough problems are informative.

    A group is informative if a role in it learns from rewards that differ, or from a row that a
    reader reads. Roles that a teacher teaches and the others fill a step separately
    (:func:`coterie.training.quotas.quotas`). Surplus problems are discarded, as are rows
    of frozen roles without a loss weight.

    Args:
        play: plays this number of the next problems.
        read: has teachers read rows.
        algorithms: of this step; the usual one says whether sampling is dynamic, and how often it
            is repeated.
        key: names the groups within which rewards are compared.
        problems: number of problems in a step.
        learners: roles that learn.
    """
    if algorithms.usual.dynamic_sampling:
        return await _sample_until_full(play, read, algorithms, key, problems, learners)
    readings: dict[int, Reading | None] = {}
    episodes = [_penalise(episode, algorithms) for episode in await play(problems)]
    rows = [row for _, row in _rows_to_compare(episodes, key, learners)]
    await _read_into(readings, rows, read)
    return StepBatch(episodes, rows, 1, readings)


async def _sample_until_full(
    play: Callable[[int], Awaitable[list[Episode]]],
    read: Read,
    algorithms: RoleAlgorithms,
    key: str,
    problems: int,
    learners: Collection[str],
) -> StepBatch:
    """:func:`sample_batch` under dynamic sampling: play until enough problems are informative."""
    algorithm, readings = algorithms.usual, dict[int, Reading | None]()
    episodes, rows = list[Episode](), list[Trajectory]()
    taught, others = quotas(learners, algorithms, problems)
    rounds = 0
    while rounds < algorithm.max_generation_batches and (taught.left or others.left or not rounds):
        rounds += 1
        played = await play(algorithm.generation_batch or problems)
        penalised = [_penalise(episode, algorithms) for episode in played]
        episodes += penalised
        new = _rows_to_compare(penalised, key, learners)
        # Rewards before any penalty on length, as in DAPO's trainer.
        unpenalised = _rows_to_compare(played, key, learners)
        differ = {a: _differing(unpenalised, key, a) for a in {*map(algorithms.of, learners)}}
        informs = partial(_informs, algorithms, key, differ, readings)
        groups = others.add(new, key, informs)
        waiting = taught.of_interest(new)
        while taught.left and waiting:
            chosen, waiting = {*waiting[: taught.left]}, waiting[taught.left :]
            part = [(draw, row) for draw, row in new if draw in chosen]
            await _read_into(readings, [row for _, row in part], read)
            groups |= taught.add(part, key, informs)
        # A row that failed may have no such group.
        rows += [row for draw, row in new if (draw, row.groups.get(key)) in groups]
        if not rows:
            # Rounds end, but groups of one never differ.
            check_groups([row for _, row in new], key, needs_peers=True)
    await _read_into(readings, rows, read)
    return StepBatch(episodes, rows, rounds, readings)


def _differing(
    rows: Sequence[tuple[Draw, Trajectory]], key: str, algorithm: Algorithm
) -> set[tuple[Draw, str]]:
    """(draw, group) whose rewards differ within the draw; of groups without such a draw, those that
    differ between draws."""
    by_draw: dict[Draw, list[Trajectory]] = {}
    for draw, row in rows:
        by_draw.setdefault(draw, []).append(row)
    within = {
        (draw, group)
        for draw, own in by_draw.items()
        for group in informative_groups(own, key, algorithm)
    }
    between = informative_groups([row for _, row in rows], key, algorithm)
    between -= {group for _, group in within}
    return within | {
        (draw, row.groups[key]) for draw, row in rows if row.groups.get(key) in between
    }


def _informs(
    algorithms: RoleAlgorithms,
    key: str,
    differ: Mapping[Algorithm, Collection[tuple[Draw, str]]],
    readings: Mapping[int, Reading | None],
    draw: Draw,
    row: Trajectory,
) -> bool:
    """Whether its role learns something from a row of ``draw``; ``differ``: algorithm -> (draw,
    group) with different rewards."""
    algorithm = algorithms.of(row.role)
    distillation = algorithm.distillation
    if distillation.rewards and (draw, row.groups[key]) in differ[algorithm]:
        return True
    return readings.get(id(row)) is not None if distillation.teaches else distillation.reads(row)


async def _read_into(
    readings: dict[int, Reading | None], rows: Sequence[Trajectory], read: Read
) -> None:
    """Add to ``readings``, by ``id(row)``, those of rows that nobody has read yet."""
    new = [row for row in rows if id(row) not in readings]
    found = await read(new)
    readings.update({id(new[index]): reading for index, reading in found.items()})


def _rows_to_compare(
    episodes: Sequence[Episode], key: str, learners: Collection[str]
) -> list[tuple[Draw, Trajectory]]:
    """(draw, row) of the rows of roles that learn, and of frozen ones in their groups. Groups of
    frozen rows alone would only enter the deviation of the batch.

    Raises:
        UserError: a trainable row lacks the key.
    """
    rows = [((each.problem_id, each.seed), row) for each in episodes for row in each.trajectories]
    learned_in = {row.groups.get(key) for _, row in rows if row.role in learners}
    compared = [
        (draw, row)
        for draw, row in rows
        if row.role in learners or (row.loss_weight > 0 and row.groups.get(key) in learned_in)
    ]
    check_groups([row for _, row in compared], key, needs_peers=False)
    return compared


def _penalise(episode: Episode, algorithms: RoleAlgorithms) -> Episode:
    rows = (with_overlong_penalty(row, algorithms.of(row.role)) for row in episode.trajectories)
    return dataclasses.replace(episode, trajectories=tuple(rows))


def _before_penalty(row: Trajectory) -> Trajectory:
    """Long wrong answers make a problem neither harder nor mixed."""
    return dataclasses.replace(row, reward=row.reward - row.reward_terms.get("overlong", 0.0))


def with_divergences(
    rows: Sequence[Trajectory], learners: Mapping[str, RoleLearner], algorithms: RoleAlgorithms
) -> tuple[list[Trajectory], dict[str, float]]:
    """With ``--algo.kl-in-reward``, subtract the divergence from the reference from each reward.

    Args:
        rows: of a step.
        learners: role -> its learner, which computes the divergence of its rows.
        algorithms: have the coefficients; with 0 the rows of a role are unchanged.

    Returns:
        (rows, metrics): the metric is the mean divergence over the agents of these roles.
    """
    penalised, total, agents = list(rows), 0.0, 0
    for role, learner in learners.items():
        if not (algorithm := algorithms.of(role)).kl_in_reward:
            continue
        indices = [index for index, row in enumerate(rows) if row.role == role]
        own = [rows[index] for index in indices]
        divergence_N = learner.divergences(own)
        for index, row in zip(
            indices, with_divergence_penalty(own, divergence_N.tolist(), algorithm)
        ):
            penalised[index] = row
        total += float(divergence_N.sum())
        agents += len(by_agent(own))
    return penalised, {"divergence": total / agents} if agents else {}


def measured(
    batch: StepBatch, algorithms: RoleAlgorithms, key: str, learners: Collection[str]
) -> dict[str, Played]:
    """Problem id -> what the step measured about it; problems that no role that learns answered are
    left out.

    Args:
        batch: of one step; rows that it leaves out count, too.
        algorithms: of the step; they say what of the rewards is compared.
        key: names the groups within which rewards are compared.
        learners: roles that learn.
    """
    rows = [
        (draw, _before_penalty(row))
        for draw, row in _rows_to_compare(batch.episodes, key, learners)
    ]
    own_and_others = [row for _, row in rows]
    compared = {*map(algorithms.of, learners)}
    informative = {a: informative_groups(own_and_others, key, a) for a in compared}
    by_problem: dict[str, list[Trajectory]] = {}
    for (problem, _), row in rows:
        if row.trainable and row.role in learners:
            by_problem.setdefault(problem, []).append(row)
    return {
        problem: Played(
            reward=float(np.mean([row.reward for row in own])),
            mixed=any(row.groups[key] in informative[algorithms.of(row.role)] for row in own),
        )
        for problem, own in by_problem.items()
    }


def rows_of(
    batch: StepBatch, credit: Credit, role: str
) -> tuple[list[Trajectory], npt.NDArray[np.float64], TurnBonus]:
    """(rows of one role with the readings of its teacher, their advantages, additions to the
    advantages of their turns)."""
    indices = [index for index, row in enumerate(batch.rows) if row.role == role]
    turn_bonus = {
        index_of_role: credit.turn_bonus[index]
        for index_of_role, index in enumerate(indices)
        if index in credit.turn_bonus
    }
    rows = [
        dataclasses.replace(row, reading=reading)
        if (reading := batch.readings.get(id(row))) is not None
        else row
        for row in (batch.rows[index] for index in indices)
    ]
    return rows, credit.advantage_B[indices], turn_bonus


def advantages_by_row(rows: Sequence[Trajectory], credit: Credit) -> dict[int, float]:
    """``id(row)`` -> its advantage."""
    return {id(row): float(value) for row, value in zip(rows, credit.advantage_B)}


def token_bonuses_by_row(
    rows: Sequence[Trajectory], learners: Mapping[str, RoleLearner]
) -> dict[int, npt.NDArray[np.float64]]:
    """``id(row)`` -> (T,) additions to its advantage in the latest update."""
    bonuses: dict[int, npt.NDArray[np.float64]] = {}
    for role, learner in learners.items():
        of_role = [row for row in rows if row.role == role]
        bonuses |= {id(of_role[i]): bonus_T for i, bonus_T in learner.token_bonus.items()}
    return bonuses
