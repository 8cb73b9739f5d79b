"""Refusals of settings that somebody chose and that change nothing.

Defaults of environments and presets stay: ``--algo.distillation.beta 0`` is enough to turn
distillation off.
"""

import dataclasses
from collections.abc import Iterator

from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import unmet
from coterie.envs.presets import preset_called
from coterie.training.config.model_defaults import as_flag
from coterie.training.config.presets import lay_over
from coterie.training.config.train_settings import Choice, TrainSettings, defaults


def idle_in_environment(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """Refusals of ``--env`` settings whose :class:`~coterie.datatypes.Needs` are not met."""
    if settings.env is None:
        return
    default = _before_flags(settings.choice).env
    usual = {field.name: field.default for field in dataclasses.fields(settings.env)}
    for name, needs in unmet(settings.env):
        value, other = getattr(settings.env, name), getattr(settings.env, needs.other)
        yield (
            value not in (getattr(default, name), usual[name]),
            f"{_flag(name, value)} does nothing with {_flag(needs.other, other)}; leave it out, or "
            f"{f'choose {needs.values[0]}' if needs.values else 'change that'}",
        )


def _flag(name: str, value: object) -> str:
    return as_flag(f"env.{name}", value)


def idle_distillation(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """Refusals of distillation settings that no role uses, because its beta is 0."""
    algorithms, usual = settings.algorithms, settings.algo.distillation
    if not any(algorithm.distillation.beta for algorithm in settings.learned_by.values()):
        yield from _refusals("--algo.", usual, _before_flags(settings.choice).algo.distillation)
    for role, algorithm in algorithms.by_role.items():
        name = settings.agents[role].algorithm
        choice = dataclasses.replace(settings.choice, algo=name, preset=None)
        begun = _before_flags(choice).algo.distillation if name else usual
        yield from _refusals(algorithms.at(role), algorithm.distillation, begun)


def _refusals(at: str, chosen: Distillation, default: Distillation) -> Iterator[tuple[bool, str]]:
    for field in dataclasses.fields(Distillation):
        value = getattr(chosen, field.name)
        name = field.name.replace("_", "-")
        yield (
            not chosen.beta and value not in (getattr(default, field.name), field.default),
            f"{at}distillation.{name} does nothing without {at}distillation.beta, such as 1",
        )


def _before_flags(choice: Choice) -> TrainSettings:
    before_flags = defaults(choice)
    if choice.preset:
        before_flags = lay_over(preset_called(choice.preset, choice.env), before_flags)
    return before_flags
