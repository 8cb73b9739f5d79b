"""What the traces of one role on one question earn."""

# N traces of one role, in agent order

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from envs.corea_deferral.settings import CoreaDeferralSettings
from rewards.confidence import confidence_format, confidence_reward, target
from vocabulary import Verdict

TERMS = ("correct", "format", "confidence")
"""Names of the reward terms."""


@dataclass(frozen=True)
class Trace:
    """One answer that was really given."""

    agent: str
    role: str
    text: str
    verdict: Verdict
    confidence: float | None
    """What was stated; None where nothing valid was."""


def score(
    traces: Sequence[Trace], question: str, settings: CoreaDeferralSettings
) -> list[dict[str, float]]:
    """The weighted terms of each trace (COREA, arXiv:2603.03752, section 3.2)."""
    correct_N = np.array([trace.verdict.correct for trace in traces], dtype=np.float64)
    confident_N = np.zeros(len(traces))
    if settings.confidence_reward != "none":
        stated_N = [np.nan if t.confidence is None else t.confidence for t in traces]
        wanted_N = target(correct_N, settings.p_hat)
        confident_N = confidence_reward(
            stated_N, wanted_N, settings.confidence_reward, settings.epsilon
        )
    return [
        {
            "correct": settings.w_correct * float(correct),
            "format": settings.w_format * confidence_format(trace.text, question),
            "confidence": settings.w_confidence * float(confident),
        }
        for trace, correct, confident in zip(traces, correct_N, confident_N)
    ]
