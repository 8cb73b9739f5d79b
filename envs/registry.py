"""Environments by name, by packaging entry point, and by path."""

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from typing import Any, Literal

import pettingzoo
from pettingzoo.env_registry.registration import parallel_registry

from envs.adapt import adapt, is_text_env
from envs.padded_view import PaddedView
from envs.roles import roles_of
from envs.token_view import TokenView
from problems.source import ProblemSource
from vocabulary import Scorer, TokenCodec, UserError

View = Literal["token", "text", "padded"]

ENTRY_POINTS = "coterie.environments"
"""Packaging entry-point group; each entry names an :class:`EnvSpec`."""


@dataclass(frozen=True)
class EnvSpec:
    """What is known of an environment before it is built."""

    name: str
    version: int
    factory: str
    """``"module:callable"``; it may take the keywords ``settings``, ``roles``, ``scorer``,
    ``source``, ``tokenizers`` and ``render_mode``, and gives a PettingZoo environment."""
    settings: type | None = None
    """Frozen dataclass of settings, for environments that have any."""
    roles: tuple[str, ...] = ()
    """Roles when the user names none."""
    evaluation: str | None = None
    """``"module:attribute"`` of how it is evaluated."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What a run in it does unless told otherwise: plain values by the names of the command line,
    nested (``{"rollout": {"problems_per_step": 8}, "agents": {"judge": {"trained": False}}}``)."""

    @property
    def id(self) -> str:
        """Its id in PettingZoo's registry, such as ``core-teaching-v0``."""
        return f"{self.name}-v{self.version}"


_SPECS: dict[str, EnvSpec] = {}


def register(spec: EnvSpec) -> None:
    """Make an environment known by its name, here and to ``pettingzoo.make("parallel", id)``.

    Raises:
        ValueError: the name is taken by another environment.
    """
    if _SPECS.get(spec.name, spec) != spec:
        raise ValueError(f"environment {spec.name!r} is registered already")
    _SPECS[spec.name] = spec
    if spec.id not in parallel_registry:
        pettingzoo.register(
            "parallel", spec.id, entry_point="envs.registry:make", kwargs={"name": spec.name}
        )


def names() -> tuple[str, ...]:
    """Every known name, sorted; entry points are listed without being loaded."""
    return tuple(sorted({*_SPECS, *(entry.name for entry in entry_points(group=ENTRY_POINTS))}))


def spec(name: str) -> EnvSpec:
    """The environment called ``name``: a registered name or ``pkg.module:attribute``, where the
    attribute is an :class:`EnvSpec` or makes an environment.

    Raises:
        UserError: an unknown name, or one whose registration is broken, with the cause.
    """
    if name in _SPECS:
        return _SPECS[name]
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name == name:
            return _from_entry_point(entry)
    if ":" in name:
        found = _spec_at(name)
        return found if found.roles else replace(found, roles=_roles_of_made(found))
    raise UserError(f"unknown env {name!r}; known: {', '.join(names())}; or use pkg.module:Class.")


def make(
    name: str,
    *,
    settings: Any = None,
    codecs: Mapping[str, TokenCodec] | None = None,
    scorer: Scorer | None = None,
    source: ProblemSource | None = None,
    roles: Sequence[str] | None = None,
    view: View = "token",
    render_mode: str | None = None,
) -> pettingzoo.ParallelEnv[str, Any, Any]:
    """Build an environment.

    Args:
        name: a registered name or ``pkg.module:Class``; a class may be any PettingZoo environment
            with text or token actions (see :func:`envs.adapt.adapt`).
        settings: an instance of the environment's settings class; its defaults without one.
        codecs: role -> codec; UTF-8 bytes without one.
        scorer: checks answers; handed to environments that take one.
        source: problems to draw from; handed to environments that take one.
        roles: names of the roles; the environment's own without any.
        view: ``token`` (arrays of ids), ``text`` (strings) or ``padded`` (fixed shapes).
        render_mode: handed to the environment.

    Raises:
        UserError: an unknown name or view, or an argument that the environment does not take.
    """
    if view not in ("token", "text", "padded"):
        raise UserError(f"unknown view {view!r}; choose token, text or padded.")
    found = spec(name) if ":" not in name else _spec_at(name)
    wanted = {"settings": settings, "roles": roles, "render_mode": render_mode}
    offered = {"scorer": scorer, "source": source, "tokenizers": codecs}
    env = _build(found.factory, name, wanted, offered)
    if view == "text":
        if not is_text_env(env):
            env = adapt(env, view="text")
        return env
    env = TokenView(env, codecs) if is_text_env(env) else adapt(env, codecs)
    return PaddedView(env) if view == "padded" else env


def _build(
    factory: str, name: str, wanted: Mapping[str, Any], offered: Mapping[str, Any]
) -> pettingzoo.ParallelEnv[str, Any, Any]:
    """Call the factory with what was asked for, and with the services that it has a use for."""
    make_env = _load(factory)
    known = inspect.signature(make_env).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    arguments: dict[str, Any] = {}
    for key, value in wanted.items():
        if value is None:
            continue
        if key not in known and not takes_all:
            raise UserError(f"env {name!r} takes no {key}; leave it out.")
        arguments[key] = value
    arguments |= {
        key: value for key, value in offered.items() if value is not None and key in known
    }
    return make_env(**arguments)


def _spec_at(path: str) -> EnvSpec:
    made = _load(path)
    if isinstance(made, EnvSpec):
        return made
    if not callable(made):
        raise UserError(f"{path} is a {type(made).__name__}, not something that makes an env.")
    return EnvSpec(name=path, version=0, factory=path)


def _roles_of_made(spec: EnvSpec) -> tuple[str, ...]:
    env = _build(spec.factory, spec.name, {}, {})
    try:
        return roles_of(env.possible_agents)
    finally:
        env.close()


def _from_entry_point(entry: Any) -> EnvSpec:
    origin = f" by {entry.dist.name}" if entry.dist else ""
    try:
        found = entry.load()
    except Exception as error:
        # Whatever an import of somebody else's package raises.
        raise UserError(
            f"env {entry.name!r} is registered{origin} as {entry.value}, which cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, EnvSpec):
        raise UserError(
            f"env {entry.name!r} is registered{origin} as {entry.value}, which is a "
            f"{type(found).__name__}, not an envs.EnvSpec."
        )
    return found


def _load(path: str) -> Callable[..., Any]:
    module_name, _, attribute = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"env {path!r} cannot be loaded: {error}.") from error
    return found
