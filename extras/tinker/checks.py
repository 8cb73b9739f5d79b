"""Checks of a run on a server before it begins."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from importlib.util import find_spec
from typing import Any

from coterie.agents.models.locate import local_folder
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import SEAT, local_models
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.teachers import only_teaches
from coterie.algorithms import Algorithm
from coterie.datatypes import UserError, refuse
from coterie.extras.tinker.service import capabilities
from coterie.extras.tinker.settings import TinkerSettings
from coterie.training.config.role_sampling import learner_temperature
from coterie.training.config.train_settings import TrainSettings

Refusals = Iterator[tuple[bool, str]]

_OF_THE_SERVER = {
    "lora_alpha": "the server chooses the scale of adapters",
    "lora_targets": "the server chooses the layers of adapters",
    "dtype": "the server chooses the number format",
    "recompute": "the server manages its memory",
    "device": "the server has devices of its own",
    "engine_device": "the server has devices of its own",
    "engine_replicas": "the server has engines of its own",
    "learner_devices": "the server has devices of its own",
    "tensor_parallel": "the server has devices of its own",
}
"""Fields of :class:`AgentSettings` that cannot be sent -> why."""


def check_unused(settings: TrainSettings) -> None:
    """Refuse settings of a server without ``--engine tinker``."""
    if settings.run.engine != "tinker" and settings.section(TinkerSettings) != TinkerSettings():
        raise UserError("--tinker.* needs --engine tinker")


def check_run(server: TinkerSettings, settings: TrainSettings) -> None:
    """Refuse what a server cannot do, then ask it what it serves.

    Raises:
        UserError: one sentence that names the flag.
    """
    models = local_models(settings.players)
    refuse(
        (
            find_spec("tinker") is None,
            "--engine tinker needs the package tinker, which is not installed: pip install -e "
            '".[tinker]"',
        ),
        (not server.url, "--engine tinker needs the address of a server: --tinker.url URL"),
        (not models, "--engine tinker has no model to serve: all roles are scripts or servers"),
        (
            vars(settings)["cluster"] != type(vars(settings)["cluster"])(),
            "--cluster.* places models on machines of yours: leave it out, or --engine tinker",
        ),
    )
    for name, agent in models.items():
        refuse(*_agent(name, agent))
    for role, algorithm in settings.learned_by.items():
        refuse(*_algorithm(role, algorithm, partial(settings.algorithms.flag, role)))
        refuse(_moments(role, settings))
        temperature = learner_temperature(settings.rollout, settings.agents[role])
        if temperature not in (0, 1):
            raise UserError(
                f"a Tinker server computes probabilities at temperature 1, and {role} learns at "
                f"{temperature:g}: say --rollout.learner-temperature 1"
            )
    _check_names(server, models)
    check_served(server, models, capabilities(server))


def _agent(name: str, agent: AgentSettings) -> Refusals:
    role = name.partition(SEAT)[0]
    defaults = {known.name: known.default for known in fields(AgentSettings)}
    for field, why in _OF_THE_SERVER.items():
        flag = f"--agents.{role}.{field.replace('_', '-')}"
        yield getattr(agent, field) != defaults[field], f"{why}: leave out {flag}"
    yield (
        agent.trained and agent.tuning == "full",
        f"a Tinker server trains adapters only: leave out --agents.{role}.tuning full",
    )
    yield (
        model_spec(agent).lora is not None and model_spec(agent).lora.adapter is not None,  # type: ignore[union-attr]
        f"{agent.model} is an adapter, which cannot be sent to a server: name its base model",
    )


def _algorithm(role: str, algorithm: Algorithm, flag: Callable[[str], str]) -> Refusals:
    distillation = algorithm.distillation
    yield (
        algorithm.entropy_coefficient != 0,
        f"a Tinker server has no gradient of entropies: say {flag('entropy-coefficient')} 0",
    )
    yield (
        distillation.beta > 0 and distillation.likeliest > 0,
        f"a Tinker server learns from sampled tokens only: say {flag('distillation.likeliest')} 0",
    )
    yield (
        distillation.averages and distillation.decay > 0,
        f"a Tinker server keeps no moving average of the weights of {role}: say "
        f"{flag('distillation.decay')} 0, so that its newest weights read, or "
        f"{flag('distillation.reader')} start",
    )


def _moments(role: str, settings: TrainSettings) -> tuple[bool, str]:
    moments, at = settings.learner_of(role).moments, settings.agents[role].learner_at(role)
    return moments != "float32", f"the server stores the moments: leave out {at}moments {moments}"


def _check_names(server: TinkerSettings, models: Mapping[str, AgentSettings]) -> None:
    """Refuse names and prices of models that no role has."""
    known = {agent.model for agent in models.values()}
    named = [("names", server.parse_name(entry)[0]) for entry in server.names]
    priced = [("prices", server.parse_prices(entry)[0]) for entry in server.prices]
    for flag, model in named + priced:
        if model and model not in known:
            raise UserError(
                f"--tinker.{flag} {model}: no role has this model; they have "
                f"{', '.join(sorted(known))}"
            )


def check_served(
    server: TinkerSettings, models: Mapping[str, AgentSettings], said: Mapping[str, Any]
) -> None:
    """Refuse a server without the loss, and models that it does not say it serves.

    Args:
        server: the settings.
        models: name -> model.
        said: the server's capabilities. A list without names, as Hatchery's, says nothing.
    """
    losses = said.get("supported_loss_fns")
    if isinstance(losses, list) and "cross_entropy" not in losses:
        raise UserError(
            f"the server at {server.url} has no loss cross_entropy, by which every algorithm "
            "learns here: take another server"
        )
    listed = said.get("supported_models")
    entries = [entry for entry in listed if isinstance(entry, dict)] if listed else []
    served = {str(name) for entry in entries if (name := entry.get("model_name"))}
    for player, agent in models.items():
        folder = local_folder(model_spec(agent))
        name = server.name_of(agent.model, str(folder.resolve()) if folder else None)
        if served and name not in served:
            few = ", ".join(sorted(served)[:8])
            role = player.partition(SEAT)[0]
            whose = f"{role}'s teacher" if only_teaches(player) else role
            raise UserError(
                f"the server at {server.url} does not serve {name!r}, the model of {whose}; it "
                f"serves {few}: choose one of them, or say what it is called there with "
                f"--tinker.names {agent.model}=NAME"
            )
