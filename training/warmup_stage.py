"""Imitation before reward: one step of the warm-up."""

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from coterie.algorithms.imitation import worked_row
from coterie.datatypes import Problem, TokenCodec, Trajectory
from coterie.problems.stream import ProblemStream
from coterie.rewards.grading.answers import Checker
from coterie.teams.team import Learns, Team
from coterie.training.prompt_limit import opening_prompts
from coterie.training.warmup import answer_of


class WarmUp:
    """Has roles learn worked solutions, each asked as its environment asks it."""

    def __init__(
        self,
        team: Team,
        streams: Mapping[str, ProblemStream],
        make_env: Callable[[], Any],
        problems_per_step: int,
    ) -> None:
        """``streams``: the worked solutions of each role that is warmed up; ``make_env`` builds the
        environment, speaking the models' vocabularies."""
        self._team, self._streams = team, streams
        self._env = make_env() if streams else None
        self._count = problems_per_step

    def step(self, number: int) -> dict[str, float]:
        """Step ``number``, from 1, of every role that is warmed up; metrics by ``NAME/ROLE``. It
        depends on nothing but the number and the weights."""

        def imitated(role: str, trained: Learns) -> dict[str, float]:
            return trained.imitate(self.rows(role, number)) if role in self._streams else {}

        return {
            f"{name}/{role}": value
            for role, metrics in self._team.side_by_side(imitated).items()
            for name, value in metrics.items()
        }

    def rows(self, role: str, number: int) -> list[Trajectory]:
        """What ``role`` imitates in step ``number``."""
        first = (number - 1) * self._count
        problems = [self._streams[role].at(first + place) for place in range(self._count)]
        with closing(Checker()) as checker:
            return [self._row(role, problem, checker) for problem in problems]

    def _row(self, role: str, problem: Problem, checker: Checker) -> Trajectory:
        codec: TokenCodec = self._team.codecs[role]
        given = opening_prompts(self._env, problem)[role]
        asked = codec.decode(np.asarray(given, dtype=np.int64))
        answer = answer_of(problem, checker, asked)
        assert answer is not None, f"{problem.id} was left out"
        # Behind a prompt of plain text a word begins with its space.
        lead = "" if asked[-1:].isspace() else " "
        return worked_row(codec, list(given), lead + answer, role=role, problem=problem.id)
