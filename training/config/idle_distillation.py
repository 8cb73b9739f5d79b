"""Settings of distillation that do nothing, because beta is 0."""

import dataclasses
from collections.abc import Iterator

from coterie.algorithms.algorithm import Distillation
from coterie.envs.presets import preset_called
from coterie.training.config.presets import lay_over
from coterie.training.config.train_settings import Choice, TrainSettings, defaults


def idle_distillation(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """Refusals of settings that somebody chose and that no role uses.

    The defaults of environments and presets stay: ``--algo.distillation.beta 0`` is enough to turn
    distillation off.
    """
    algorithms, usual = settings.algorithms, settings.algo.distillation
    if not any(algorithm.distillation.beta for algorithm in settings.learned_by.values()):
        yield from _refusals("--algo.", usual, _default(settings.choice))
    for role, algorithm in algorithms.by_role.items():
        name = settings.agents[role].algorithm
        choice = dataclasses.replace(settings.choice, algo=name, preset=None)
        begun = _default(choice) if name else usual
        yield from _refusals(algorithms.at(role), algorithm.distillation, begun)


def _refusals(at: str, chosen: Distillation, default: Distillation) -> Iterator[tuple[bool, str]]:
    for field in dataclasses.fields(Distillation):
        value = getattr(chosen, field.name)
        name = field.name.replace("_", "-")
        yield (
            not chosen.beta and value not in (getattr(default, field.name), field.default),
            f"{at}distillation.{name} does nothing without {at}distillation.beta, such as 1",
        )


def _default(choice: Choice) -> Distillation:
    before_flags = defaults(choice)
    if choice.preset:
        before_flags = lay_over(preset_called(choice.preset, choice.env), before_flags)
    return before_flags.algo.distillation
