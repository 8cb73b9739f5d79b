"""The team of a run: each role's model, how it answers and how it learns."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agents.engine.fleet import Fleet
from agents.engine.settings import VllmSettings
from algorithms import Algorithm, Learner, LearnerSettings
from experts.naming import is_player
from launch.models import model_spec
from launch.players import build_player, close_players, local_models
from launch.samplers import samplers
from launch.settings import AgentSettings
from models.loading import LoadedRole, load_team
from vocabulary import Policy, TokenCodec


@dataclass(frozen=True)
class TrainedRole:
    """A role that learns: what a checkpoint saves of it."""

    loaded: LoadedRole
    learner: Learner

    def save(self, directory: Path) -> None:
        """Write the weights (or the adapter) in their own format."""
        self.loaded.handle.save(directory)

    def load(self, directory: Path) -> None:
        """The inverse of :meth:`save`."""
        self.loaded.handle.load_weights(directory)

    def state_dict(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Optimiser moments by parameter name, and counters."""
        return self.learner.state_dict()

    def load_state_dict(self, tensors: dict[str, torch.Tensor], plain: dict[str, Any]) -> None:
        """The inverse of :meth:`state_dict`."""
        self.learner.load_state_dict(tensors, plain)


@dataclass(frozen=True)
class Team:
    """Everybody who answers, and those of them who learn."""

    loaded: Mapping[str, LoadedRole]
    policies: Mapping[str, Policy]
    codecs: Mapping[str, TokenCodec]
    trained: Mapping[str, TrainedRole]
    fleet: Fleet | None = None
    """The engines that answer for models; without, this process does."""

    async def start(self) -> None:
        """Start engines, in the event loop that will ask them; nothing to do without."""
        if self.fleet is not None:
            await self.fleet.start()

    async def refresh(self) -> None:
        """Have everybody answer with the weights of this moment; nobody may be asked meanwhile."""
        if self.fleet is not None:
            await self.fleet.refresh()

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Everybody answers with the weights of the start; afterwards the learner has the
        devices."""
        await self.refresh()
        yield
        if self.fleet is not None:
            await self.fleet.rest()

    async def aclose(self) -> None:
        """Close connections and end processes."""
        await close_players(self.policies)
        if self.fleet is not None:
            self.fleet.close()


def build_team(
    agents: Mapping[str, AgentSettings],
    algorithm: Algorithm,
    learner: LearnerSettings,
    *,
    temperature: float,
    total_steps: int,
    seed: int,
    vllm: VllmSettings | None = None,
) -> Team:
    """Load every role's model; roles that name the same model share one base in memory.

    A role that a script, a server or a pool plays speaks the vocabulary of the first role with a
    model of its own, which reads what it says. With ``vllm``, engines sample:
    :meth:`Team.start` them.
    """
    learns = {role for role, settings in agents.items() if settings.trained}
    models = local_models(agents)
    specs = {name: model_spec(settings) for name, settings in models.items()}
    loaded = load_team(specs, trained=learns, seed=seed)
    learners = {
        role: Learner(
            loaded[role].handle,
            algorithm,
            learner,
            temperature=temperature,
            total_steps=total_steps,
        )
        for role in agents
        if role in learns
    }
    local, fleet = samplers(models, loaded, learns=learns, vllm=vllm, seed=seed)
    reader = next(role for role in agents if role in loaded)
    codecs = {role: loaded[role if role in loaded else reader].codec for role in agents}
    spoken = {name: (local[name], loaded[name].codec) for name in local}
    return Team(
        loaded={role: loaded[role] for role in agents if role in loaded},
        policies={
            role: build_player(
                role,
                settings.model,
                codecs[role],
                codec_name=f"{agents[reader].model}@{agents[reader].revision}",
                local=spoken,
            )
            if is_player(settings.model)
            else local[role]
            for role, settings in agents.items()
        },
        codecs=codecs,
        trained={role: TrainedRole(loaded[role], learners[role]) for role in learners},
        fleet=fleet,
    )
