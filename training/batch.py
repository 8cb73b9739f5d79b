"""The episodes of a training step, and which of their rows are trained on."""

import dataclasses
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coterie.agents.team.backend import RoleLearner
from coterie.algorithms import (
    Credit,
    informative_groups,
    with_divergence_penalty,
    with_overlong_penalty,
)
from coterie.algorithms.batching import by_agent
from coterie.algorithms.role_algorithms import RoleAlgorithms
from coterie.algorithms.turn_credit import TurnBonus
from coterie.datatypes import Episode, Reading, Trajectory
from coterie.problems.curriculum import Played


@dataclass(frozen=True)
class StepBatch:
    """The episodes of one step, and the rows that get credit."""

    episodes: list[Episode]
    """All episodes that were played."""
    rows: list[Trajectory]
    """The rows that are trained on: all trajectories, or those of informative groups."""
    rounds: int
    """Rounds of sampling: more than one only under dynamic sampling."""
    readings: Mapping[int, Reading] = dataclasses.field(default_factory=dict)
    """``id(row)`` -> the probabilities of its tokens by the teacher of its role."""
    stale: int = 0
    """Number of rows that were dropped because their weights were too old."""

    @property
    def played(self) -> list[Trajectory]:
        """All rows that were played, whether or not they are trained on."""
        return [row for episode in self.episodes for row in episode.trajectories]


async def sample_batch(
    play: Callable[[int], Awaitable[list[Episode]]],
    algorithms: RoleAlgorithms,
    key: str,
    problems: int,
    learners: Collection[str],
) -> StepBatch:
    """Play one step's problems; under dynamic sampling, until enough of them are informative.

    A group is informative if a role in it learns, and its rewards differ or a reader reads one of
    its rows. Surplus problems are discarded, as are rows of frozen roles without a loss weight.

    Args:
        play: plays this number of the next problems.
        algorithms: the usual one says whether sampling is dynamic, and how often it is repeated.
        key: names the groups within which rewards are compared.
        problems: number of problems in a step.
        learners: roles that learn.
    """
    algorithm = algorithms.usual
    episodes: list[Episode] = []
    rows: list[Trajectory] = []
    step_problems: list[str] = []
    rounds = 0
    while rounds < (algorithm.max_generation_batches if algorithm.dynamic_sampling else 1):
        rounds += 1
        played = await play(algorithm.generation_batch or problems)
        penalised = [_penalise(episode, algorithms) for episode in played]
        episodes += penalised
        new = _rows_to_compare(penalised, learners)
        if not algorithm.dynamic_sampling:
            return StepBatch(episodes, [row for _, row in new], rounds)
        # Rewards before any penalty on length, as in DAPO's trainer.
        informative = informative_groups(
            [row for _, row in _rows_to_compare(played, learners)], key
        )
        informative |= {
            row.groups[key] for _, row in new if algorithms.of(row.role).distillation.reads(row)
        }
        informative &= {row.groups[key] for _, row in new if row.trainable and row.role in learners}
        chosen = [(problem, row) for problem, row in new if row.groups[key] in informative]
        candidates = [*step_problems, *(problem for problem, _ in chosen)]
        step_problems = list(dict.fromkeys(candidates))[:problems]
        rows += [row for problem, row in chosen if problem in step_problems]
        if len(step_problems) == problems:
            break
    return StepBatch(episodes, rows, rounds)


def _rows_to_compare(
    episodes: Sequence[Episode], learners: Collection[str]
) -> list[tuple[str, Trajectory]]:
    """(problem, row) of every row that is compared with others."""
    return [
        (episode.problem_id, row)
        for episode in episodes
        for row in episode.trajectories
        if row.loss_weight > 0 or row.role in learners
    ]


def _penalise(episode: Episode, algorithms: RoleAlgorithms) -> Episode:
    rows = (with_overlong_penalty([t], algorithms.of(t.role))[0] for t in episode.trajectories)
    return dataclasses.replace(episode, trajectories=tuple(rows))


def without_stale(batch: StepBatch, versions: Mapping[str, int], most: int) -> StepBatch:
    """``batch`` without rows of learning roles that were sampled more than ``most`` updates ago.

    Args:
        batch: of one step.
        versions: updates so far of each role that learns.
        most: largest number of updates since a row was sampled.
    """
    rows = [
        row
        for row in batch.rows
        if versions.get(row.role, row.weight_version) - row.weight_version <= most
    ]
    return dataclasses.replace(batch, rows=rows, stale=len(batch.rows) - len(rows))


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


def measured(batch: StepBatch, key: str, learners: Collection[str]) -> dict[str, Played]:
    """Problem id -> what the step measured about it; problems that no role that learns answered are
    left out.

    Args:
        batch: of one step; rows that it leaves out count, too.
        key: names the groups within which rewards are compared.
        learners: roles that learn.
    """
    rows = _rows_to_compare(batch.episodes, learners)
    informative = informative_groups([row for _, row in rows], key)
    by_problem: dict[str, list[Trajectory]] = {}
    for problem, row in rows:
        if row.trainable and row.role in learners:
            by_problem.setdefault(problem, []).append(row)
    return {
        problem: Played(
            reward=float(np.mean([row.reward for row in own])),
            mixed=any(row.groups[key] in informative for row in own),
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
        dataclasses.replace(row, reading=batch.readings[id(row)])
        if id(row) in batch.readings
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
