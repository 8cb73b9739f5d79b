"""The interface between rollouts and inference: prompts, completions, policies, codecs."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from coterie.datatypes.problem import Problem

FinishReason = Literal["eos", "stop", "length"]
MOVES = "Moves: "
"""Prefix of the line of a prompt with the legal moves: numbers, or words in brackets."""
_MOVES = re.compile(rf"^{MOVES.strip()}((?: (?:-?\d+|\[[^\[\]\n]+\]))+)", re.MULTILINE)
_MOVE = re.compile(r"-?\d+|\[[^\[\]]+\]")


def role_of(agent: str) -> str:
    """Return the part before the last underscore, ``alice`` for ``alice_0``, or the whole name."""
    return agent.rpartition("_")[0] or agent


def listed_moves(text: str) -> list[str]:
    """Return the moves of the last line like ``Moves: 0 2 5``; empty without such a line."""
    lists = _MOVES.findall(text)
    return _MOVE.findall(lists[-1]) if lists else []


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters of a completion. Defaults are neutral, because training needs the true
    probabilities of sampled tokens."""

    max_new_tokens: int
    temperature: float = 1.0
    """0 is greedy sampling, with log-probabilities at temperature 1."""
    top_p: float = 1.0
    top_k: int = 0
    """0 switches the filter off."""
    stop: tuple[str, ...] = ()
    """Sampling ends with the token that completes one of these strings, which is kept whole."""


@dataclass(frozen=True)
class Prompt:
    """The input of a policy for one agent."""

    tokens: npt.NDArray[np.int64]
    """(T,) the agent's full context in its own vocabulary."""
    text: str
    """The context as text, for policies with a text interface."""
    agent: str
    seed: int
    """Determines the random stream: a completion is a function of (weights, prompt, seed)."""
    problem: Problem | None = None
    """Only for scripted policies (oracles, gold hints)."""
    continues: bool = False
    """Whether the agent may be asked again in this context. Only speed depends on it."""


@dataclass(frozen=True)
class Completion:
    """The output of a policy: sampled tokens with their log-probabilities."""

    tokens: npt.NDArray[np.int64]
    """(N,) sampled ids, including a sampled end-of-sequence id."""
    logprobs: npt.NDArray[np.float32]
    """(N,) log-probability of each token under its sampling distribution, after temperature and
    before top-p and top-k; NaN if unknown."""
    finish_reason: FinishReason
    weight_version: int = 0
    """Number of updates of the weights that sampled."""
    usage: tuple[int, int] = (0, 0)
    """(prompt, sampled) tokens by a server's own count, thinking included; 0: not known."""


class PolicyFailure(Exception):
    """A policy cannot answer. The rollout records the failure, which is not a sample."""


class Policy(Protocol):
    """Anything that answers a prompt: a model in this process, a server, a script."""

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Complete ``prompt``; raise :class:`PolicyFailure` if there is no answer."""
        ...


class TokenCodec(Protocol):
    """A role's tokenizer with its chat template, if it has one.

    Contexts only grow. Methods return ids to *append*, so sampled tokens are never tokenized again.
    """

    @property
    def vocab_size(self) -> int:
        """Number of ids, which are in ``range(vocab_size)``."""
        ...

    @property
    def eos_ids(self) -> Sequence[int]:
        """All ids that end a turn; the codec itself writes the first."""
        ...

    def open(self, message: str) -> list[int]:
        """Return the ids of a new context: the user's message and the start of the assistant's
        turn."""
        ...

    def follow(self, message: str, *, ended: bool, mark: int | None = None) -> list[int]:
        """Return the ids after an assistant's turn: its end (unless it was sampled), the user's
        next message, and the start of the assistant's turn.

        Args:
            message: the user's message.
            ended: whether the last sampled id is one of ``eos_ids``.
            mark: that id; None: the first of ``eos_ids``.
        """
        ...

    def extend(self, text: str) -> list[int]:
        """Return the ids of environment text within the assistant's turn."""
        ...

    def decode(self, tokens: Sequence[int] | npt.NDArray[np.int64]) -> str:
        """Return the text of sampled ids, without end-of-sequence and padding marks. Never raises;
        invalid text becomes replacement characters."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens in ``text``."""
        ...

    def truncate(self, text: str, limit: int, *, keep: Literal["head", "tail"] = "head") -> str:
        """Return the longest head (or tail) of ``text`` with at most ``limit`` tokens."""
        ...


def ids_per_token(codec: TokenCodec) -> int:
    """Return how many ids of ``codec`` a limit counts as one token: more than 1 for bytes."""
    return getattr(codec, "ids_per_token", 1)


def derive_seed(*parts: int | str) -> int:
    """Return a seed in [0, 2^63) that depends on all parts and their order.

    Every random stream gets a seed from its own name, such as ``derive_seed(run_seed, "sample",
    step, episode, agent, turn)``. The seed is the same on every machine and in every process, and
    does not depend on what happened before.
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
