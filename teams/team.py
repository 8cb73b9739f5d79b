"""A team: who plays each role, how everybody answers, and how some of them learn."""

import dataclasses
from collections.abc import AsyncIterator, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.agents.engine.settings import VllmSettings
from coterie.algorithms import Algorithm, LearnerSettings
from coterie.datatypes import Policy, TokenCodec, UserError
from coterie.envs.bytes_codec import BytesCodec
from coterie.experts import TranslatedPolicy
from coterie.experts.naming import is_player
from coterie.experts.pool import close_all
from coterie.teams.models import model_spec
from coterie.teams.players import build_player, local_models
from coterie.teams.settings import AgentSettings

if TYPE_CHECKING:  # scripts and servers do without torch
    import torch

    from coterie.agents.engine.fleet import Fleet
    from coterie.algorithms import Learner
    from coterie.models.loading import LoadedRole


@dataclass(frozen=True)
class Learning:
    """How the roles that are trained learn."""

    algorithm: Algorithm
    settings: LearnerSettings
    temperature: float
    """Temperature of the learner's probabilities."""
    total_steps: int
    """Updates until the end of the learning rate's schedule."""


class OtherFormat(UserError):
    """Raised where a run would go on in another number format than it was trained in."""


@dataclass(frozen=True)
class TrainedRole:
    """A role that learns: what a checkpoint saves of it."""

    loaded: "LoadedRole"
    learner: "Learner"

    def save(self, directory: Path) -> None:
        """Write the weights (or the adapter) as they are held, so that training can go on."""
        self.loaded.handle.save(directory)

    def export(self, directory: Path) -> None:
        """Write the weights (or the adapter) as they compute, for others to read."""
        self.loaded.handle.save(directory, self.loaded.handle.dtype)

    def load(self, directory: Path) -> None:
        """The inverse of :meth:`save`."""
        self.loaded.handle.load_weights(directory)

    def state_dict(self) -> "tuple[dict[str, torch.Tensor], dict[str, Any]]":
        """Optimiser moments by parameter name, and counters."""
        tensors, plain = self.learner.state_dict()
        return tensors, plain | {"dtype": self._dtype, "moments": self.learner.settings.moments}

    def load_state_dict(self, tensors: "dict[str, torch.Tensor]", plain: dict[str, Any]) -> None:
        """The inverse of :meth:`state_dict`.

        Raises:
            OtherFormat: it was trained in another number format.
        """
        # Checkpoints were written without it.
        if (then := plain.get("dtype", self._dtype)) != self._dtype:
            raise OtherFormat(
                f"it was trained in {then} and would go on in {self._dtype} on this device: resume "
                f'it on a device like the first, or say "dtype": "{then}" in its config.json'
            )
        now = self.learner.settings.moments
        if (then := plain.get("moments", "float32")) != now:
            raise OtherFormat(
                f'its moments are held in {then}, not in {now}: say "moments": "{then}" in its '
                "config.json"
            )
        self.learner.load_state_dict(tensors, plain)

    @property
    def _dtype(self) -> str:
        return str(self.loaded.handle.dtype).rpartition(".")[2]


@dataclass(frozen=True)
class Team:
    """Everybody who answers, and those of them who learn."""

    loaded: "Mapping[str, LoadedRole]"
    """Roles that a model of their own plays."""
    policies: Mapping[str, Policy]
    codecs: Mapping[str, TokenCodec]
    trained: Mapping[str, TrainedRole]
    fleet: "Fleet | None" = None
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

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Team"]:
        """Everybody answers inside; afterwards connections and engines are closed for good."""
        try:
            await self.start()
            await self.refresh()
            yield self
        finally:
            await self.aclose()

    def interpreter(self, role: str, codec: TokenCodec) -> Policy:
        """The policy of ``role``, put to work in the vocabulary of ``codec``."""
        policy, own = self.policies[role], self.codecs[role]
        return policy if own is codec else TranslatedPolicy(policy, inner=own, outer=codec)

    async def aclose(self) -> None:
        """Close connections and end processes."""
        await close_all(self.policies.values())
        if self.fleet is not None:
            self.fleet.close()


def build_team(
    agents: Mapping[str, AgentSettings],
    *,
    learning: Learning | None = None,
    vllm: VllmSettings | None = None,
    seed: int = 0,
    together: bool = True,
) -> Team:
    """Load every role's model; roles that name the same model share one base in memory.

    Torch is imported where a model is loaded, and not for scripts and servers.

    Args:
        agents: role -> who plays it, already checked (:func:`coterie.teams.models.check_models`).
        learning: how the roles that are ``trained`` learn; None: nobody does.
        vllm: engines sample from the models, and :meth:`Team.start` starts them; None: this
            process does.
        seed: names the random start of new adapters, and the engines' streams.
        together: the roles play with each other: a script, a server or a pool speaks the vocabulary
            of the first role with a model of its own, which reads what it says. Otherwise, and
            where no role has a model, it speaks UTF-8 bytes.
    """
    if learning is None:
        agents = {role: dataclasses.replace(one, trained=False) for role, one in agents.items()}
    models = local_models(agents)
    learns = {role for role, one in agents.items() if one.trained}
    loaded = _load(models, learns, seed)
    trained = {role: _trained(loaded[role], learning) for role in agents if role in learns}
    local, fleet = _samplers(models, loaded, learns, vllm, seed)

    own = {role: loaded[role] for role in agents if role in loaded}
    reader = next(iter(own), None) if together else None
    spoken: TokenCodec = BytesCodec() if reader is None else own[reader].codec
    codec_name = "utf-8" if reader is None else f"{agents[reader].model}@{agents[reader].revision}"
    seats = {name: (policy, loaded[name].codec) for name, policy in local.items()}
    return Team(
        loaded=own,
        policies={
            role: build_player(role, one.model, spoken, codec_name=codec_name, local=seats)
            if is_player(one.model)
            else local[role]
            for role, one in agents.items()
        },
        codecs={role: own[role].codec if role in own else spoken for role in agents},
        trained=trained,
        fleet=fleet,
    )


def _load(
    models: Mapping[str, AgentSettings], learns: Set[str], seed: int
) -> "Mapping[str, LoadedRole]":
    if not models:
        return {}
    from coterie.models.loading import load_team

    return load_team({name: model_spec(one) for name, one in models.items()}, learns, seed=seed)


def _trained(loaded: "LoadedRole", learning: Learning | None) -> TrainedRole:
    from coterie.algorithms import Learner

    assert learning is not None, "nobody is trained without"
    learner = Learner(
        loaded.handle,
        learning.algorithm,
        learning.settings,
        temperature=learning.temperature,
        total_steps=learning.total_steps,
    )
    return TrainedRole(loaded, learner)


def _samplers(
    models: Mapping[str, AgentSettings],
    loaded: "Mapping[str, LoadedRole]",
    learns: Set[str],
    vllm: VllmSettings | None,
    seed: int,
) -> "tuple[Mapping[str, Policy], Fleet | None]":
    """A policy for every model, by its name, and with ``vllm`` the engines behind them."""
    if not loaded:
        return {}, None
    if vllm is None:
        from coterie.agents.local import LocalPolicy

        return {name: LocalPolicy(one.handle, one.codec) for name, one in loaded.items()}, None
    from coterie.agents.engine.fleet import Fleet, Seat

    seats = [
        Seat(name, one, model_spec(models[name]), name in learns, models[name].engine_device)
        for name, one in loaded.items()
    ]
    fleet = Fleet(seats, vllm, seed=seed)
    return fleet.policies, fleet
