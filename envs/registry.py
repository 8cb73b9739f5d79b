"""The registry: environments by name, by entry point, and by path."""

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import pettingzoo
from pettingzoo.env_registry.registration import parallel_registry

from coterie.cli.extras import ENVIRONMENT_KINDS
from coterie.cli.plugins import Plugins, load, origin
from coterie.datatypes import Scorer, TokenCodec, UserError, cause_of
from coterie.datatypes.validation import check_fields
from coterie.envs.adapt import adapt, is_text_env
from coterie.envs.contract import roles_of
from coterie.envs.env_spec import EnvSpec
from coterie.envs.guarded import Guarded, call
from coterie.envs.kinds import is_other, spec_of
from coterie.envs.padded_view import PaddedView
from coterie.envs.token_view import TokenView
from coterie.problems.source import ProblemSource

View = Literal["token", "text", "padded"]

PLUGINS = Plugins("coterie.environments", "env")
"""Entry points: the name is for ``--env``, the value an :class:`EnvSpec`, a PettingZoo environment
class, or a function that makes one."""
_SPECS: dict[str, EnvSpec] = {}


def register(spec: EnvSpec) -> None:
    """Register an environment by name, here and with ``pettingzoo.make("parallel", id)``.

    Raises:
        ValueError: another environment has that name.
    """
    if _SPECS.get(spec.name, spec) != spec:
        raise ValueError(f"environment {spec.name!r} is registered already")
    _SPECS[spec.name] = spec
    if spec.id not in parallel_registry:
        pettingzoo.register(
            "parallel",
            spec.id,
            entry_point="coterie.envs.registry:make",
            kwargs={"name": spec.name},
        )


def registered() -> tuple[EnvSpec, ...]:
    """Return all registered specs, in order of registration."""
    return tuple(_SPECS.values())


def names() -> tuple[str, ...]:
    """Return all known names, sorted; entry points are not loaded."""
    return tuple(sorted({*_SPECS, *PLUGINS.names()}))


def spec(name: str) -> EnvSpec:
    """Return the spec of ``name``: a registered name or ``pkg.module:attribute``, where the
    attribute is an :class:`EnvSpec` or makes an environment.

    Raises:
        UserError: the name is unknown, its registration is broken, or the environment has neither
            text nor token actions.
    """
    if name in _SPECS:
        for entry in PLUGINS.entries(name):
            warnings.warn(
                f"env {name!r} is built in, so {origin(entry)} is ignored. Its author must choose "
                f"another name; until then use --env {entry.value}.",
                stacklevel=2,
            )
    env_spec, title = _find(name)
    if env_spec.roles:
        return env_spec
    env = _build(env_spec, title)
    try:
        if not is_text_env(env):
            adapt(env, name=name)  # refuse unsupported environments before reading their roles
        return replace(env_spec, roles=roles_of(env.possible_agents))
    finally:
        call(env, "close")


