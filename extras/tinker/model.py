"""A role's model on a server: its name there, its codec here, and the tokens that it has cost."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from coterie.agents.models.codec import HFCodec
from coterie.agents.models.load_tokenizer import load_tokenizer, source_of
from coterie.agents.models.locate import local_folder
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.settings import AgentSettings
from coterie.extras.tinker.settings import Prices, TinkerSettings

_CPU = torch.device("cpu")
_NO_LIMIT = 1 << 20
_MILLION = 1e6


@dataclass
class Tokens:
    """Tokens that a server has computed for a role."""

    prompt: int = 0
    sampled: int = 0
    scored: int = 0
    trained: int = 0

    def cost(self, prices: Prices) -> float:
        """What they cost."""
        prefilled = (self.prompt + self.scored) * prices.prefill
        return (prefilled + self.sampled * prices.sample + self.trained * prices.train) / _MILLION

    def plain(self) -> dict[str, int]:
        """The counts as JSON data."""
        return asdict(self)


@dataclass
class ServerModel:
    """Implements :class:`coterie.algorithms.step_learner.LearningModel` and
    :class:`coterie.agents.sampling.policy.Bounded`."""

    role: str
    name: str
    """What the server calls the base model."""
    codec: HFCodec
    context: int
    """Longest context in tokens that can also be scored: one less than the model's."""
    rank: int
    """Rank of the adapter, for a role that learns."""
    prices: Prices | None
    marks: tuple[str, ...] = ()
    """The text of each of the codec's ``eos_ids``."""
    local_name: str = ""
    """Name or folder of the base model on this machine."""
    version: int = 0
    tokens: Tokens = field(default_factory=Tokens)

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        return self.codec.vocab_size

    @property
    def device(self) -> torch.device:
        """The device of log-probabilities, which arrive over the network."""
        return _CPU

    @contextmanager
    def active(self) -> Iterator[None]:
        """Do nothing: the server keeps the roles apart."""
        yield


def server_model(role: str, agent: AgentSettings, settings: TinkerSettings) -> ServerModel:
    """Return the model of a role; only its tokenizer and ``config.json`` are read here.

    Raises:
        UserError: the tokenizer cannot be loaded.
    """
    from transformers import AutoConfig, GenerationConfig

    spec = model_spec(agent)
    folder = local_folder(spec)
    name, common = source_of(spec, folder)
    config: Any = AutoConfig.from_pretrained(name, **common).get_text_config()
    try:
        ends: Any = GenerationConfig.from_pretrained(name, **common).eos_token_id
    except OSError:  # a checkpoint without generation_config.json
        ends = None
    # A request for log-probabilities samples a token after those that it scores.
    context = (spec.context or getattr(config, "max_position_embeddings", None) or _NO_LIMIT) - 1
    tokenizer = load_tokenizer(spec)
    codec = HFCodec(
        tokenizer,
        chat=spec.chat,
        system=spec.system,
        vocab_size=config.vocab_size,
        eos_ids=ends if isinstance(ends, list) else [] if ends is None else [ends],
        context=context,
    )
    path = str(folder.resolve()) if folder else None
    return ServerModel(
        role,
        settings.name_of(agent.model, path),
        codec,
        context,
        agent.lora_rank,
        settings.prices_of(agent.model),
        tuple(map(str, tokenizer.convert_ids_to_tokens(list(codec.eos_ids)))),
        agent.model if agent.model.startswith("tiny:") else path or agent.model,
    )
