"""Agents in memory: whoever answers, and in which tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from envs.bytes_codec import BytesCodec
from experts import TranslatedPolicy
from experts.naming import is_player
from launch.models import model_spec
from launch.players import build_player, local_models
from launch.suite.agents import Agent
from models.spec import ModelSpec
from vocabulary import Policy, TokenCodec


@dataclass(frozen=True)
class Loaded:
    """One agent that can be asked."""

    policy: Policy
    codec: TokenCodec


def load(agents: Sequence[Agent]) -> dict[str, Loaded]:
    """Load these agents together; adapters of one model share it.

    A script, a server or a pool has no tokenizer of its own here: it speaks bytes.
    """
    settings = local_models({agent.name: agent.settings for agent in agents})
    local = _load_local({name: model_spec(one) for name, one in settings.items()})
    spoken = {name: (one.policy, one.codec) for name, one in local.items()}
    return {
        agent.name: local[agent.name]
        if not is_player(agent.model)
        else Loaded(
            build_player(agent.name, agent.model, BytesCodec(), codec_name="utf-8", local=spoken),
            BytesCodec(),
        )
        for agent in agents
    }


def _load_local(specs: Mapping[str, ModelSpec]) -> dict[str, Loaded]:
    if not specs:
        return {}
    # Scripts and servers do without torch.
    from agents.local import LocalPolicy
    from models.loading import load_team

    models = load_team(specs, trained=set())
    return {
        name: Loaded(LocalPolicy(one.handle, one.codec), one.codec) for name, one in models.items()
    }


def in_words_of(loaded: Mapping[str, Loaded], codec: TokenCodec) -> dict[str, Policy]:
    """The agents' policies, each put to work in the vocabulary of ``codec``."""
    return {
        name: one.policy
        if one.codec is codec
        else TranslatedPolicy(one.policy, inner=one.codec, outer=codec)
        for name, one in loaded.items()
    }
