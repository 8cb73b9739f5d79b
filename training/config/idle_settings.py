"""Settings that somebody chose and that change nothing beside the others.

Defaults of environments, models and presets are nobody's choice: ``--algo.distillation.beta 0`` is
enough to turn distillation off.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from coterie.agents.models.locate import local_folder, named_adapter
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import join_or, unmet
from coterie.envs.presets import preset_called
from coterie.experts.naming import is_player
from coterie.training.config.model_defaults import as_flag, fitted
from coterie.training.config.presets import lay_over
from coterie.training.config.train_settings import Choice, TrainSettings, defaults

_LORA = ("lora_rank", "lora_alpha", "lora_targets")


def idle_in_environment(settings: TrainSettings) -> Iterator[str]:
    """A sentence for each ``--env`` setting whose :class:`~coterie.datatypes.Needs` are not met.

    An ablation turns one setting off and leaves those that belong to it, so nothing is refused.
    """
    if settings.env is not None:
        usual = _before_flags(settings.choice, settings.agents).env
        yield from _idle("env.", settings.env, usual)


def _idle(at: str, chosen: Any, usual: Any) -> Iterator[str]:
    """The sentences on ``chosen``, whose values were ``usual`` before any flag, and on settings
    nested in it."""
    defaults_of_class = {field.name: field.default for field in dataclasses.fields(chosen)}
    for name, needs in unmet(chosen):
        value, other = getattr(chosen, name), getattr(chosen, needs.other)
        if value not in (getattr(usual, name), defaults_of_class[name]):
            yield (
                f"{as_flag(at + name, value)} changes nothing with "
                f"{as_flag(at + needs.other, other)}"
                + (f", only with {join_or([*map(str, needs.values)])}" if needs.values else "")
            )
    for name, value in vars(chosen).items():
        before = getattr(usual, name)
        if dataclasses.is_dataclass(value) and type(value) is type(before):
            yield from _idle(f"{at}{name}.", value, before)


def idle_distillation(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """Refusals of distillation settings that no role uses, because its beta is 0."""
    algorithms, usual = settings.algorithms, settings.algo.distillation
    agents = settings.agents
    if not any(algorithm.distillation.beta for algorithm in settings.learned_by.values()):
        begun = _before_flags(settings.choice, agents).algo.distillation
        yield from _refusals("--algo.", usual, begun)
    for role, algorithm in algorithms.by_role.items():
        name = agents[role].algorithm
        choice = dataclasses.replace(settings.choice, algo=name, preset=None)
        begun = _before_flags(choice, agents).algo.distillation if name else usual
        yield from _refusals(algorithms.at(role), algorithm.distillation, begun)


def idle_model_settings(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """Refusals of LoRA settings of learning roles that get no new adapter, and of a revision of a
    local model. The models are already checked."""
    if settings.run.engine == "tinker":  # whose server makes every adapter
        return
    begun = _before_flags(settings.choice, settings.agents).agents
    usual = AgentSettings("")
    for role, agent in settings.agents.items():
        if is_player(agent.model):
            continue
        spec, adapter = model_spec(agent), named_adapter(agent.model, agent.revision)
        idle: dict[str, str] = {}
        if agent.trained and adapter:
            idle = dict.fromkeys(_LORA, f"{agent.model} is an adapter with its own rank and layers")
        elif agent.trained and spec.lora is None:
            full = f"{role} learns full weights; or say --agents.{role}.tuning lora"
            idle = dict.fromkeys(_LORA, full)
        if local_folder(spec) and not (adapter and adapter.from_hub):
            idle["revision"] = f"{spec.model} is not on the hub"
        for name, why in idle.items():
            value = getattr(agent, name)
            yield (
                value not in (getattr(begun[role], name), getattr(usual, name)),
                f"leave out {as_flag(f'agents.{role}.{name}', value)}: {why}",
            )


def _refusals(at: str, chosen: Distillation, default: Distillation) -> Iterator[tuple[bool, str]]:
    for field in dataclasses.fields(Distillation):
        value = getattr(chosen, field.name)
        name = field.name.replace("_", "-")
        yield (
            not chosen.beta and value not in (getattr(default, field.name), field.default),
            f"{at}distillation.{name} does nothing without {at}distillation.beta, such as 1",
        )


def _before_flags(choice: Choice, agents: Mapping[str, AgentSettings]) -> TrainSettings:
    before_flags = fitted(defaults(choice), agents)
    if choice.preset:
        before_flags = lay_over(preset_called(choice.preset, choice.env), before_flags)
    return before_flags
