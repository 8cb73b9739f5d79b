"""The team of a run: each role's model, how it answers and how it learns."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agents.local import LocalPolicy
from algorithms import Algorithm, Learner, LearnerSettings
from launch.models import model_spec
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


def build_team(
    agents: Mapping[str, AgentSettings],
    algorithm: Algorithm,
    learner: LearnerSettings,
    *,
    temperature: float,
    total_steps: int,
    seed: int,
) -> Team:
    """Load every role's model; roles that name the same model share one base in memory."""
    learns = {role for role, settings in agents.items() if settings.trained}
    specs = {role: model_spec(settings) for role, settings in agents.items()}
    loaded = load_team(specs, trained=learns, seed=seed)
    return Team(
        loaded=loaded,
        policies={role: LocalPolicy(one.handle, one.codec) for role, one in loaded.items()},
        codecs={role: one.codec for role, one in loaded.items()},
        trained={
            role: TrainedRole(
                loaded[role],
                Learner(
                    loaded[role].handle,
                    algorithm,
                    learner,
                    temperature=temperature,
                    total_steps=total_steps,
                ),
            )
            for role in agents
            if role in learns
        },
    )
