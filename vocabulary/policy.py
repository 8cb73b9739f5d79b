"""The one-method boundary between rollouts and inference."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from vocabulary.problem import Problem

FinishReason = Literal["eos", "stop", "length"]


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
    """What a policy is asked, on behalf of one agent."""

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
    """What a policy answered."""

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
