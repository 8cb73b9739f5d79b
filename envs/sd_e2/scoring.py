"""Traces of one role on one question: their strategies, and their rewards."""

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

# Bounds on garbage, far beyond what a trace in any sensible budget of tokens reaches.
MOST_STRATEGIES = 32
LONGEST_REASONING = 1 << 14
SHORTEST_REASONING = 11
"""Characters; the public code of SD-E2 takes less for no reasoning."""

_REASONING = re.compile(r"<reasoning(?:\s[^<>]*)?>", re.IGNORECASE)
_END = re.compile(r"</reasoning>", re.IGNORECASE)
_LAST_BLOCK = re.compile(r"</strategy>", re.IGNORECASE)


@dataclass(frozen=True)
class Parsed:
    """What a text consists of."""

    blocks: tuple[str, ...]
    """Content of each closed strategy block, at most ``MOST_STRATEGIES``."""
    reasonings: tuple[str, ...]
    """The reasoning of each block that has one of some length."""
    answered: bool
    """Whether an answer stands after the last block."""
    complete: bool
    """Whether there are blocks, all with reasoning and result, and an answer after them."""


@dataclass(frozen=True)
class StrategyTrace:
    """One answer, graded, with its strategy blocks."""

    verdict: Verdict
    parsed: Parsed
    right: tuple[bool, ...]
    """Whether the result of each strategy block is right, in their order."""

    @classmethod
    def read(cls, text: str, problem: Problem, scorer: Scorer) -> "StrategyTrace":
        """Take an answer apart and grade its parts."""
        parsed = parse(text)
        right = tuple(scorer.check(block, problem).correct for block in parsed.blocks)
        return cls(scorer.check(text, problem), parsed, right)


@dataclass(frozen=True)
class Score:
    """What one trace earned."""

    terms: dict[str, float]
    """Term -> its weighted value."""
    raw: dict[str, float]
    """Term -> its value before normalisation and weight."""
    strategies: int
    distinct: int
    diversity: float

    def report(self, trace: StrategyTrace) -> dict[str, Any]:
        """What is logged of the trace that earned this."""
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
    """Take a text apart; thoughts do not count."""
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
    """Scores of each trace (SD-E2, arXiv:2601.17982: four rewards, each z-scored over the group,
    then added up).

    Args:
        traces: B traces of one role on one question.
        settings: the environment's.
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
            terms={name: float(values_B[place]) for name, values_B in terms.items()},
            raw=raw[place],
            strategies=len(trace.parsed.blocks),
            distinct=count_distinct(vectors[place], settings.same_above),
            diversity=diversity(vectors[place]),
        )
        for place, trace in enumerate(traces)
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
    """What stands between the tags, or the whole block without them."""
    inside = _REASONING.split(block, maxsplit=1)[-1]
    return " ".join(_END.split(inside, maxsplit=1)[0][:LONGEST_REASONING].split())
