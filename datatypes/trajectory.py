"""Trajectories and episodes: the output of rollouts and the input of algorithms."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Trajectory:
    """One training row: an agent's context with the tokens it sampled.

    Legend: P prompt, a sampled, E inserted by the environment::

        tokens    P  P  a  a  E  a
        mask      0  0  1  1  0  1
        logprobs  0  0 -.7 -.1 0 -.3
    """

    agent: str
    role: str
    tokens: npt.NDArray[np.int64]
    """(T,) the exact ids, in the order in which the model saw them."""
    mask: npt.NDArray[np.bool_]
    """(T,) true on the policy's own sampled tokens, and only there."""
    logprobs: npt.NDArray[np.float32]
    """(T,) the sampler's log-probabilities where ``mask``; 0 elsewhere."""
    reward: float
    reward_terms: Mapping[str, float]
    """Weighted values by name; they sum to ``reward``."""
    groups: Mapping[str, str]
    """Key name -> the group that this row belongs to under that key."""
    member: str = ""
    """Who of the group this is: the rows of one agent in one episode (its contexts, each with its
    whole reward) share it and are compared as one; empty: the row by itself."""
    loss_weight: float = 1.0
    """Multiplies this row's loss after advantages are taken; never the reward."""
    status: str = "ok"
    """``ok``, or why there is no usable sample; such rows carry no loss."""
    weight_version: int = 0
    """The oldest weights that sampled a token of this row."""
    turns: tuple[tuple[int, int], ...] = ()
    """Spans [start, end) of each sampled turn in ``tokens``."""
    texts: tuple[str, ...] = ()
    """The pieces of context as text, in order: given and sampled in turn."""
    finish: tuple[str, ...] = ()
    """Why each sampled turn ended."""
    untrained: tuple[tuple[int, int], ...] = ()
    """Spans [start, end) of turns that the policy sampled and that carry no loss: they are context
    of the others."""
    turn_rewards: tuple[float, ...] = ()
    """What of ``reward`` its agent was paid for each of its turns in the episode, in whatever rows
    they are; empty: the reward is for all of them."""
    turn_numbers: tuple[int, ...] = ()
    """Which of the agent's turns, from 0, each of ``turns`` is; empty without ``turn_rewards``."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """What the environment measured (correct, hinted, rescued, ...); plain data."""
    learned_after: npt.NDArray[np.int64] | None = None
    """Ids after which the row is learned, in place of those before its first sampled token;
    None: those that the model saw."""
    reread_after: npt.NDArray[np.int64] | None = None
    """Ids after which the row is read once more, in place of those before its first sampled token:
    a context that its author did not have, for algorithms that distil; None: it is not."""

    @property
    def trainable(self) -> bool:
        """Whether this row may enter a loss."""
        return self.status == "ok" and bool(self.mask.any())

    @property
    def learned_mask(self) -> npt.NDArray[np.bool_]:
        """(T,) true on the sampled tokens that carry loss."""
        mask = self.mask.copy()
        for start, end in self.untrained:
            mask[start:end] = False
        return mask

    def with_term(self, name: str, value: float) -> "Trajectory":
        """This row with one more reward term of that weighted ``value``."""
        terms = {**self.reward_terms, name: value}
        return replace(self, reward=self.reward + value, reward_terms=terms)

    def as_learned(self) -> "Trajectory":
        """This row with the context after which it is learned, and a mask on what is learned.

        Where that is another one (context distillation, arXiv:2209.15189), what the sampler's
        log-probabilities would have been is not known: they are NaN.
        """
        row = self._behind(self.learned_after)
        if not row.untrained:
            return row
        mask = row.learned_mask
        return replace(row, mask=mask, logprobs=np.where(mask, row.logprobs, np.float32(0)))

    def as_reread(self) -> "Trajectory":
        """This row after the context of :attr:`reread_after`."""
        return self._behind(self.reread_after)

    def _behind(self, before: npt.NDArray[np.int64] | None) -> "Trajectory":
        if before is None or not self.mask.any():
            return self
        # What is not learned was sampled all the same.
        start = min([int(self.mask.argmax()), *(first for first, _ in self.untrained)])
        mask, shift = self.mask[start:], len(before) - start
        return replace(
            self,
            tokens=np.concatenate([before, self.tokens[start:]]),
            mask=np.concatenate([np.zeros(len(before), np.bool_), mask]),
            logprobs=np.concatenate(
                [np.zeros(len(before)), np.where(mask, np.nan, 0.0)], dtype=np.float32
            ),
            turns=tuple((first + shift, end + shift) for first, end in self.turns),
            untrained=tuple((first + shift, end + shift) for first, end in self.untrained),
            learned_after=None,
        )


@dataclass(frozen=True)
class Episode:
    """One play of an environment: a function of (problem, seed, options, actions)."""

    problem_id: str
    seed: int
    step: int
    mode: str
    """``train`` or ``eval``."""
    trajectories: tuple[Trajectory, ...]
    info: Mapping[str, Any] = field(default_factory=dict)
    """Episode-level measurements of the environment; plain data."""
    gold: str | None = None
    """The problem's reference answers, joined by ``or``; None where it was given no problem."""
    kind: str | None = None
    """How answers to it are compared (:data:`AnswerKind`)."""
    problem_shown: bool = True
    """Whether anybody was given the problem's question; a game has no use for one."""
    rewards: Mapping[str, float] = field(default_factory=dict)
    """Agent -> what it was paid in all, whether or not it was ever asked."""
