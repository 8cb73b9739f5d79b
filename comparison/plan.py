"""What has to be sampled: who plays what in which environment, on which problems, stored where."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from coterie.comparison.policies import NamedPolicy
from coterie.comparison.responses import Completions, Record, Responses, responses, score_team
from coterie.comparison.settings import Asking
from coterie.datatypes import Problem, UserError
from coterie.problems.canonical import problem_key
from coterie.problems.opening import open_source
from coterie.problems.source import ProblemSet
from coterie.problems.split import hold_out, sample
from coterie.training.plain import to_plain

# Nothing is trained here, so a set may be measured as a whole.
_NOBODY = ProblemSet("nobody trains", ())


@dataclass(frozen=True)
class Questions:
    """What is asked of one set of problems."""

    name: str
    """The set, as the user named it."""
    problems: tuple[Problem, ...]
    fingerprint: str
    """Of the source, whatever part of it is used."""

    @property
    def folder(self) -> str:
        """A name for files; names of sets may hold slashes and question marks."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.")[:60]
        return f"{readable}-{hashlib.sha256(self.name.encode()).hexdigest()[:6]}"


def open_questions(names: Sequence[str], settings: Asking) -> list[Questions]:
    """The first questions of every set; more of them are the same ones and further ones.

    Raises:
        UserError: a set that cannot be opened, or is named twice.
    """
    if len(set(names)) < len(names):
        raise UserError("--problems names the same problems twice")
    found: list[Questions] = []
    for name in names:
        source = open_source(name, purpose="eval", seed=settings.seed)
        count = settings.questions if source.size is None else min(settings.questions, source.size)
        problems, _ = hold_out(source, _NOBODY, count, settings.seed)
        found.append(Questions(name, problems, source.fingerprint))
    return found


def further_questions(
    scored: Sequence[Questions], source: str, count: int, settings: Asking
) -> Questions | None:
    """``count`` questions that are not scored: of ``source``, or where that is empty of the scored
    sets themselves; fewer where there are not as many, None where there are none."""
    taken = {problem_key(problem) for one in scored for problem in one.problems}
    found: dict[str, Problem] = {}
    names = [source] if source else [one.name for one in scored]
    for place, name in enumerate(names):
        wanted = count * (place + 1) // len(names) - len(found)
        opened = open_source(name, purpose="train" if source else "eval", seed=settings.seed)
        if opened.size is not None or source:
            excluded = frozenset((*taken, *found))
            drawn = sample(opened, wanted, settings.seed, excluded)
            problems = [drawn[index] for index in range(drawn.size or 0)]
        else:
            asked = len(scored[place].problems)
            problems = hold_out(opened, _NOBODY, asked + wanted, settings.seed)[0][asked:]
        found |= {problem_key(problem): problem for problem in problems}
    fingerprint = hashlib.sha256("\n".join(found).encode()).hexdigest()
    return Questions("+".join(names), tuple(found.values()), fingerprint) if found else None


@dataclass(frozen=True)
class Lineup:
    """Who plays which role of an environment, and whose answers are the responses."""

    name: str
    """Its file is called after it."""
    env: str
    settings: Any
    """The environment's."""
    mode: str
    """The environment's."""
    policies: Mapping[str, tuple[NamedPolicy, ...]]
    """Role -> who plays it, its agents in turn; a role without policies is silent."""
    role: str
    """Whose answers are the responses; of a team it may be nobody's."""
    stream: tuple[str, ...] = ()
    """Lineups that share it share their luck."""
    answers: int = 1
    """Responses of one episode."""
    keeps: tuple[str, ...] = ()
    """What is stored of a response besides: what the environment reports of it by name, and
    ``probability`` and ``tokens``."""
    told: Mapping[str, Sequence[str]] | None = None
    """Problem id -> what the experts say in the order of their seats, in place of being asked."""
    silent: tuple[str, ...] | None = None
    """Roles that say nothing when they are asked; of other roles than these and the policies' the
    first that is asked is refused. None: all other roles are silent."""
    roles: tuple[str, ...] = ()
    """The environment's roles, where a run was told other ones than its own."""
    team: bool = False
    """Whether all who play are scored together, and what each earned is stored."""

    @property
    def needed(self) -> dict[str, NamedPolicy]:
        """Everybody who plays, by name."""
        return {one.name: one for own in self.policies.values() for one in own}


