"""Agents that answer and never learn, in memory."""

from collections.abc import Mapping
from dataclasses import dataclass

from envs.bytes_codec import BytesCodec
from experts import TranslatedPolicy
from experts.naming import is_player
from launch.models import model_spec
from launch.players import build_player, local_models
from launch.settings import AgentSettings
from models.spec import ModelSpec
from vocabulary import Policy, TokenCodec


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


def load_frozen(agents: Mapping[str, AgentSettings]) -> dict[str, Loaded]:
    """Load these agents together; adapters of one model share it.

    A script, a server or a pool has no tokenizer of its own here: it speaks bytes.
    """
    local = _load_local({name: model_spec(one) for name, one in local_models(agents).items()})
    spoken = {name: (one.policy, one.codec) for name, one in local.items()}
    return {
        name: _player(name, settings.model, spoken) if is_player(settings.model) else local[name]
        for name, settings in agents.items()
    }


def _player(name: str, model: str, local: Mapping[str, tuple[Policy, TokenCodec]]) -> Loaded:
    codec = BytesCodec()
    return Loaded(build_player(name, model, codec, codec_name="utf-8", local=local), codec)


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
