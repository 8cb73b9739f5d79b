"""The boundary between rollouts and inference: a prompt goes out, a completion comes back."""

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
"""Begins the line in which a prompt lists legal moves: numbers, or words in brackets."""
_MOVES = re.compile(rf"^{MOVES.strip()}((?: (?:-?\d+|\[[^\[\]\n]+\]))+)", re.MULTILINE)
_MOVE = re.compile(r"-?\d+|\[[^\[\]]+\]")


def listed_moves(text: str) -> list[str]:
    """The moves that the last line of the kind ``Moves: 0 2 5`` lists; none without one."""
    lists = _MOVES.findall(text)
    return _MOVE.findall(lists[-1]) if lists else []


@dataclass(frozen=True)
class Sampling:
    """How to sample one completion. Defaults are the neutral ones: training needs the
    probabilities under which tokens were really drawn."""

    max_new_tokens: int
    temperature: float = 1.0
    """0 is greedy; log-probabilities are then those at temperature 1."""
    top_p: float = 1.0
    top_k: int = 0
    """0 switches the filter off."""
    stop: tuple[str, ...] = ()
    """Decoding ends with the token in which one of these strings is completed; the token is
    kept whole."""


@dataclass(frozen=True)
class Prompt:
    """The input of a policy, on behalf of one agent."""

    tokens: npt.NDArray[np.int64]
    """(T,) the agent's full context in its own vocabulary."""
    text: str
    """The same context as text, for policies that live behind a text interface."""
    agent: str
    seed: int
    """Names this row's random stream: a completion is a function of (weights, prompt, seed)."""
    problem: Problem | None = None
    """Private: only scripted policies (oracles, gold hints) may look."""


@dataclass(frozen=True)
class Completion:
    """The output of a policy: sampled tokens with their log-probabilities."""

    tokens: npt.NDArray[np.int64]
    """(N,) sampled ids, the end-of-sequence id included where it was sampled."""
    logprobs: npt.NDArray[np.float32]
    """(N,) log-probability of each token under the distribution it was drawn from: after
    temperature, before top-p and top-k. NaN where the policy cannot tell."""
    finish_reason: FinishReason
    weight_version: int = 0
    """Number of updates that the sampling weights had seen."""


class PolicyFailure(Exception):
    """A policy could not answer. The rollout records it as data; it is never a sample."""


class Policy(Protocol):
    """Anything that answers a prompt: a model in this process, a server, a script."""

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Complete ``prompt``; raise :class:`PolicyFailure` when no answer can be had."""
        ...


class TokenCodec(Protocol):
    """A role's tokenizer together with its chat template (or none).

    Contexts only ever grow: each method returns the ids to *append*, so that sampled tokens are
    never tokenised a second time.
    """

    @property
    def vocab_size(self) -> int:
        """Number of ids: they are in ``range(vocab_size)``."""
        ...

    @property
    def eos_ids(self) -> Sequence[int]:
        """Every id that ends a turn; the first is the one with which a turn ends here."""
        ...

    def open(self, message: str) -> list[int]:
        """Ids of a fresh context: the user's message, rendered up to the point where the
        assistant writes."""
        ...

    def follow(self, message: str, *, ended: bool, mark: int | None = None) -> list[int]:
        """Ids appended after an assistant's turn: the end of that turn (unless ``ended`` says
        that the model sampled it), the user's next message, the assistant's start.

        Args:
            message: the user's.
            ended: whether the last sampled id is one of ``eos_ids``.
            mark: which one; the first without one.
        """
        ...

    def extend(self, text: str) -> list[int]:
        """Ids of environment text inserted into the assistant's current turn."""
        ...

    def decode(self, tokens: Sequence[int] | npt.NDArray[np.int64]) -> str:
        """Text of sampled ids, without end-of-sequence or padding marks. Never raises: ids that
        are not valid text decode to replacement characters."""
        ...

    def count(self, text: str) -> int:
        """Number of tokens in ``text``."""
        ...

    def truncate(self, text: str, limit: int, *, keep: Literal["head", "tail"] = "head") -> str:
        """The longest head (or tail) of ``text`` that has at most ``limit`` tokens."""
        ...


def derive_seed(*parts: int | str) -> int:
    """A seed in [0, 2^63) that depends on every part and on their order, so that no random stream
    depends on the order in which things happen.

    ``derive_seed(run_seed, "sample", step, episode, agent, turn)`` names one row's stream: the same
    on every machine and in every process.
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
