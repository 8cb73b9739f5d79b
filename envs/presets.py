"""Presets by name."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coterie.cli.plugins import load
from coterie.datatypes import UserError, suggest_briefly
from coterie.envs.env_spec import EnvSpec
from coterie.envs.preset import Preset
from coterie.envs.registry import default_settings, registered, spec


def known(env: str = "") -> Mapping[str, Preset]:
    """Return name -> preset, for all registered environments and for ``env``.

    Args:
        env: a further environment, which need not be registered; empty: none.

    Raises:
        UserError: there is no such environment, or its presets cannot be loaded.
    """
    specs = {registered_spec.name: registered_spec for registered_spec in registered()}
    if env and env not in specs:
        specs[env] = spec(env)
    return {
        name: preset
        for env_spec in specs.values()
        for name, preset in _presets_of(env_spec).items()
    }


def published() -> Mapping[str, Preset]:
    """Return name -> preset, of those with a paper's own settings and models."""
    return {name: preset for name, preset in known().items() if not preset.own}


def preset_called(name: str, env: str = "") -> Preset:
    """Return the preset called ``name``.

    Raises:
        UserError: there is none.
    """
    presets = known(env)
    if name in presets:
        return presets[name]
    raise UserError(f"unknown preset {name!r}; {suggest_briefly(name, presets)}")


def settings_of(env: str, preset: str | None = None) -> Any:
    """Return an environment's default settings for a run, or those of a preset.

    Args:
        env: a name as for ``--env``.
        preset: a name as for ``--preset``, such as ``core-tiny``.

    Raises:
        UserError: there is no such environment or preset, or the preset is for another
            environment.
    """
    env_spec = spec(env)
    settings = default_settings(env_spec)
    if preset is None:
        return settings
    chosen = preset_called(preset, env)
    if chosen.env != env:
        raise UserError(f"preset {preset} is for {chosen.env}, not for {env}")
    learns = env_spec.learning(chosen.train_role) if env_spec.learning and chosen.train_role else {}
    own = {**learns} | {
        path.removeprefix("env."): setting.value
        for path, setting in chosen.settings.items()
        if path.startswith("env.")
    }
    if lacking := [path for path in own if not hasattr(settings, path)]:
        raise UserError(
            f"preset {preset} sets {lacking[0]}, which {env} does not have; make it without one"
        )
    return replace(settings, **own)


def _presets_of(env: EnvSpec) -> Mapping[str, Preset]:
    return load(env.presets, f"env {env.name!r}") if env.presets else {}
