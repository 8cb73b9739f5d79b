"""A team: who plays each role, how everybody answers, and how some of them learn."""

import dataclasses
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from coterie.agents.engine.settings import VllmSettings
from coterie.algorithms import Algorithm, LearnerSettings
from coterie.algorithms.imitation import LIKELIHOOD, Imitation
from coterie.datatypes import Policy, TokenCodec, Trajectory
from coterie.envs.bytes_codec import BytesCodec
from coterie.experts import TranslatedPolicy
from coterie.experts.naming import is_player
from coterie.experts.pool import close_all
from coterie.teams.models import model_spec
from coterie.teams.players import build_player, local_models
from coterie.teams.settings import AgentSettings

if TYPE_CHECKING:  # scripts and servers do without torch
    import numpy as np
    import numpy.typing as npt

    from coterie.agents.engine.fleet import Fleet
    from coterie.models.loading import LoadedRole

T = TypeVar("T")


@dataclass(frozen=True)
class Learning:
    """How the roles that are trained learn."""

    algorithm: Algorithm
    settings: LearnerSettings
    temperature: float
    """Temperature of the learner's probabilities."""
    total_steps: int
    """Updates until the end of the learning rate's schedule."""
    imitation: Imitation | None = None
    """What comes before; None: nothing does."""


class Learns(Protocol):
    """A role that learns, wherever its learner is."""

    @property
    def place(self) -> Hashable:
        """Equal for roles whose updates wait for each other."""
        ...

    @property
    def version(self) -> int:
        """Updates so far."""
        ...

    @property
    def told(self) -> "dict[int, npt.NDArray[np.float64]]":
        """``id(trajectory)`` -> what the newest update added to its advantages, by token."""
        ...

    def update(
        self, trajectories: Sequence[Trajectory], advantage_B: "npt.ArrayLike"
    ) -> dict[str, float]: ...

    def imitate(self, rows: Sequence[Trajectory]) -> dict[str, float]: ...

    def begin(self) -> None: ...

    def divergences(self, trajectories: Sequence[Trajectory]) -> "npt.NDArray[Any]": ...

    def save(self, directory: Path) -> dict[str, Any]: ...

    def export(self, directory: Path) -> None: ...

    def load(self, directory: Path, plain: dict[str, Any]) -> None: ...


class Engines(Protocol):
    """What answers for models outside of this process: see :class:`Team`."""

    async def start(self) -> None: ...

    async def refresh(self) -> None: ...

    async def rest(self) -> None: ...

    def close(self) -> None: ...

    def places(self) -> list[dict[str, str]]:
        """Who sits where: a row of a table for each process on a cluster."""
        ...

    def remember(self, restore: "Callable[[Mapping[str, Learns]], object]") -> None:
        """Learners have been saved: from now on ``restore`` brings new ones to where they stand."""
        ...


@dataclass(frozen=True)
class Models:
    """The models of a team by their names, and those of them who learn."""

    policies: Mapping[str, Policy]
    codecs: Mapping[str, TokenCodec]
    trained: Mapping[str, Learns]
    loaded: "Mapping[str, LoadedRole]" = dataclasses.field(default_factory=dict)
    """Those that this process holds."""
    fleet: Engines | None = None


Holder = Callable[[Mapping[str, AgentSettings], Set[str], Learning | None, int], Models]
"""Loads models: (settings by name, who learns, how, seed)."""


