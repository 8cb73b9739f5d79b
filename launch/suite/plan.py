"""What has to be sampled: every agent on every set of problems, and where it is stored."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import envs
from envs.solo import SoloSettings
from evaluation.suite.suites import Suite, settings_of
from launch.plain import to_plain
from launch.suite.agents import Agent
from launch.suite.asked import Asked
from launch.suite.completions import Completions, Record
from launch.suite.settings import SuiteComparison
from problems.opening import open_source
from problems.source import ProblemSet as Finite
from problems.split import held_out
from vocabulary import Problem, UserError

# Nothing is trained here, so a set may be measured as a whole.
_NOBODY = Finite("nobody trains", ())


@dataclass(frozen=True)
class ProblemSet:
    """One set of problems of one suite."""

    suite: Suite
    name: str
    problems: tuple[Problem, ...]
    fingerprint: str
    """Of the source, whatever part of it is used."""


@dataclass(frozen=True)
class Job:
    """One agent, or one workflow, on one set."""

    asked: Asked
    where: ProblemSet
    stored: Completions

    @property
    def title(self) -> str:
        """For people."""
        told = ", told by others" if self.asked.experts else ""
        return f"{self.where.suite.name}, {self.where.name}: {self.asked.agent}{told}"

    def read(self) -> dict[tuple[str, int], Record]:
        """What is stored of it."""
        return self.stored.read()

    def missing(self, samples: int) -> list[tuple[Problem, int]]:
        """What is not, sample by sample, so that an early end leaves whole samples."""
        found = self.read()
        return [
            (problem, number)
            for number in range(samples)
            for problem in self.where.problems
            if (problem.id, number) not in found
        ]


def problem_sets(suite: Suite, settings: SuiteComparison) -> list[ProblemSet]:
    """Open the suite's problems; more of them are the same ones and further ones.

    Raises:
        UserError: a set that cannot be opened.
    """
    found: list[ProblemSet] = []
    for name in suite.problems:
        source = open_source(name, purpose="eval", seed=settings.seed)
        count = settings.questions if source.size is None else min(settings.questions, source.size)
        problems, _ = held_out(source, _NOBODY, count, settings.seed)
        found.append(ProblemSet(suite, name, problems, source.fingerprint))
    if len({one.name for one in found}) < len(found):
        raise UserError(f"suite {suite.name} names the same problems twice")
    return found


def fitted(suite: Suite, settings: SuiteComparison) -> Suite:
    """The suite as the flags change it."""
    if settings.problems:
        suite = replace(suite, problems=settings.problems)
    if settings.max_new_tokens:
        # The mode may have a limit of its own, which is then the same.
        known = settings_of(suite)
        limits = {
            name: settings.max_new_tokens
            for name in ("max_new_tokens", "eval_max_new_tokens")
            if hasattr(known, name)
        }
        suite = replace(suite, settings={**suite.settings, **limits})
    roles = envs.spec(suite.env).roles
    needed = (suite.seat, "expert") if suite.workflow else (suite.seat,)
    if strangers := [role for role in needed if role not in roles]:
        raise UserError(
            f"suite {suite.name}: {suite.env} has no role {strangers[0]}; its roles are "
            f"{', '.join(roles)}"
        )
    # Its own checks of settings and modes are the best ones.
    env = envs.make(suite.env, settings=settings_of(suite))
    for mode in {suite.mode, suite.workflow or suite.mode}:
        env.reset(seed=0, options={"mode": mode})
    env.close()
    return suite


def jobs(
    sets: Sequence[ProblemSet], agents: Sequence[Agent], settings: SuiteComparison
) -> Iterator[Job]:
    """Everybody alone, then workflows, on every set."""
    identities = {agent.name: agent.identity for agent in agents}
    for where in sets:
        for agent in agents:
            yield job_of(Asked(where.suite, agent.name), where, identities, settings)
        if where.suite.workflow and settings.workflow:
            for agent in agents:
                others = tuple(a.name for a in agents if a is not agent) or (agent.name,)
                asked = Asked(where.suite, agent.name, others)
                yield job_of(asked, where, identities, settings, kind="workflow-")


def job_of(
    asked: Asked,
    where: ProblemSet,
    identities: Mapping[str, Any],
    settings: SuiteComparison,
    *,
    kind: str = "",
) -> Job:
    """A job with the place of its completions, which ``kind`` tells apart from others of the same
    agent."""
    suite = asked.suite
    identity = {
        "agent": [asked.agent, identities[asked.agent]],
        "experts": [[name, identities[name]] for name in asked.experts],
        "environment": [suite.env, suite.seat, suite.workflow if asked.experts else suite.mode],
        "settings": to_plain(settings_of(suite) or SoloSettings()),
        "problems": [where.name, where.fingerprint],
        "sampling": [settings.temperature, settings.top_p],
        "seed": settings.seed,
    }
    folder = settings.out / "completions" / suite.name / _folder(where.name)
    return Job(asked, where, Completions(folder / f"{kind}{asked.agent}.jsonl", identity))


def _folder(problems: str) -> str:
    """A name for files; names of sets may hold slashes and questions marks."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", problems).strip("-.")[:60]
    return f"{readable}-{hashlib.sha256(problems.encode()).hexdigest()[:6]}"