def make(
    name: str,
    *,
    settings: Any = None,
    preset: str | None = None,
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
            with text or token actions (see :func:`coterie.envs.adapt.adapt`).
        settings: an instance of the environment's settings class; None: the defaults of
            ``train.py``.
        preset: name of a preset, such as ``core-tiny``, instead of ``settings``.
        codecs: role -> codec; roles without one use UTF-8 bytes.
        scorer: checks answers, in environments that take one.
        source: problems, in environments that take one.
        roles: names of the roles; None: the environment's defaults.
        view: ``token`` (arrays of ids), ``text`` (strings) or ``padded`` (fixed shapes).
        render_mode: passed to the environment.

    Raises:
        UserError: an unknown name, preset or view, or an argument that the environment does not
            take.
    """
    if view not in ("token", "text", "padded"):
        raise UserError(f"unknown view {view!r}; choose token, text or padded.")
    env_spec, title = _find(name)
    if preset is not None:
        from coterie.envs.presets import settings_of  # imports this module

        if settings is not None:
            raise UserError(f"{title}: a preset gives its settings; leave out one of the two.")
        settings = settings_of(name, preset)
    elif settings is None:
        settings = default_settings(env_spec)
    wanted = {"settings": settings, "roles": roles, "render_mode": render_mode}
    offered = {"scorer": scorer, "source": source, "tokenizers": codecs}
    env = _build(env_spec, title, wanted, offered)
    if view == "text":
        if not is_text_env(env):
            env = adapt(env, view="text", name=name)
        return env
    if not getattr(env, "speaks_tokens", False):
        env = _in_tokens(env, name, codecs)
    return PaddedView(env) if view == "padded" else env


def _in_tokens(
    env: Any, name: str, codecs: Mapping[str, TokenCodec] | None
) -> pettingzoo.ParallelEnv[str, Any, Any]:
    if not is_text_env(env):
        return adapt(env, codecs, name=name)
    # Registered environments are tested against the contract once, by their tests.
    return TokenView(env if name in _SPECS else Guarded(env, text=True), codecs)


def default_settings(spec: EnvSpec) -> Any:
    """Return the default settings of a run; None for environments without settings.

    Raises:
        UserError: ``EnvSpec.defaults`` names a setting that ``EnvSpec.settings`` does not have.
    """
    if spec.settings is None:
        return None
    own = spec.defaults.get("env", {})
    if unknown := sorted({*own} - {field.name for field in dataclasses.fields(spec.settings)}):
        raise UserError(
            f"env {spec.name!r}: EnvSpec.defaults names env.{unknown[0]}, which "
            f"{spec.settings.__name__} does not have."
        )
    return spec.settings(**own)


def make_plain(
    name: str, given: Callable[[Callable[..., Any]], Mapping[str, Any]], *, title: str
) -> Any:
    """Build the environment ``name`` without a view, whatever its actions are.

    Args:
        name: see :func:`make`.
        given: the environment's factory -> its keyword arguments.
        title: prefix of error messages.

    Raises:
        UserError: the result is neither a ``ParallelEnv`` nor an ``AECEnv``, or the factory does
            not take the keywords.
    """
    env_spec, _ = _find(name)
    make_env = _factory(env_spec, title)
    return _build(replace(env_spec, factory=partial(make_env, **given(make_env))), title)


def _find(name: str) -> tuple[EnvSpec, str]:
    """The spec of ``name``, and the prefix of messages about it."""
    if name in _SPECS:
        return _SPECS[name], f"env {name!r}"
    if is_other(name):
        return spec_of(name), f"env {name!r}"
    path, title = PLUGINS.find(name, (*names(), *(f"{kind}:ID" for kind in ENVIRONMENT_KINDS)))
    target = load(path, title)
    if isinstance(target, EnvSpec):
        if path != name and target.name != name:
            raise UserError(f"{title} is an EnvSpec named {target.name!r}; give both one name.")
        _check_spec(target, title)
        return target, title
    if not callable(target):
        raise UserError(
            f"{title} is a {type(target).__name__}; it must be a coterie.EnvSpec, a PettingZoo "
            "environment class or a function that makes one."
        )
    return _spec_of_factory(target, name, path, title), title


def _check_spec(target: EnvSpec, title: str) -> None:
    """Refuse a spec of others whose fields are of other types than their hints say."""
    _check_settings(target.settings, "EnvSpec.settings", title)
    if isinstance(target.roles, str):
        raise UserError(f'{title}: EnvSpec.roles is a text; write ("{target.roles}",).')
    # What a run's settings may be is tested where they are set.
    values = {
        field: dict.fromkeys(value) if isinstance(value, Mapping) else value
        for field, value in vars(target).items()
    }
    if isinstance(target.roles, list):
        values["roles"] = tuple(target.roles)
    check_fields(EnvSpec, values, at=f"{title}: EnvSpec.")


def _spec_of_factory(target: Callable[..., Any], name: str, path: str, title: str) -> EnvSpec:
    """The spec of a class or function of others: what a ConversationEnv says of itself."""
    rereads, roles = getattr(target, "rereads", None), getattr(target, "default_roles", ())
    takes_both = _takes(target, "settings") and _takes(target, "roles")
    settings = getattr(target, "settings_class", None) if takes_both else None
    _check_settings(settings, "settings_class", title)
    roles = roles if isinstance(roles, tuple) else ()
    return EnvSpec(name, 0, path, settings, roles, rereads=rereads)


def takes_roles(name: str) -> bool:
    """Whether the factory of the environment ``name`` has a keyword ``roles``."""
    env_spec, title = _find(name)
    return "roles" in _parameters(_factory(env_spec, title))


def _check_settings(settings: Any, what: str, title: str) -> None:
    if settings is None:
        return
    if not (is_dataclass(settings) and settings.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise UserError(f"{title}: {what} must be a frozen dataclass, each field a flag.")
    if lacking := _without_default(settings):
        raise UserError(f"{title}: give every setting a default; {', '.join(lacking)} has none.")


def _without_default(settings: Any) -> list[str]:
    """Names of a dataclass's fields without a default."""
    missing = dataclasses.MISSING
    return [
        field.name
        for field in dataclasses.fields(settings)
        if field.init and field.default is missing and field.default_factory is missing
    ]


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "check": lambda rules: [(bool(wrong), str(why)) for wrong, why in rules],
    "learns": tuple,
    "learning": dict,
}
"""Function of an :class:`EnvSpec` -> what brings its result into one form."""