@dataclass(frozen=True)
class Team:
    """Everybody who answers, and those of them who learn."""

    loaded: "Mapping[str, LoadedRole]"
    """Roles that a model of their own in this process plays."""
    policies: Mapping[str, Policy]
    codecs: Mapping[str, TokenCodec]
    trained: Mapping[str, Learns]
    fleet: Engines | None = None
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

    @property
    def places(self) -> list[dict[str, str]]:
        """Who sits where on a cluster; empty without one."""
        return self.fleet.places() if self.fleet is not None else []

    def saved(self, restore: Callable[[Mapping[str, Learns]], object]) -> None:
        """See :meth:`Engines.remember`."""
        if self.fleet is not None:
            self.fleet.remember(restore)

    def side_by_side(self, work: Callable[[str, Learns], T]) -> dict[str, T]:
        """``work`` of every role that learns, at the same time for roles of different places."""
        places: dict[Hashable, list[str]] = {}
        for role, one in self.trained.items():
            places.setdefault(one.place, []).append(role)

        def one_place(roles: list[str]) -> dict[str, T]:
            return {role: work(role, self.trained[role]) for role in roles}

        if len(places) < 2:
            return one_place(list(self.trained))
        with ThreadPoolExecutor(len(places)) as pool:
            done = {k: v for part in pool.map(one_place, places.values()) for k, v in part.items()}
        return {role: done[role] for role in self.trained}

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
    holder: Holder | None = None,
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
        holder: loads the models; None: this process does.
    """
    if learning is None:
        agents = {role: dataclasses.replace(one, trained=False) for role, one in agents.items()}
    models = local_models(agents)
    learns = {role for role, one in agents.items() if one.trained}
    held = (holder or partial(hold, vllm=vllm))(models, learns, learning, seed)

    reader = next((role for role in agents if role in held.codecs), None) if together else None
    spoken: TokenCodec = BytesCodec() if reader is None else held.codecs[reader]
    codec_name = "utf-8" if reader is None else f"{agents[reader].model}@{agents[reader].revision}"
    seats = {name: (policy, held.codecs[name]) for name, policy in held.policies.items()}
    return Team(
        loaded={role: held.loaded[role] for role in agents if role in held.loaded},
        policies={
            role: build_player(role, one.model, spoken, codec_name=codec_name, local=seats)
            if is_player(one.model)
            else held.policies[role]
            for role, one in agents.items()
        },
        codecs={role: held.codecs.get(role, spoken) for role in agents},
        trained=held.trained,
        fleet=held.fleet,
    )


def hold(
    models: Mapping[str, AgentSettings],
    learns: Set[str],
    learning: Learning | None,
    seed: int,
    *,
    vllm: VllmSettings | None = None,
) -> Models:
    """Implements :data:`Holder` in this process; without ``learning``, for those who learn
    elsewhere."""
    loaded = _load(models, learns, seed)
    local, fleet = _samplers(models, loaded, learns, vllm, seed, apart=learning is None)
    return Models(
        policies=local,
        codecs={name: one.codec for name, one in loaded.items()},
        trained={name: _trained(loaded[name], learning) for name in models if name in learns}
        if learning
        else {},
        loaded=loaded,
        fleet=fleet,
    )


def _load(
    models: Mapping[str, AgentSettings], learns: Set[str], seed: int
) -> "Mapping[str, LoadedRole]":
    if not models:
        return {}
    from coterie.models.loading import load_team

    return load_team({name: model_spec(one) for name, one in models.items()}, learns, seed=seed)


def _trained(loaded: "LoadedRole", learning: Learning) -> Learns:
    from coterie.algorithms import Learner
    from coterie.teams.trained import TrainedRole

    first = learning.imitation
    learner = Learner(
        loaded.handle,
        learning.algorithm,
        learning.settings,
        temperature=learning.temperature,
        total_steps=learning.total_steps,
        moves_first=first is not None,
    )
    if first is None:
        return TrainedRole(loaded, learner)
    how = first.settings(learning.settings)
    return TrainedRole(
        loaded, learner, Learner(loaded.handle, LIKELIHOOD, how, total_steps=first.steps)
    )


def _samplers(
    models: Mapping[str, AgentSettings],
    loaded: "Mapping[str, LoadedRole]",
    learns: Set[str],
    vllm: VllmSettings | None,
    seed: int,
    *,
    apart: bool,
) -> "tuple[Mapping[str, Policy], Fleet | None]":
    """A policy for every model, by its name, and with ``vllm`` the engines behind them; ``apart``:
    those who learn do so elsewhere."""
    if not loaded:
        return {}, None
    if vllm is None:
        from coterie.agents.local import LocalPolicy

        return {name: LocalPolicy(one.handle, one.codec) for name, one in loaded.items()}, None
    from coterie.agents.engine.fleet import Fleet, Seat

    seats = [
        Seat(
            name,
            one,
            model_spec(how),
            name in learns,
            how.engine_device,
            how.tensor_parallel,
            apart,
        )
        for name, one, how in ((name, one, models[name]) for name, one in loaded.items())
    ]
    fleet = Fleet(seats, vllm, seed=seed)
    return fleet.policies, fleet
