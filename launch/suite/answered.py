"""One set of problems with everything that was answered to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.suite.responses import Responses, responses
from launch.suite.plan import Job, ProblemSet
from launch.suite.settings import SuiteComparison
from vocabulary import UserError


@dataclass(frozen=True)
class Answered:
    """A set of problems, and who answered it how."""

    where: ProblemSet
    jobs: Sequence[Job]
    alone: Mapping[str, Responses]
    """Agent -> its own answers."""
    workflows: Mapping[str, Responses]
    """Agent -> its answers after all others had answered."""
    verifier: Job | None = None

    @classmethod
    def of(cls, where: ProblemSet, jobs: Sequence[Job], settings: SuiteComparison) -> "Answered":
        """What the jobs have stored.

        Raises:
            UserError: somebody has answered nothing at all.
        """
        own = [job for job in jobs if job.where is where]
        names = list(dict.fromkeys(job.asked.agent for job in own))
        alone: dict[str, Responses] = {}
        workflows: dict[str, Responses] = {}
        for job in own:
            found = responses(job.read(), where.problems, settings.samples, names)
            if np.isnan(found.correct_QN).all():
                raise UserError(f"{job.title}: nothing was answered; look at the failures above")
            (workflows if job.asked.experts else alone)[job.asked.agent] = found
        return cls(where, own, alone, workflows)
