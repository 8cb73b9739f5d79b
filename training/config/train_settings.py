"""All settings of a run as one record."""

import dataclasses
import json
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro

from coterie import algorithms, envs
from coterie.agents.models.locate import TINY
from coterie.agents.team.settings import AgentSettings, ScoringSettings
from coterie.agents.team.teachers import teacher_models
from coterie.agents.vllm.settings import VllmSettings
from coterie.algorithms import ALGORITHMS, Algorithm, LearnerSettings
from coterie.algorithms.role_algorithms import RoleAlgorithms
from coterie.cli.extras import SETTINGS
from coterie.cli.plugins import load
from coterie.datatypes import UserError, unvalidated
from coterie.envs.registry import ask, takes_roles
from coterie.problems.prepare import ProblemSettings
from coterie.training.config.run_settings import (
    MAX_NEW_TOKENS,
    EvalSettings,
    RolloutSettings,
    RunSettings,
)
from coterie.training.config.serialize import override, to_plain
from coterie.training.warmup import WarmupSettings

T = TypeVar("T")

# Roles name files, flags and attributes. Python normalizes letters outside of ASCII.
_ROLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True)
class Choice:
    """The choices that decide which settings exist."""

    env: str
    algo: str
    roles: tuple[str, ...]
    """Empty: the environment's own."""
    train_role: tuple[str, ...] = ()
    """Roles that learn; empty: the environment's default."""
    preset: str | None = None
    resume: Path | None = None


@dataclass(frozen=True)
class TrainSettings:
    """Everything a run depends on. :func:`settings_class` adds the sections of extras."""

    choice: Choice
    env: Any
    """An instance of ``EnvSpec.settings``, or None if the environment has no settings."""
    algo: Algorithm
    agents: dict[str, AgentSettings]
    learner: LearnerSettings
    problems: ProblemSettings
    warmup: WarmupSettings
    scoring: ScoringSettings
    rollout: RolloutSettings
    vllm: VllmSettings
    eval: EvalSettings
    run: Annotated[RunSettings, tyro.conf.arg(name="")]
    """The run's own flags have no prefix: --steps, --seed, --run-dir."""

    def plain(self) -> dict[str, Any]:
        """The settings as JSON data for ``config.json``; :func:`restore` is the inverse."""
        plain = to_plain(self)
        plain["choice"].pop("resume")
        for name in ("run_dir", "doctor", "plan", "card"):
            plain["run"].pop(name)
        return plain

    def section(self, kind: type[T]) -> T:
        """The section of an extra, found by its class."""
        return next(value for value in vars(self).values() if isinstance(value, kind))

    @property
    def algorithms(self) -> RoleAlgorithms:
        """The algorithm of each role."""
        own = {role: agent.algo for role, agent in self.agents.items() if agent.algo}
        return RoleAlgorithms(self.algo, own)

    @property
    def learned_by(self) -> dict[str, Algorithm]:
        """Role -> its algorithm, for roles that learn."""
        algorithms = self.algorithms
        return {role: algorithms.of(role) for role, agent in self.agents.items() if agent.trained}

    @property
    def players(self) -> dict[str, AgentSettings]:
        """Who plays each role, and by ``ROLE|teacher`` the teachers that play none."""
        return self.agents | teacher_models(self.agents, self.learned_by)

    def learner_of(self, role: str) -> LearnerSettings:
        """The settings of the learner of ``role``."""
        return self.agents[role].learner or self.learner

    def make_env(self, **more: Any) -> Any:
        """Build the environment; ``more``: further arguments of :func:`coterie.envs.make`."""
        return make_env(self.choice, self.env, **more)

    def headline(self) -> str:
        """The line that users see while torch is imported."""
        learners = [role for role, agent in self.agents.items() if agent.trained]
        taught_by = (algorithm.distillation.teacher for algorithm in self.learned_by.values())
        played_by = (agent.model for agent in self.agents.values())
        models = dict.fromkeys([*played_by, *filter(None, taught_by)])
        return (
            f"{self.choice.env} with {self.choice.algo}: training {', '.join(learners)}; "
            f"loading torch, then {', '.join(models)}"
        )

    def loss_line(self) -> str:
        """A line on the parts of the loss that are added to a custom algorithm or advantage; empty
        without such parts, and for algorithms of the table."""
        algo = self.algo
        if self.choice.algo in ALGORITHMS and not algo.advantage:
            return ""
        by_teacher = "distillation from a teacher" if algo.distillation.teacher else ""
        parts = {
            by_teacher or "peer distillation": ("distillation.beta", algo.distillation.beta),
            "a KL penalty": ("kl-coefficient", algo.kl_coefficient),
            "a KL penalty in the reward": ("kl-in-reward", algo.kl_in_reward),
            "an entropy bonus": ("entropy-coefficient", algo.entropy_coefficient),
            "a penalty on long answers": ("overlong-limit", algo.overlong_limit),
        }
        shown = [f"{what} (--algo.{f} {value:g})" for what, (f, value) in parts.items() if value]
        if not shown:
            return ""
        custom = algo.advantage or self.choice.algo
        return f"The loss of {custom} also has {', '.join(shown)}; 0 turns a part off"


