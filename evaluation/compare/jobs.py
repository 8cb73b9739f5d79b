"""Sampling jobs: who answers which questions, and where the responses are stored."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from coterie.agents.team.settings import ScoringSettings
from coterie.datatypes import Problem, UserError
from coterie.evaluation.compare.output import show_plain
from coterie.evaluation.compare.policies import NamedPolicy
from coterie.evaluation.compare.responses import (
    Completions,
    Record,
    Responses,
    responses,
    score_team,
)
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.problems.canonical import problem_key
from coterie.problems.evaluation_sets import merge
from coterie.problems.mixture import short_names
from coterie.problems.opening import open_source, trains_on
from coterie.problems.split import hold_out, sample
from coterie.rewards.grading.checkers import DEFAULT
from coterie.training.config.serialize import to_plain
from coterie.training.run.cut_off import cut_off, limit_of


@dataclass(frozen=True)
class Questions:
    """The questions from one set of problems."""

    name: str
    """The set, as the user named it."""
    problems: tuple[Problem, ...]
    fingerprint: str
    """Fingerprint of the whole source, whichever part is used."""

    @property
    def folder(self) -> str:
        """A safe file name; names of sets may contain slashes and question marks."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.")[:60]
        return f"{readable}-{hashlib.sha256(self.name.encode()).hexdigest()[:6]}"


def open_questions(names: Sequence[str], settings: ComparisonSettings) -> list[Questions]:
    """The first questions of every set; a larger number extends the same list.

    Raises:
        UserError: a set that cannot be opened, or is named twice.
    """
    if len(set(names)) < len(names):
        raise UserError("--problems names the same problems twice; name each set once")
    opened: list[Questions] = []
    for name in names:
        source = open_source(name, purpose="eval", seed=settings.seed)
        count = settings.questions
        if settings.held_out and (source.size is None or trains_on(name)):
            count = settings.held_out
        problems, _ = hold_out(source, None, count or None, settings.seed)
        opened.append(Questions(name, problems, source.fingerprint))
    return opened


def further_questions(
    scored: Sequence[Questions], source: str, count: int, settings: ComparisonSettings
) -> Questions | None:
    """Draw at most ``count`` questions that are not scored from ``source``, or from the scored sets
    if it is empty; None if there are none. Where sets call different questions alike, the name of
    the set stands before the ids."""
    taken = {problem_key(problem) for questions in scored for problem in questions.problems}
    drawn_by_key: dict[str, Problem] = {}
    sets: list[list[Problem]] = []
    names = [source] if source else [questions.name for questions in scored]
    for index, name in enumerate(names):
        # Equal shares of the sets; a set that has too few leaves its share to the next.
        wanted = count * (index + 1) // len(names) - len(drawn_by_key)
        opened = open_source(name, purpose="train" if source else "eval", seed=settings.seed)
        if opened.size is not None or source:
            excluded = frozenset((*taken, *drawn_by_key))
            drawn = sample(opened, wanted, settings.seed, excluded)
            problems = [drawn[number] for number in range(drawn.size or 0)]
        else:
            # A generator goes on after the questions that are scored.
            used = len(scored[index].problems)
            problems = hold_out(opened, None, used + wanted, settings.seed)[0][used:]
        new = {problem_key(problem): problem for problem in problems}
        sets.append([problem for key, problem in new.items() if key not in drawn_by_key])
        drawn_by_key |= new
    if not drawn_by_key:
        return None
    fingerprint = hashlib.sha256("\n".join(drawn_by_key).encode()).hexdigest()
    problems, _ = merge(short_names(names), sets)
    return Questions("+".join(names), problems, fingerprint)


@dataclass(frozen=True)
class Lineup:
    """The policies of an environment's roles, and the role whose answers are the responses."""

    name: str
    """Also the name of the file of responses."""
    env: str
    settings: Any
    """Settings of the environment."""
    mode: str
    """Mode of the environment."""
    policies: Mapping[str, tuple[NamedPolicy, ...]]
    """Role -> its policies, which take its agents in turn; a role without policies is silent."""
    role: str
    """The role whose answers are the responses; may be empty for a team."""
    stream: tuple[str, ...] = ()
    """Key of the random stream; lineups with the same key share their seeds."""
    answers: int = 1
    """Responses per episode."""
    extra_values: tuple[str, ...] = ()
    """Further values to store with a response: names that the environment reports, ``probability``,
    ``tokens``, and ``turns``, the spans of sampled tokens."""
    replies: Mapping[str, Sequence[str]] | None = None
    """Problem id -> fixed replies of the experts in seat order; the experts are not sampled."""
    silent: tuple[str, ...] | None = None
    """Roles that answer with nothing. Asking another role without a policy is an error. None: all
    roles without a policy are silent."""
    roles: tuple[str, ...] = ()
    """Custom roles of the environment; empty: its default roles."""
    team: bool = False
    """Whether all policies are scored together and the reward of each agent is stored."""

    @property
    def limit(self) -> tuple[int, str]:
        """Tokens of an answer, and the setting's flag; see :func:`limit_of`."""
        return limit_of(self.settings, evaluated=self.mode == "eval")

    @property
    def needed(self) -> dict[str, NamedPolicy]:
        """All policies of the lineup by name."""
        return {policy.name: policy for players in self.policies.values() for policy in players}


