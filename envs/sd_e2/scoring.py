"""What the traces of one role on one question earn."""

# B traces of one role, in agent order

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envs.sd_e2.settings import SdE2Settings
from envs.sd_e2.trace import Trace
from rewards.strategies import (
    distinct,
    diversity,
    strategy_exploitation,
    strategy_exploration,
    strategy_format,
    z_score,
)

Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]

TERMS = ("outcome", "exploration", "exploitation", "format")
"""Names of the reward terms."""


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


def score(traces: Sequence[Trace], settings: SdE2Settings, embed: Embed) -> list[Score]:
    """Scores of each trace (SD-E2, arXiv:2601.17982: four rewards, each z-scored over the group,
    then added up)."""
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
            distinct=distinct(vectors[place], settings.same_above),
            diversity=diversity(vectors[place]),
        )
        for place, trace in enumerate(traces)
    ]


def _raw(
    trace: Trace, vectors_SD: npt.NDArray[np.float32], settings: SdE2Settings
) -> dict[str, float]:
    parsed = trace.parsed
    return {
        "outcome": float(trace.verdict.correct),
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