def make_env(choice: Choice, settings: Any, **more: Any) -> Any:
    """Build the chosen environment.

    Args:
        choice: names the environment and the roles.
        settings: of the environment; None: it has none.
        more: further arguments of :func:`coterie.envs.make`.
    """
    has_roles = settings is not None or takes_roles(choice.env)
    roles = choice.roles if has_roles else None
    return envs.make(choice.env, settings=settings, roles=roles, **more)


@lru_cache(maxsize=1)
def settings_class() -> type[TrainSettings]:
    """:class:`TrainSettings` with a field for each section that an extra adds."""
    kinds = {name: load(path, f"--{name}.*") for name, path in SETTINGS.items()}
    fields = [(n, kind, dataclasses.field(default_factory=kind)) for n, kind in kinds.items()]
    return dataclasses.make_dataclass("TrainSettings", fields, bases=(TrainSettings,), frozen=True)


def defaults(choice: Choice) -> TrainSettings:
    """The settings of ``choice`` before any flag."""
    settings, spec = _class_defaults(choice), envs.spec(choice.env)
    agents = {role: _agent(role, choice, spec) for role in choice.roles}
    of_env = {part: values for part, values in spec.defaults.items() if part != "agents"}
    if choice.train_role and spec.learning is not None:
        of_env["env"] = {**of_env.get("env", {}), **ask(spec, "learning", choice.train_role)}
    return override(dataclasses.replace(settings, agents=agents), of_env)


def _class_defaults(choice: Choice) -> TrainSettings:
    """The defaults of every settings class, without agents and ``EnvSpec.defaults``."""
    spec = envs.spec(choice.env)
    source = "--roles:"
    if choice.roles == tuple(spec.roles):
        source = f"--env {choice.env}: in its possible_agents"
    for role in choice.roles:
        if not _ROLE.fullmatch(role) or keyword.iskeyword(role) or hasattr(type, role):
            raise UserError(
                f"{source} {role[:80]!r} is not a name for a role; use letters (a to z), digits "
                "and underscores, a letter first, at most 64, and no word of Python's"
            )
    repeated = {role for role in choice.roles if choice.roles.count(role) > 1}
    if repeated:
        raise UserError(f"--roles names {', '.join(sorted(repeated))} twice; name each role once")
    if unknown := set(choice.train_role) - set(choice.roles):
        raise UserError(
            f"--train-role names {', '.join(sorted(unknown))}; the roles here are "
            f"{', '.join(choice.roles)}"
        )
    return settings_class()(
        choice=choice,
        env=spec.settings() if spec.settings is not None else None,
        algo=algorithms.get(choice.algo),
        agents={},
        learner=LearnerSettings(),
        problems=ProblemSettings(),
        warmup=WarmupSettings(),
        scoring=ScoringSettings(),
        rollout=RolloutSettings(),
        vllm=VllmSettings(),
        eval=EvalSettings(),
        run=RunSettings(),
    )


def token_limit(settings: TrainSettings) -> int:
    """Largest number of tokens in an answer."""
    return getattr(settings.env, "max_new_tokens", MAX_NEW_TOKENS)


