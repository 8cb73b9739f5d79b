"""Settings that somebody chose and that change nothing beside the others.

Defaults of environments, models and presets are nobody's choice: ``--algo.distillation.beta 0`` is
enough to turn distillation off.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from coterie.agents.models.locate import local_folder, named_adapter
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import local_models
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms import Algorithm
from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import join_or, unmet
from coterie.envs.presets import preset_called
from coterie.experts.naming import is_player
from coterie.training.config.model_defaults import as_flag, fitted
from coterie.training.config.presets import lay_over
from coterie.training.config.serialize import flat, to_plain
from coterie.training.config.train_settings import Choice, TrainSettings, defaults

_LORA = ("lora_rank", "lora_alpha", "lora_targets")
_OF_MODELS = (
    *_LORA,
    *("tuning", "chat", "dtype", "recompute", "device", "engine_device", "tensor_parallel"),
    *("context", "revision", "trust_remote_code"),
)
_COMPARISON = ("baseline", "scale", "ddof", "epsilon")


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


def idle_in_algorithm(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """Refusals of algorithm settings that no role uses."""
    algorithms, usual, agents = settings.algorithms, settings.algo, settings.agents
    begun, idle = _before_flags(settings.choice, agents).algo, _idle_in(usual)
    for own in settings.learned_by.values():
        idle = {name: why for name, why in idle.items() if name in _idle_in(own)}
    yield from _refusals("--algo.", usual, begun, idle)
    for role, algorithm in algorithms.by_role.items():
        name = agents[role].algorithm
        choice = dataclasses.replace(settings.choice, algo=name, preset=None)
        begun = _before_flags(choice, agents).algo if name else usual
        yield from _refusals(algorithms.at(role), algorithm, begun, _idle_in(algorithm))


def idle_model_settings(settings: TrainSettings) -> Iterator[tuple[bool, str]]:
    """Refusals of LoRA settings of learning roles that get no new adapter, of a revision of a local
    model, and of settings of a model where a script or a server plays. The models are already
    checked."""
    if settings.run.engine == "tinker":  # whose server makes every adapter
        return
    begun = _before_flags(settings.choice, settings.agents).agents
    usual = AgentSettings("")
    for role, agent in settings.agents.items():
        if not is_player(agent.model):
            idle = _idle_of_model(role, agent)
        elif local_models({role: agent}):  # of a pool
            continue
        else:
            idle = dict.fromkeys(_OF_MODELS, f"{agent.model} is not loaded here")
        for name, why in idle.items():
            value = getattr(agent, name)
            yield (
                value not in (getattr(begun[role], name), getattr(usual, name)),
                f"leave out {as_flag(f'agents.{role}.{name}', value)}: {why}",
            )


def _idle_of_model(role: str, agent: AgentSettings) -> dict[str, str]:
    """Name of a setting that changes nothing for a model -> why."""
    spec, adapter = model_spec(agent), named_adapter(agent.model, agent.revision)
    idle: dict[str, str] = {}
    if agent.trained and adapter:
        idle = dict.fromkeys(_LORA, f"{agent.model} is an adapter with its own rank and layers")
    elif agent.trained and spec.lora is None:
        full = f"{role} learns full weights; or say --agents.{role}.tuning lora"
        idle = dict.fromkeys(_LORA, full)
    if local_folder(spec) and not (adapter and adapter.from_hub):
        idle["revision"] = f"{spec.model} is not on the hub"
    return idle


def _idle_in(algorithm: Algorithm) -> dict[str, str]:
    """Dotted name of a setting that changes nothing in ``algorithm`` -> why."""
    idle: dict[str, str] = {}
    if not algorithm.distillation.beta:
        names = (f"distillation.{field.name}" for field in dataclasses.fields(Distillation))
        idle |= dict.fromkeys(names, "without algo.distillation.beta, such as 1")
    if not algorithm.overlong_limit and algorithm.overlong_factor:
        idle["overlong_factor"] = "without algo.overlong-limit and algo.overlong-buffer"
    if algorithm.scale == "none":
        idle |= dict.fromkeys(("ddof", "epsilon"), "with algo.scale none")
    if algorithm.advantage:
        idle |= dict.fromkeys(_COMPARISON, "beside algo.advantage")
    if not algorithm.distillation.rewards:
        idle |= dict.fromkeys((*_COMPARISON, "advantage"), "with algo.distillation.no-rewards")
    return idle


def _refusals(
    at: str, chosen: Algorithm, begun: Algorithm, idle: Mapping[str, str]
) -> Iterator[tuple[bool, str]]:
    values, *usual = (flat(to_plain(each)) for each in (chosen, begun, Algorithm()))
    for name, why in idle.items():
        yield (
            values[name] not in [each[name] for each in usual],
            f"{at}{name.replace('_', '-')} does nothing {why.replace('algo.', at)}",
        )


def _before_flags(choice: Choice, agents: Mapping[str, AgentSettings]) -> TrainSettings:
    before_flags = fitted(defaults(choice), agents)
    if choice.preset:
        before_flags = lay_over(preset_called(choice.preset, choice.env), before_flags)
    return before_flags
