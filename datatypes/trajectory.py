"""Trajectories and episodes: the output of rollouts and the input of algorithms."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

INFO_KEYS = (
    "reward_terms",
    "groups",
    "loss_weight",
    "learned_after",
    "reread_after",
    "contrast_after",
    "trained_turns",
    "turn_rewards",
    "void",
    "episode",
    "max_new_tokens",
    "continues",
    "stop",
    "temperature",
    "top_p",
    "piece",
    "offered_tools",
    "tool_results",
    "fresh",
    "text",
    "texts",
)
"""Keys of the environment contract in an agent's info; all other keys are measurements."""


@dataclass(frozen=True)
class Reading:
    """Another model's probabilities of the N learned tokens of a row."""

    logp_N: npt.NDArray[np.float32]
    """The log-probability of each token."""
    ids_NK: npt.NDArray[np.int64] | None = None
    """Its K likeliest tokens at each place, if they were asked for."""
    logp_NK: npt.NDArray[np.float32] | None = None
    """Their log-probabilities."""


@dataclass(frozen=True)
class Trajectory:
    """A training row: an agent's context with its sampled tokens.

    Legend: P prompt, a sampled, E inserted by the environment::

        tokens    P  P  a  a  E  a
        mask      0  0  1  1  0  1
        logprobs  0  0 -.7 -.1 0 -.3
    """

    agent: str
    role: str
    tokens: npt.NDArray[np.int64]
    """(T,) the exact ids in the order in which the model saw them."""
    mask: npt.NDArray[np.bool_]
    """(T,) true on sampled tokens."""
    logprobs: npt.NDArray[np.float32]
    """(T,) the sampler's log-probabilities on the mask; 0 elsewhere."""
    reward: float
    reward_terms: Mapping[str, float]
    """Weighted values by name; they sum to ``reward``."""
    groups: Mapping[str, str]
    """Group key -> the row's group."""
    member: str = ""
    """Name of the group's member to which the row belongs. An agent has a row for each context,
    each with the whole reward; rows of one member are compared as one. Empty: the row is a member
    by itself."""
    loss_weight: float = 1.0
    """Factor of the row's loss; it changes neither reward nor advantage."""
    status: str = "ok"
    """``ok``, or the reason why the row is not a usable sample and carries no loss."""
    weight_version: int = 0
    """The oldest weights that sampled a token of this row."""
    turns: tuple[tuple[int, int], ...] = ()
    """Spans [start, end) of the sampled turns in ``tokens``."""
    texts: tuple[str, ...] = ()
    """The context as text, in alternating pieces of environment and agent."""
    finish: tuple[str, ...] = ()
    """Why each sampled turn ended."""
    usage: tuple[tuple[int, int], ...] = ()
    """(prompt, sampled) tokens of each sampled turn by a server's own count; 0: not known."""
    untrained: tuple[tuple[int, int], ...] = ()
    """Spans [start, end) of sampled turns without loss, which are context of later turns."""
    turn_rewards: tuple[float, ...] = ()
    """Part of ``reward`` for each turn of the agent in the episode, the same in all of its rows;
    empty: the reward belongs to all turns."""
    turn_numbers: tuple[int, ...] = ()
    """Number of each of ``turns`` among all turns of the agent, from 0; empty without
    ``turn_rewards``."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """Measurements of the environment (correct, hinted, rescued, ...); plain data."""
    learned_after: npt.NDArray[np.int64] | None = None
    """(N,) ids that replace those before the first sampled token for learning; None: the row is
    learned in the context in which it was sampled."""
    reread_after: npt.NDArray[np.int64] | None = None
    """(N,) ids that replace those before the first sampled token for rereading, a context that the
    author did not have, for algorithms that distil; None: the row is not reread."""
    contrast_after: npt.NDArray[np.int64] | None = None
    """(N,) ids that replace those before the first sampled token for a second reading, with which
    the first is compared; None: it is compared with the row's own log-probabilities."""
    reading: Reading | None = None
    """A teacher's probabilities of the learned tokens; None: no teacher has read the row."""

    @property
    def trainable(self) -> bool:
        """Whether the row can enter a loss."""
        return self.status == "ok" and bool(self.mask.any())

    def is_readable(self, context: int, vocabulary: int) -> bool:
        """Whether a model with this context and this number of ids can score the sampled tokens."""
        fits = self.trainable and self.can_be_scored(context)
        return fits and int(self.tokens.max()) < vocabulary

    def can_be_scored(self, context: int) -> bool:
        """Whether the row fits in ``context`` tokens and a prompt precedes its samples."""
        # A sampled first token cannot be scored: no earlier position predicts it.
        return len(self.tokens) <= context and not self.mask[0]

    @property
    def learned_mask(self) -> npt.NDArray[np.bool_]:
        """(T,) true on sampled tokens that carry loss."""
        mask = self.mask.copy()
        for start, end in self.untrained:
            mask[start:end] = False
        return mask

    def with_term(self, name: str, value: float) -> "Trajectory":
        """Return this row with a further reward term, whose weighted value is ``value``."""
        terms = {**self.reward_terms, name: value}
        return replace(self, reward=self.reward + value, reward_terms=terms)

    def as_learned(self) -> "Trajectory":
        """Return this row with the context :attr:`learned_after`, masked to the learned tokens.

        In another context (context distillation, arXiv:2209.15189) the sampler's log-probabilities
        are unknown, hence NaN.
        """
        row = self._with_context(self.learned_after)
        if not row.untrained:
            return row
        mask = row.learned_mask
        return replace(row, mask=mask, logprobs=np.where(mask, row.logprobs, np.float32(0)))

    def as_reread(self) -> "Trajectory":
        """Return this row with the context :attr:`reread_after`."""
        return self._with_context(self.reread_after)

    def as_contrast(self) -> "Trajectory":
        """Return this row with the context :attr:`contrast_after`."""
        return self._with_context(self.contrast_after)

    def _with_context(self, context: npt.NDArray[np.int64] | None) -> "Trajectory":
        if context is None or not self.mask.any():
            return self
        # The sampled part includes turns without loss.
        start = min([int(self.mask.argmax()), *(first for first, _ in self.untrained)])
        mask, shift = self.mask[start:], len(context) - start
        return replace(
            self,
            tokens=np.concatenate([context, self.tokens[start:]]),
            mask=np.concatenate([np.zeros(len(context), np.bool_), mask]),
            logprobs=np.concatenate(
                [np.zeros(len(context)), np.where(mask, np.nan, 0.0)], dtype=np.float32
            ),
            turns=tuple((first + shift, end + shift) for first, end in self.turns),
            untrained=tuple((first + shift, end + shift) for first, end in self.untrained),
            learned_after=None,
        )


