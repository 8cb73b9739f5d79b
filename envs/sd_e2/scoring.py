"""Strategies and rewards of one role's traces on one question."""

# B traces of one role, in agent order; S strategies of one trace, D dimensions

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.datatypes import Problem, Scorer, Verdict
from coterie.envs.reasoning import strategies
from coterie.envs.sd_e2.settings import SdE2Settings
from coterie.rewards.grading.answers import after_thinking, extract
from coterie.rewards.strategies import (
    count_distinct,
    diversity,
    strategy_exploitation,
    strategy_exploration,
    strategy_format,
    z_score,
)

Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]

TERMS = ("outcome", "exploration", "exploitation", "format")
"""Names of the reward terms."""

# Limits on the cost of malformed traces, far beyond a sensible budget of tokens.
MOST_STRATEGIES = 32
LONGEST_REASONING = 1 << 14
SHORTEST_REASONING = 11
"""In characters; the public code of SD-E2 ignores shorter reasoning."""

_REASONING = re.compile(r"<reasoning(?:\s[^<>]*)?>", re.IGNORECASE)
_END = re.compile(r"</reasoning>", re.IGNORECASE)
_LAST_BLOCK = re.compile(r"</strategy>", re.IGNORECASE)


@dataclass(frozen=True)
class Parsed:
    """The parts of an answer."""

    blocks: tuple[str, ...]
    """Content of each closed strategy block, at most ``MOST_STRATEGIES``."""
    reasonings: tuple[str, ...]
    """The reasoning of each block, if it has at least ``SHORTEST_REASONING`` characters."""
    answered: bool
    """Whether an answer follows the last block."""
    complete: bool
    """Whether there are blocks, all of them with reasoning and result, and an answer after them."""


@dataclass(frozen=True)
class StrategyTrace:
    """An answer, graded, with its strategy blocks."""

    verdict: Verdict
    parsed: Parsed
    right: tuple[bool, ...]
    """Whether the result of each strategy block is right, in their order."""

    @classmethod
    def read(cls, text: str, problem: Problem, scorer: Scorer) -> "StrategyTrace":
        """Parse an answer and grade its parts."""
        parsed = parse(text)
        right = tuple(scorer.check(block, problem).correct for block in parsed.blocks)
        return cls(scorer.check(text, problem), parsed, right)


@dataclass(frozen=True)
class Score:
    """The reward of one trace."""

    terms: dict[str, float]
    """Term -> its weighted value."""
    raw: dict[str, float]
    """Term -> its value before normalisation and weight."""
    strategies: int
    distinct: int
    diversity: float

    def report(self, trace: StrategyTrace) -> dict[str, Any]:
        """Return measurements of the trace for the log."""
        return {
            "correct": bool(trace.verdict.correct),
            "answer": trace.verdict.answer,
            "method": trace.verdict.method,
            "strategies": self.strategies,
            "strategies_right": sum(trace.right),
            "distinct": self.distinct,
            "diversity": self.diversity,
            "complete": trace.parsed.complete,
            **{f"raw_{name}": value for name, value in self.raw.items()},
        }


def parse(text: str) -> Parsed:
    """Parse an answer; thoughts are ignored."""
    text = after_thinking(text)
    blocks = strategies(text)[:MOST_STRATEGIES]
    reasonings = [_reasoning(block.text) for block in blocks]
    answered = extract(_LAST_BLOCK.split(text)[-1]) is not None
    tagged = all(_REASONING.search(block.text) and block.outcome for block in blocks)
    return Parsed(
        blocks=tuple(block.text for block in blocks),
        reasonings=tuple(text for text in reasonings if len(text) >= SHORTEST_REASONING),
        answered=answered,
        complete=bool(blocks) and answered and tagged,
    )


def score(traces: Sequence[StrategyTrace], settings: SdE2Settings, embed: Embed) -> list[Score]:
    """Score each trace (SD-E2, arXiv:2601.17982: the sum of four rewards, each z-scored over the
    group).

    Args:
        traces: B traces of one role on one question.
        settings: the environment's settings.
        embed: n texts -> (n, D) unit vectors.
    """
    if not traces:
        return []
    vectors = [embed(trace.parsed.reasonings) for trace in traces]
    raw = [_raw(trace, vectors_SD, settings) for trace, vectors_SD in zip(traces, vectors)]
    weights = (settings.w_outcome, settings.w_explore, settings.w_exploit, settings.w_format)
    terms: dict[str, npt.NDArray[np.float64]] = {}
    for name, weight in zip(TERMS, weights):
        values_B = np.array([row[name] for row in raw])
        terms[name] = weight * (z_score(values_B) if settings.normalise else values_B)
    return [
        Score(
            terms={name: float(values_B[i]) for name, values_B in terms.items()},
            raw=raw[i],
            strategies=len(trace.parsed.blocks),
            distinct=count_distinct(vectors[i], settings.same_above),
            diversity=diversity(vectors[i]),
        )
        for i, trace in enumerate(traces)
    ]


def _raw(
    trace: StrategyTrace, vectors_SD: npt.NDArray[np.float32], settings: SdE2Settings
) -> dict[str, float]:
    parsed = trace.parsed
    return {
        "outcome": trace.verdict.credit,
        "exploration": strategy_exploration(
            trace.right,
            vectors_SD,
            correct=settings.gamma_correct,
            rate=settings.gamma_rate,
            cap=settings.gamma_cap,
            same_above=settings.same_above,
        ),
        "exploitation": strategy_exploitation(trace.right),
        "format": strategy_format(
            len(parsed.blocks),
            parsed.answered,
            parsed.complete,
            per_strategy=settings.format_strategy,
            for_answer=settings.format_answer,
            for_completeness=settings.format_complete,
        ),
    }


def _reasoning(block: str) -> str:
    """The content of the reasoning tag, or the whole block without one."""
    inside = _REASONING.split(block, maxsplit=1)[-1]
    return " ".join(_END.split(inside, maxsplit=1)[0][:LONGEST_REASONING].split())
