"""The definition of a suite, and the registered suites."""

import dataclasses
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coterie import envs
from coterie.datatypes import (
    Problem,
    UserError,
    check_fields,
    did_you_mean,
    role_of,
    suggest,
    user_path,
)
from coterie.envs.solo import SoloSettings
from coterie.evaluation.compare.jobs import Lineup, why_unplayed
from coterie.evaluation.compare.policies import NAME, NamedPolicy
from coterie.evaluation.compare.responses import score_team
from coterie.rewards.grading.answers.checker import UNGRADED
from coterie.rewards.grading.scorer import AnswerScorer
from coterie.rollouts import Deadlines
from coterie.training.config.benchmark_defaults import PROBLEMS, are_tiny, asking, is_made_for_tiny


@dataclass(frozen=True)
class Suite:
    """An environment in which a policy answers alone or a team plays, and its problems."""

    name: str
    env: str
    """Name of the environment, or ``pkg.module:Class``."""
    problems: tuple[str, ...]
    """Sets of problems, each named as for ``train.py``."""
    role: str = ""
    """The role of a single policy, and the role whose answer counts for a team. Empty: only teams
    play, and their reward counts."""
    silent: tuple[str, ...] = ()
    """Roles that answer with nothing if they have no policy."""
    mode: str = "eval"
    """Mode of the environment in which a single policy is asked once, without earlier replies."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Environment settings by name; they override the defaults of ``train.py``."""
    workflow: str | None = None
    """Mode in which the role ``expert`` answers first and the policy sees its replies."""
    roles: tuple[str, ...] = ()
    """Custom roles of the environment; empty: its default roles."""
    bare: bool = False
    """Whether the suite is just an environment; it then takes all settings of the runs."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise UserError(
                f"suite {self.name[:60]!r}: a name has letters, digits, dots and dashes, at most "
                "41, a letter or a digit first; files are called after it"
            )
        if not self.problems:
            raise UserError(f"suite {self.name}: name at least one set of problems")


SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        *(Suite(env=spec.name, **spec.suite) for spec in envs.registered() if spec.suite),
        Suite(
            "math",
            "coterie.envs.solo:SoloEnv",
            ("gsm8k", "math500", "aime24", "aime25"),
            "solver",
        ),
    )
}


def suite_called(name: str) -> Suite:
    """Find a suite: a registered suite, a JSON file with a suite's fields, or an environment with
    its default problems.

    Raises:
        UserError: none of these fits, or the file is invalid.
    """
    if name in SUITES:
        return SUITES[name]
    path = user_path(name)
    if path.suffix == ".json" and path.is_file():
        return _suite_of_file(name, path)
    if ":" in name or name in envs.names():
        return _bare(name)
    raise UserError(
        f"unknown suite {name!r}; {did_you_mean(name, SUITES)}known: {', '.join(SUITES)}; or a "
        "JSON file with a suite's fields, or an environment as train.py --env names it"
    )


def _suite_of_file(name: str, path: Path) -> Suite:
    """Read the suite of a JSON file; ``name`` is what the user calls the file."""
    try:
        fields = _tuples(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name} is not JSON ({error})") from None
    except OSError as error:
        raise UserError(f"{name} cannot be read ({error.strerror})") from None
    values: dict[str, Any] = {"name": path.stem} | fields if isinstance(fields, dict) else {}
    required = {"env", "problems"}
    optional = {field.name for field in dataclasses.fields(Suite)} - {*required, "bare"}
    if not required <= set(values) <= required | optional:
        raise UserError(
            f"{name} describes no suite: an object with {', '.join(sorted(required))}, "
            f"and as you like {', '.join(sorted(optional))}"
        )
    check_fields(Suite, values, at=f"{name}: ")
    return Suite(**values)


def _bare(env: str) -> Suite:
    spec = envs.spec(env)
    problems = {"train": "chains", **spec.defaults.get("problems", {})}
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", spec.name).strip("-.")[-41:].lstrip("-._")
    return Suite(name, env, tuple(problems.get("eval", ())) or (problems["train"],), bare=True)


def fitting(suite: Suite, models: Collection[str]) -> dict[str, Any]:
    """Settings for ``models`` that replace the defaults for tiny models, by name: environment
    settings, and ``problems`` for a registered suite or a bare environment."""
    if are_tiny(models):
        return {}
    ours = suite.bare or (suite.name in SUITES and suite.problems == SUITES[suite.name].problems)
    made = {"problems": (PROBLEMS,)} if ours and is_made_for_tiny(suite.problems) else {}
    known = settings_of(suite)
    return made | {n: value for n, value in asking(suite.env).items() if hasattr(known, n)}


def check_played(suite: Suite, played: Collection[str], problem: Problem) -> None:
    """Play ``problem`` once with an empty answer, before any model is loaded; the environment's own
    replaces one that needs a grader. Only the roles ``played`` have a policy.

    Raises:
        UserError: a role without a policy is asked, or the score is not reported.
    """
    scorer = AnswerScorer()
    env = envs.make(
        suite.env, settings=settings_of(suite), roles=suite.roles or None, scorer=scorer
    )
    graded = problem.kind not in UNGRADED
    options = {"mode": suite.mode, **({"problem": problem} if graded else {})}
    observations, infos = env.reset(seed=0, options=options)
    for _ in range(Deadlines().turns if env.agents else 0):
        acting = [agent for agent in env.agents if observations[agent].get("active", 1)]
        for role in map(role_of, acting):
            if role not in {*played, *suite.silent}:
                raise UserError(why_unplayed(role, f"suite {suite.name}"))
        observations, *_, infos = env.step({agent: np.array([ord("1")]) for agent in acting})
        if not env.agents:
            break
    if not env.agents:
        of_role = [info for agent, info in infos.items() if role_of(agent) == suite.role]
        correct = next((info["correct"] for info in of_role if "correct" in info), None)
        outcome = [info["outcome"] for info in infos.values() if "outcome" in info]
        record = {"correct": correct, "outcome": outcome, "earned": dict.fromkeys(infos, 0.0)}
        score_team(record, suite.role, f"suite {suite.name}")
    env.close()
    scorer.close()


def lineup_of(
    suite: Suite,
    name: str,
    players: Mapping[str, tuple[NamedPolicy, ...]],
    stream: tuple[str, ...],
    *,
    team: bool,
) -> Lineup:
    """The lineup of a suite with these policies."""
    return Lineup(
        name,
        suite.env,
        settings_of(suite),
        suite.mode,
        players,
        suite.role,
        stream=stream,
        silent=suite.silent,
        roles=suite.roles,
        team=team,
    )


def settings_of(suite: Suite) -> Any:
    """The environment's settings: class defaults, then training defaults, then the suite's.

    Raises:
        UserError: an unknown setting or an invalid value.
    """
    kind: Any = SoloSettings
    defaults: Mapping[str, Any] = {}
    if suite.env != "coterie.envs.solo:SoloEnv":
        spec = envs.spec(suite.env)
        kind, defaults = spec.settings, spec.defaults.get("env", {})
    if kind is None:
        if suite.settings:
            raise UserError(f"suite {suite.name}: {suite.env} takes no settings; leave them out")
        return None
    values = {**defaults, **suite.settings}
    known = {field.name for field in dataclasses.fields(kind)}
    if unknown := sorted(set(values) - known):
        near = suggest(unknown[0], known)
        raise UserError(f"suite {suite.name}: {suite.env} has no setting {unknown[0]}; {near}")
    check_fields(kind, values, at=f"suite {suite.name}: ")
    return kind(**values)


def _tuples(value: Any) -> Any:
    """Convert JSON lists to tuples."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