@dataclass(frozen=True)
class Episode:
    """An episode of an environment: a function of (problem, seed, options, actions)."""

    problem_id: str
    seed: int
    step: int
    mode: str
    """``train`` or ``eval``."""
    trajectories: tuple[Trajectory, ...]
    info: Mapping[str, Any] = field(default_factory=dict)
    """Measurements of the whole episode; plain data."""
    gold: str | None = None
    """The problem's reference answers, joined by ``or``; None without a problem."""
    kind: str | None = None
    """How answers are compared (:data:`AnswerKind`)."""
    problem_shown: bool = True
    """Whether an agent saw the problem's question; games ignore it."""
    rewards: Mapping[str, float] = field(default_factory=dict)
    """Agent -> sum of its rewards, also for agents that never acted."""


def why_not_of_turns(agent: str, info: Mapping[str, Any], turns: int) -> str:
    """Check an agent's ``turn_rewards`` and ``trained_turns``; return a sentence, or "".

    Args:
        agent: the agent.
        info: its last info.
        turns: how often it was asked.
    """
    rewards, trained = info.get("turn_rewards"), info.get("trained_turns")
    if rewards is not None and len(rewards) != turns:
        return (
            f"turn_rewards of {agent} has {len(rewards)} numbers, and it had {turns} turns: give "
            "one number for each"
        )
    if wrong := [turn for turn in trained or () if not -turns <= turn < turns]:
        return (
            f"trained_turns of {agent} names turn {wrong[0]}, and it had {turns}: count from 0, or "
            "from the end with -1"
        )
    return ""
