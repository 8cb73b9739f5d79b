"""The weighted reward terms of one question's traces."""

# B traces of one question in agent order, S strategies inside one trace

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.datatypes import Problem, Verdict
from coterie.envs.core_teaching.settings import CoreTeachingSettings, TermWeights
from coterie.envs.core_teaching.terms import custom_terms
from coterie.envs.reasoning import strategies
from coterie.rewards.exploitation import exploitation, trace_accuracy
from coterie.rewards.exploration import (
    cross_model,
    exploration,
    hybrid_distance,
    signatures,
    strategy_ratio,
)
from coterie.rewards.partial_credit import partial_credit
from coterie.rewards.rescue import hint_lift, rescue_candidates, rescues, teacher_lift

Values = npt.NDArray[np.float64]
Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]

TERMS = tuple(term.name for term in fields(TermWeights))
"""Names of the reward terms."""
NO_WEIGHTS = TermWeights(**dict.fromkeys(TERMS, 0.0))

# Limits on the cost of malformed traces, far beyond a sensible budget of tokens.
_MOST_STRATEGIES = 16
_COMPARED_LENGTH = 1 << 16


@dataclass(frozen=True)
class Trace:
    """An answer, graded."""

    agent: str
    role: str
    round: int
    """0 cold, 1 second round (``coterie.rewards.rescue.COLD``, ``HINT``)."""
    text: str
    verdict: Verdict
    taught_by: str | None = None
    """The agent whose hint this trace saw; None: it saw none."""

    @property
    def hinted(self) -> bool:
        return self.taught_by is not None


@dataclass(frozen=True)
class Hint:
    """A hint for one role."""

    teacher: str
    """The agent that wrote the trace."""
    text: str
    """The trace without its answer, truncated in the student's tokens."""


@dataclass(frozen=True)
class Scores:
    """Rewards and measurements of traces, in their order."""

    terms: dict[str, npt.NDArray[np.floating[Any]]]
    """Term -> (B,) weighted values."""
    exploit_B: npt.NDArray[np.float64]
    """Unweighted exploitation."""
    partial_B: npt.NDArray[np.float64]
    eligible_B: npt.NDArray[np.bool_]
    rescued_B: npt.NDArray[np.bool_]
    lift_B: npt.NDArray[np.float64]
    """Correctness of a hinted trace less its role's cold rate; NaN elsewhere."""
    exploration_zero: bool | None
    """Whether exploration is 0 for all traces; None if it has no weight."""

    @property
    def total_B(self) -> npt.NDArray[np.float64]:
        return np.asarray(sum(self.terms.values()), dtype=np.float64)

    def of(self, row: int) -> dict[str, float]:
        """Return the terms of one trace."""
        return {name: float(value_B[row]) for name, value_B in self.terms.items()}


def score(
    traces: Sequence[Trace],
    problem: Problem,
    settings: CoreTeachingSettings,
    weights: TermWeights,
    embed: Embed,
) -> Scores:
    """Score at least one trace (CoRe, arXiv:2601.21600, eq. 4).

    Args:
        traces: B traces of one question.
        problem: the question.
        settings: the environment's settings.
        weights: the weights of the epoch; terms with weight 0 are not computed.
        embed: n texts -> (n, D) unit vectors; called only if a term needs distances.

    Raises:
        UserError: a custom reward term fails.
    """
    correct_B = np.array([trace.verdict.correct for trace in traces])
    hinted_B = np.array([trace.hinted for trace in traces])
    roles = list(dict.fromkeys(trace.role for trace in traces))
    role_B = np.array([roles.index(trace.role) for trace in traces])
    round_B = np.array([trace.round for trace in traces])
    partial_B = np.array([_partial(trace.verdict, problem, settings) for trace in traces])
    exploit_B = exploitation(
        [trace.verdict.credit for trace in traces],
        partial_B,
        settings.alpha,
        partial_only_if_wrong=settings.alpha_only_if_wrong,
    )
    explore_B: Values = np.zeros(len(traces))
    cross_B: Values = explore_B
    lift_paid_B: Values = explore_B
    eligible_B = rescued_B = np.zeros(len(traces), dtype=bool)
    lift_B = np.full(len(traces), np.nan)
    if hinted_B.any():
        eligible_B = rescue_candidates(correct_B, hinted_B, role_B, round_B)
        rescued_B = rescues(correct_B, hinted_B, role_B, round_B)
        lift_B = hint_lift(correct_B, hinted_B, role_B, round_B)
        if weights.teacher_lift:
            lift_paid_B = _lift_paid(traces, correct_B, role_B, round_B)

    distance_BB = None
    if _compares_traces(settings, weights):
        distance_BB = _distances([trace.text for trace in traces], embed)
    if weights.exploration:
        explore_B = _explore(
            traces, distance_BB, exploit_B, correct_B, role_B, settings=settings, embed=embed
        )
    if weights.cross_model and distance_BB is not None:
        cross_B = cross_model(
            distance_BB,
            exploit_B,
            role_B,
            round_B,
            threshold=settings.eta,
            margin=settings.delta_cm,
            requires_correct_B=correct_B if settings.cross_requires_correct else None,
        )

    return Scores(
        terms={
            "exploitation": weights.exploitation * exploit_B,
            "exploration": weights.exploration * explore_B,
            "cross_model": weights.cross_model * cross_B,
            "trace_accuracy": weights.trace_accuracy
            * trace_accuracy(correct_B, round_B, settings.trace_accuracy),
            "rescue": weights.rescue * rescued_B,
            "teacher_lift": weights.teacher_lift * lift_paid_B,
            **custom_terms(settings.terms, traces, problem),
        },
        exploit_B=exploit_B,
        partial_B=partial_B,
        eligible_B=eligible_B,
        rescued_B=rescued_B,
        lift_B=lift_B,
        exploration_zero=not explore_B.any() if weights.exploration else None,
    )