@dataclass(frozen=True)
class Job:
    """One lineup on one set of problems."""

    title: str
    lineup: Lineup
    questions: Questions
    samples: int
    stored: Completions

    def read(self) -> dict[tuple[str, int], Record]:
        """The stored records of its problems and samples; a folder may hold more of both."""
        ids = {problem.id for problem in self.questions.problems}
        return {
            (problem, number): record
            for (problem, number), record in self.stored.read().items()
            if problem in ids and number < self.samples
        }

    def missing(self) -> list[tuple[Problem, int]]:
        """(problem, episode) of missing responses, ordered by episode, so that an interruption
        leaves complete samples."""
        stored, each = self.read(), self.lineup.answers
        return [
            (problem, episode)
            for episode in range(-(-self.samples // each))
            for problem in self.questions.problems
            if any(
                (problem.id, number) not in stored
                for number in range(episode * each, min((episode + 1) * each, self.samples))
            )
        ]

    def cut_off(self, flag: str) -> str:
        """A sentence on the stored answers that were cut off; empty if they are few.

        Args:
            flag: the flag that sets the limit, where the environment has such a setting.
        """
        records = self.read().values()
        answers = sum(len(record.get("earned") or ()) or 1 for record in records)
        limit, known = self.lineup.limit
        broken_off = sum(record.get("cut", 0) for record in records)
        return cut_off(broken_off, answers, limit, flag if known else "")

    def responses(
        self,
        policies: Sequence[str] = (),
        score: Callable[[Mapping[str, Any]], float] | None = None,
    ) -> Responses:
        """The stored responses as arrays. ``policies`` selects whose token use is included; the
        default is the lineup's. ``score`` maps a team's record to its score.

        Raises:
            UserError: there is no response at all.
        """
        names, records = policies or list(self.lineup.needed), self.read()
        if self.lineup.team:
            score = score or (lambda record: score_team(record, self.lineup.role, self.title))
            records = {key: {**record, "correct": score(record)} for key, record in records.items()}
        answers = responses(records, self.questions.problems, self.samples, names)
        if np.isnan(answers.correct_QN).all():
            raise UserError(f"{self.title}: nothing was answered; look at the failures above")
        return answers


def _other_grading(scoring: ScoringSettings) -> dict[str, Any]:
    """The settings that can change verdicts and are not the default, without the checker."""
    usual = to_plain(ScoringSettings())
    same = ("checker", "encoder", "programs", "workers")
    return {
        name: value
        for name, value in to_plain(scoring).items()
        if name not in same and value != usual[name]
    }


def make_job(
    lineup: Lineup,
    questions: Questions,
    settings: ComparisonSettings,
    folder: Path,
    *,
    title: str,
    samples: int | None = None,
    keyed: bool = False,
) -> Job:
    """A job with the path of its responses.

    Args:
        folder: folder of the responses.
        samples: samples per question (default: from ``settings``).
        keyed: put a hash of the sampling settings into the file name, so that responses sampled
            with other settings get another file instead of an error.
    """
    who = {
        role: [[policy.name, policy.identity] for policy in players]
        for role, players in lineup.policies.items()
    }
    identity: dict[str, Any] = {
        "policies": who,
        "environment": [lineup.env, lineup.role, lineup.mode, *lineup.roles],
        "settings": to_plain(lineup.settings),
        "problems": [questions.name, questions.fingerprint],
        "sampling": [settings.temperature, settings.top_p],
        "seed": settings.seed,
    }
    if settings.scoring.checker != DEFAULT:
        identity["checker"] = settings.scoring.checker
    if graded := _other_grading(settings.scoring):
        identity["grading"] = graded
    if lineup.replies is not None:
        replies = json.dumps(dict(lineup.replies), sort_keys=True)
        identity["told"] = hashlib.sha256(replies.encode()).hexdigest()
    name = lineup.name
    if keyed:
        key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        name = f"{name}-{key[:12]}"
    stored = Completions(folder / questions.folder / f"{name}.jsonl", identity)
    return Job(title, lineup, questions, samples or settings.samples, stored)


def why_unplayed(role: str, title: str) -> str:
    """The error message for a role that is asked but has no policy."""
    return (
        f"{title}: {role} has no model there; name one with --team {role}=WHAT, or list it "
        f'as silent in the suite\'s file: "silent": ["{role}"]'
    )


def sample_missing(
    jobs: Sequence[Job], settings: ComparisonSettings, console: Console, limited_by: str = ""
) -> None:
    """Sample the missing responses of the jobs, and name the jobs with many answers cut off.

    Args:
        limited_by: the flag that limits the length of answers; empty: none does.

    Raises:
        UserError: stored responses were sampled with other settings, or are damaged.
    """
    missing = [job for job in jobs if job.missing()]
    if missing:
        # Import torch and transformers only if something has to be sampled.
        from coterie.evaluation.compare.sample_responses import sample_jobs

        sample_jobs(missing, settings, console)
    for job in jobs:
        if sentence := job.cut_off(limited_by):
            show_plain(console, f"{job.title}: {sentence}")