def ask(spec: EnvSpec, name: str, *arguments: Any) -> Any:
    """Call a function of an :class:`EnvSpec`; its result has the form of :data:`_CONVERSIONS`.

    Args:
        spec: the environment's spec.
        name: ``learns``, ``learning``, ``rereads`` or ``check``.
        arguments: the function's arguments.

    Raises:
        UserError: the function fails, or raises this itself.
    """
    try:
        result = getattr(spec, name)(*arguments)
        return _CONVERSIONS[name](result) if name in _CONVERSIONS else result
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"env {spec.name!r}: EnvSpec.{name} failed: {cause_of(error)}.") from error


def _factory(spec: EnvSpec, title: str) -> Callable[..., Any]:
    return load(spec.factory, title) if isinstance(spec.factory, str) else spec.factory


def _parameters(make_env: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(make_env).parameters
    except (TypeError, ValueError):
        return {}


def _takes(make_env: Callable[..., Any], keyword: str) -> bool:
    known = _parameters(make_env)
    return keyword in known or any(p.kind is p.VAR_KEYWORD for p in known.values())


def _build(
    spec: EnvSpec,
    title: str,
    wanted: Mapping[str, Any] = MappingProxyType({}),
    offered: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Call the factory with ``wanted``, which it must take, and ``offered``, which it may take."""
    make_env = _factory(spec, title)
    known = _parameters(make_env)
    arguments: dict[str, Any] = {}
    for key, value in wanted.items():
        if value is None:
            continue
        if not _takes(make_env, key):
            raise UserError(f"{title} takes no {key}; leave it out.")
        arguments[key] = value
    arguments |= {
        key: value for key, value in offered.items() if value is not None and key in known
    }
    try:
        env = make_env(**arguments)
    except UserError:
        raise
    except Exception as error:
        if spec.name in _SPECS:
            # A bug of a registered environment: its traceback says more than a sentence.
            raise
        raise UserError(f"{title} cannot be built: {cause_of(error)}.") from error
    if not isinstance(env, pettingzoo.ParallelEnv | pettingzoo.AECEnv):
        raise UserError(
            f"{title} makes a {type(env).__name__}, which is neither a pettingzoo.ParallelEnv nor "
            "a pettingzoo.AECEnv."
        )
    agents = getattr(env, "possible_agents", None)
    if not agents or not all(isinstance(agent, str) for agent in agents):
        raise UserError(
            f"{title}: possible_agents of {type(env).__name__} is {agents!r:.100}; list the names "
            "of everyone who may ever act when it is built, such as ['alice_0', 'bob_0']."
        )
    return env