def texts_to_embed(
    texts: Sequence[str], settings: CoreTeachingSettings, weights: TermWeights
) -> tuple[str, ...]:
    """Return the texts that :func:`score` will embed for traces with these ``texts``."""
    embedded: list[str] = []
    if _compares_traces(settings, weights):
        embedded += texts
    if weights.exploration and settings.explore_mode == "strategy-ratio":
        for text in texts:
            blocks = _blocks(text)
            embedded += blocks if len(blocks) > 1 else []
    return tuple(text[:_COMPARED_LENGTH] for text in embedded)


def _compares_traces(settings: CoreTeachingSettings, weights: TermWeights) -> bool:
    """Whether a term needs the distances between whole traces."""
    between_traces = settings.explore_mode != "strategy-ratio"
    return bool(weights.cross_model or (weights.exploration and between_traces))


def _explore(
    traces: Sequence[Trace],
    distance_BB: npt.NDArray[np.float64] | None,
    exploit_B: Values,
    correct_B: npt.NDArray[np.bool_],
    role_B: npt.NDArray[np.int64],
    *,
    settings: CoreTeachingSettings,
    embed: Embed,
) -> Values:
    """Unweighted exploration. Strategies within a trace are compared without ``distance_BB``."""
    paid_B = correct_B if settings.explore_correct_only else np.ones(len(traces), dtype=bool)
    if settings.explore_mode == "strategy-ratio":
        return np.array([_ratio(trace.text, settings, embed) for trace in traces]) * paid_B
    assert distance_BB is not None
    return exploration(
        distance_BB,
        exploit_B,
        mode=settings.explore_mode,
        margin=settings.delta,
        cap=settings.cap,
        pool_B=role_B if settings.explore_pool == "model" else None,
        eligible_B=paid_B,
    )


def _partial(verdict: Verdict, problem: Problem, settings: CoreTeachingSettings) -> float:
    if verdict.correct:
        return 1.0
    return max(
        partial_credit(
            verdict.answer, gold, problem.kind, numeric_overlap=settings.partial_on_numbers
        )
        for gold in problem.golds
    )


def _lift_paid(
    traces: Sequence[Trace],
    correct_B: npt.NDArray[np.bool_],
    role_B: npt.NDArray[np.int64],
    round_B: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Lift of each teacher, over the traces that saw its hint."""
    paid_B = np.zeros(len(traces))
    taught_by = [trace.taught_by for trace in traces]
    for row, trace in enumerate(traces):
        if trace.agent in taught_by:
            taught_B = np.array([agent == trace.agent for agent in taught_by])
            paid_B[row] = teacher_lift(correct_B, taught_B, role_B, round_B, row)
    return paid_B


def _distances(texts: Sequence[str], embed: Embed) -> npt.NDArray[np.float64]:
    texts = [text[:_COMPARED_LENGTH] for text in texts]
    return hybrid_distance(embed(texts), signatures(texts))


def _blocks(text: str) -> list[str]:
    return [block.text for block in strategies(text)[:_MOST_STRATEGIES]]


def _ratio(text: str, settings: CoreTeachingSettings, embed: Embed) -> float:
    blocks = _blocks(text)
    if len(blocks) < 2:
        return 0.0
    return strategy_ratio(_distances(blocks, embed), margin=settings.delta, cap=settings.cap)