_REPLICAS = 8
"""Episodes of each problem in an environment without settings, whose groups are these replicas."""


def replicas_of(settings: TrainSettings, metadata: Mapping[str, Any]) -> int:
    """Return the number of episodes that a step plays of each problem; ``metadata``: of the
    environment."""
    usual = 1 if settings.env is not None else _REPLICAS
    return settings.rollout.replicas or int(metadata.get("replicas", usual))


def with_limit_as_length(settings: TrainSettings) -> TrainSettings:
    """``settings`` with the environment's limit of tokens as the length of every algorithm that
    needs one and has none."""

    def limited(algo: Algorithm) -> Algorithm:
        if algo.reduction != "constant-length" or algo.length:
            return algo
        return dataclasses.replace(algo, length=token_limit(settings))

    agents = {
        role: dataclasses.replace(agent, algo=limited(agent.algo)) if agent.algo else agent
        for role, agent in settings.agents.items()
    }
    return dataclasses.replace(settings, algo=limited(settings.algo), agents=agents)


def _agent(role: str, choice: Choice, spec: envs.EnvSpec) -> AgentSettings:
    """A role's model, and whether it learns, before any flag."""
    shipped = (TINY / role / "config.json").is_file()
    agent = AgentSettings(model=f"tiny:{role}" if shipped else "")
    agent = override(agent, spec.defaults.get("agents", {}).get(role, {}))
    if choice.train_role:
        agent = dataclasses.replace(agent, trained=role in choice.train_role)
    return agent


def check_readable(choice: Choice, env: Any, algo: Algorithm) -> None:
    """Refuse settings of a plug-in that could not be restored from ``config.json``.

    Raises:
        UserError: names the setting.
    """
    parts = {f"--algo {choice.algo}": (algorithms.get(choice.algo), algo)}
    if env is not None:
        parts[f"--env {choice.env}"] = type(env)(), env
    for title, (default, chosen) in parts.items():
        if not _restores(default, chosen, to_plain(chosen)):
            plain = to_plain(chosen)
            lost = [name for name in plain if not _restores(default, chosen, {name: plain[name]})]
            name = next(iter(lost or plain))
            raise UserError(
                f"{title}: its setting {name} is {getattr(chosen, name)!r:.100}, which config.json "
                "cannot hold, so that the run could not be resumed; use numbers, text, truth "
                "values, tuples of them, and frozen dataclasses whose fields have defaults"
            )


def _restores(default: Any, chosen: Any, plain: Mapping[str, Any]) -> bool:
    """Whether ``plain``, values of ``chosen`` as JSON data, become these values again."""
    try:
        with unvalidated():
            restored = override(default, json.loads(json.dumps(plain)))
    except (UserError, TypeError, ValueError):
        return False
    return all(getattr(restored, name) == getattr(chosen, name) for name in plain)


def restore(plain: dict[str, Any]) -> TrainSettings:
    """The inverse of :meth:`TrainSettings.plain`.

    Raises:
        UserError, KeyError, TypeError or AttributeError: ``plain`` does not hold settings.
    """
    choice = override(Choice("", "", ()), plain["choice"])
    default = _class_defaults(choice)
    values = {key: value for key, value in plain.items() if key not in ("choice", "agents")}
    if not isinstance(values["env"], type(None) if default.env is None else dict):
        raise UserError(f"env does not hold the settings of {choice.env}")
    agents = {role: _restore_agent(role, plain["agents"][role], choice) for role in choice.roles}
    return with_limit_as_length(dataclasses.replace(override(default, values), agents=agents))


def _restore_agent(role: str, plain: dict[str, Any], choice: Choice) -> AgentSettings:
    values, at = dict(plain), f"agents.{role}."
    algo, learner = values.pop("algo", None), values.pop("learner", None)
    agent = override(AgentSettings(model=""), values, at=at)
    if algo is not None:
        usual = algorithms.get(agent.algorithm or choice.algo)
        agent = dataclasses.replace(agent, algo=override(usual, algo, at=f"{at}algo."))
    if learner is not None:
        settings = override(LearnerSettings(), learner, at=f"{at}learner.")
        agent = dataclasses.replace(agent, learner=settings)
    return agent
