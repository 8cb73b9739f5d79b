"""Roles that learn in their own way: ``--agents.ROLE.algo NAME``, ``--agents.ROLE.algo.*`` and
``--agents.ROLE.learner.*`` override what ``--algo`` and ``--learner.*`` say for all."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from coterie import algorithms
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms import Algorithm, LearnerSettings
from coterie.cli.arguments import check_once, flag_of, value_of
from coterie.cli.flags import parse_flags
from coterie.cli.help_text import ALL
from coterie.datatypes import UserError
from coterie.training.config.model_defaults import as_flag
from coterie.training.config.serialize import flat, override, to_plain
from coterie.training.config.train_settings import TrainSettings, defaults

FIELDS = ("algorithm", "algo", "learner")
"""The fields of :class:`AgentSettings` that are set here."""
OF_A_STEP = ("dynamic_sampling", "max_generation_batches", "generation_batch")
"""Settings of an algorithm that concern a whole step, so that roles cannot differ in them."""

_FLAG = re.compile(r"--agents\.(\w+)\.(?:algo|learner)(?:[.=]|$)")


def split(args: Sequence[str], roles: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Split a command line into (all other words, role -> the words about its learning)."""
    rest: list[str] = []
    by_role: dict[str, list[str]] = {}
    words = rest
    for word in args:
        if word.startswith("--"):
            flag = _FLAG.match(word)
            words = by_role.setdefault(flag[1], []) if flag and flag[1] in roles else rest
        words.append(word)
    return rest, by_role


def with_role_learning(
    settings: TrainSettings,
    *,
    rates: Mapping[str, float],
    stored: Mapping[str, Mapping[str, Any]],
    flags: Mapping[str, Sequence[str]],
    prog: str,
) -> TrainSettings:
    """``settings`` with the algorithms and learners of single roles.

    Args:
        settings: with the team's algorithm and learner.
        rates: role -> its learning rate by default, if that is not the team's.
        stored: role -> values of a file by the names in :data:`FIELDS`; they override the rates.
        flags: role -> words of the command line; they override the file.
        prog: what messages call the program.

    Raises:
        UserError: the role does not learn, or a value does not fit.
    """
    agents = dict(settings.agents)
    for role, agent in settings.agents.items():
        values, words = stored.get(role, {}), list(flags.get(role, ()))
        if (words or any(values.values())) and not agent.trained:
            raise UserError(
                f"{role} does not learn: leave out "
                f"{words[0].partition('=')[0] if words else f'[agents.{role}.learner] and algo'}, "
                f"or train it with --train-role"
            )
        if words or values or (agent.trained and role in rates):
            agents[role] = _with_learning(
                settings,
                role,
                rate=rates.get(role, settings.learner.lr),
                values=values,
                words=words,
                prog=prog,
            )
    return dataclasses.replace(settings, agents=agents)


def _with_learning(
    settings: TrainSettings,
    role: str,
    *,
    rate: float,
    values: Mapping[str, Any],
    words: list[str],
    prog: str,
) -> AgentSettings:
    check_once(words)
    name = _take_name(role, words) or values.get("algorithm") or ""
    algo = settings.algo
    if name:
        algo = defaults(dataclasses.replace(settings.choice, algo=name)).algo
    given = values.get("algo") or {}
    named = value_of(flag_of(f"--agents.{role}.algo.reduction"), words) or given.get("reduction")
    if named not in (None, algo.reduction):
        algo = dataclasses.replace(algo, length=0)  # the team's is of another reduction
    algo = override(algo, given, at=f"agents.{role}.algo.")
    learner = override(
        dataclasses.replace(settings.learner, lr=rate),
        values.get("learner") or {},
        at=f"agents.{role}.learner.",
    )
    if words:
        own = dataclasses.make_dataclass(
            "Role",
            [("algo", type(algo), algo), ("learner", LearnerSettings, learner)],
            frozen=True,
        )
        agents = dataclasses.make_dataclass("Agents", [(role, own, own())], frozen=True)
        kind = dataclasses.make_dataclass("Settings", [("agents", agents, agents())], frozen=True)
        parsed = getattr(parse_flags(kind, words, prog=prog, help_flag=ALL).agents, role)
        algo, learner = parsed.algo, parsed.learner
    _check_same_sampling(role, algo, settings.algo)
    return dataclasses.replace(
        settings.agents[role],
        algorithm=name,
        algo=None if algo == settings.algo else algo,
        learner=None if learner == settings.learner else learner,
    )


def _check_same_sampling(role: str, algo: Algorithm, team: Algorithm) -> None:
    """Refuse another sampling of steps than the team's."""
    for field in OF_A_STEP:
        if getattr(algo, field) == (value := getattr(team, field)):
            continue
        flag = field.replace("_", "-")
        raise UserError(
            f"--agents.{role}.algo: a step is sampled in one way for all roles, so its {flag} "
            f"must be the team's: add {as_flag(f'agents.{role}.algo.{field}', value)}, or change "
            f"--algo.{flag}"
        )


def _take_name(role: str, words: list[str]) -> str:
    """Remove ``--agents.ROLE.algo NAME`` from ``words``; return the name, or nothing."""
    flag = f"--agents.{role}.algo"
    for index, word in enumerate(words):
        given, equals, name = word.partition("=")
        if given == flag:
            name = name if equals else "".join(words[index + 1 : index + 2])
            if not name or name.startswith("--"):
                raise UserError(f"{flag} needs the name of an algorithm")
            del words[index : index + (1 if equals else 2)]
            return name
    return ""


def roles_line(settings: TrainSettings) -> str:
    """A line that names every role that learns differently, with its flags; empty if none does."""
    usual = _values(settings.algo, settings.learner)
    parts = []
    for role, agent in settings.agents.items():
        own = _values(agent.algo or settings.algo, agent.learner or settings.learner)
        base = usual
        if agent.algorithm:
            base = usual | _values(algorithms.get(agent.algorithm), settings.learner)
        flags = [f"algo {agent.algorithm}"] if agent.algorithm else []
        flags += [
            as_flag(name, value).removeprefix("--")
            for name, value in own.items()
            if value not in (usual.get(name), base.get(name))
        ]
        if flags:
            parts.append(f"{role} ({', '.join(flags)})")
    return f"Roles that learn differently: {'; '.join(parts)}" if parts else ""


def _values(algo: Algorithm, learner: LearnerSettings) -> dict[str, Any]:
    return flat({"algo": to_plain(algo), "learner": to_plain(learner)})