@dataclass(frozen=True)
class Job:
    """One lineup on one set of problems."""

    title: str
    lineup: Lineup
    questions: Questions
    samples: int
    stored: Completions

    def read(self) -> dict[tuple[str, int], Record]:
        """What is stored of it."""
        return self.stored.read()

    def missing(self) -> list[tuple[Problem, int]]:
        """(problem, episode) of what is not, episode by episode, so that an early end leaves whole
        samples."""
        found, each = self.read(), self.lineup.answers
        return [
            (problem, episode)
            for episode in range(-(-self.samples // each))
            for problem in self.questions.problems
            if any(
                (problem.id, number) not in found
                for number in range(episode * each, min((episode + 1) * each, self.samples))
            )
        ]

    def responses(
        self,
        policies: Sequence[str] = (),
        score: Callable[[Mapping[str, Any]], float] | None = None,
    ) -> Responses:
        """What is stored of it, as arrays; ``policies`` are those whose use is told, by default
        its own, and ``score`` says what a team's episode is worth.

        Raises:
            UserError: nothing was answered at all.
        """
        names, records = policies or list(self.lineup.needed), self.read()
        if self.lineup.team:
            worth = score or (lambda one: score_team(one, self.lineup.role, self.title))
            records = {key: {**one, "correct": worth(one)} for key, one in records.items()}
        found = responses(records, self.questions.problems, self.samples, names)
        if np.isnan(found.correct_QN).all():
            raise UserError(f"{self.title}: nothing was answered; look at the failures above")
        return found


def make_job(
    lineup: Lineup,
    questions: Questions,
    settings: Asking,
    folder: Path,
    *,
    title: str,
    samples: int | None = None,
    keyed: bool = False,
) -> Job:
    """A job with the place of its responses.

    Args:
        folder: where they are stored.
        samples: of each question; by default the settings'.
        keyed: whether responses that were sampled otherwise may lie beside these, and not be
            refused.
    """
    who = {role: [[one.name, one.identity] for one in own] for role, own in lineup.policies.items()}
    identity = {
        "policies": who,
        "environment": [lineup.env, lineup.role, lineup.mode, *lineup.roles],
        "settings": to_plain(lineup.settings),
        "problems": [questions.name, questions.fingerprint],
        "sampling": [settings.temperature, settings.top_p],
        "seed": settings.seed,
    }
    if lineup.told is not None:
        told = json.dumps(dict(lineup.told), sort_keys=True)
        identity["told"] = hashlib.sha256(told.encode()).hexdigest()
    name = lineup.name
    if keyed:
        key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        name = f"{name}-{key[:12]}"
    stored = Completions(folder / questions.folder / f"{name}.jsonl", identity)
    return Job(title, lineup, questions, samples or settings.samples, stored)


def why_unplayed(role: str, title: str) -> str:
    """Why a role that is asked and that nobody plays ends a comparison."""
    return (
        f"{title}: {role} has no model there; name one with --team {role}=WHAT, or list it "
        f'as silent in the suite\'s file: "silent": ["{role}"]'
    )


def ask_missing(jobs: Sequence[Job], settings: Asking, console: Console) -> None:
    """Sample what the jobs lack.

    Raises:
        UserError: what is stored was sampled otherwise, or is damaged.
    """
    missing = [job for job in jobs if job.missing()]
    if missing:
        # Torch and transformers wait until something has to be sampled.
        from coterie.comparison.ask import ask

        ask(missing, settings, console)
