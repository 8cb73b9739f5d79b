"""Agents that answer and never learn, in memory."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.engine.settings import VllmSettings
from envs.bytes_codec import BytesCodec
from experts import TranslatedPolicy
from experts.naming import is_player
from launch.models import model_spec
from launch.players import build_player, close_players, local_models
from launch.settings import AgentSettings
from vocabulary import Policy, TokenCodec

if TYPE_CHECKING:  # scripts and servers do without torch
    from agents.engine.fleet import Fleet


@dataclass(frozen=True)
class Loaded:
    """One agent that can be asked."""

    policy: Policy
    codec: TokenCodec

    def in_words_of(self, codec: TokenCodec) -> Policy:
        """The policy, put to work in the vocabulary of ``codec``."""
        if self.codec is codec:
            return self.policy
        return TranslatedPolicy(self.policy, inner=self.codec, outer=codec)


@dataclass(frozen=True)
class FrozenTeam:
    """Agents that were loaded together, and the engines that sample for their models, if any."""

    agents: Mapping[str, Loaded]
    fleet: "Fleet | None" = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Mapping[str, Loaded]]:
        """Everybody answers inside; afterwards connections and engines are closed for good."""
        try:
            if self.fleet is not None:
                await self.fleet.start()
                await self.fleet.refresh()
            yield self.agents
        finally:
            await close_players({name: one.policy for name, one in self.agents.items()})
            if self.fleet is not None:
                self.fleet.close()


def load_frozen(
    agents: Mapping[str, AgentSettings], *, vllm: VllmSettings | None = None, seed: int = 0
) -> FrozenTeam:
    """Load these agents together; adapters of one model share it. With ``vllm`` engines sample.

    A script, a server or a pool has no tokenizer of its own here: it speaks bytes.
    """
    local, fleet = _load_local(local_models(agents), vllm, seed)
    spoken = {name: (one.policy, one.codec) for name, one in local.items()}
    found = {
        name: _player(name, settings.model, spoken) if is_player(settings.model) else local[name]
        for name, settings in agents.items()
    }
    return FrozenTeam(found, fleet)


def _player(name: str, model: str, local: Mapping[str, tuple[Policy, TokenCodec]]) -> Loaded:
    codec = BytesCodec()
    return Loaded(build_player(name, model, codec, codec_name="utf-8", local=local), codec)


def _load_local(
    agents: Mapping[str, AgentSettings], vllm: VllmSettings | None, seed: int
) -> "tuple[dict[str, Loaded], Fleet | None]":
    if not agents:
        return {}, None
    from launch.samplers import samplers
    from models.loading import load_team

    loaded = load_team({name: model_spec(one) for name, one in agents.items()}, trained=set())
    policies, fleet = samplers(agents, loaded, learns=(), vllm=vllm, seed=seed)
    return {name: Loaded(policies[name], one.codec) for name, one in loaded.items()}, fleet
