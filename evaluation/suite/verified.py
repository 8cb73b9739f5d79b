"""The answer that a verifier trusts most."""

# Q questions

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.metrics.present import as_floats
from evaluation.suite.responses import Responses
from evaluation.suite.systems import System, affordable, total_used


@dataclass(frozen=True)
class Judged:
    """What a verifier said of one answer to one question."""

    trust: float
    """Probability that it is right; NaN where it said nothing valid."""
    used: tuple[float, float]
    """Its prompt and sampled tokens."""
    seconds: float


Judgements = Sequence[Mapping[str, Judged]]
"""Question by question: answer in normal form -> what the verifier said of it."""


def verified(answered: Mapping[str, Responses], said: Judgements, verifier: str) -> System:
    """The most trusted of the answers that a team's vote would count; ties are broken at random.

    Every different answer costs one judgement. An answer without a valid one is trusted least.
    """
    _, counts = affordable(answered)
    scores: list[float] = []
    judging_Q2 = np.zeros((len(said), 2))
    waited_Q = np.zeros(len(said))
    for q, judged in enumerate(said):
        candidates: dict[str, list[float]] = {}
        for name, count in counts.items():
            own = answered[name]
            for vote, right in zip(own.votes[q][:count], own.correct_QN[q][:count]):
                if vote is not None:
                    candidates.setdefault(vote, []).append(float(right))
        scores.append(_chosen(candidates, judged))
        asked = [judged[vote] for vote in candidates if vote in judged]
        judging_Q2[q] = np.sum([one.used for one in asked], axis=0) if asked else 0.0
        waited_Q[q] = max((one.seconds for one in asked), default=0.0)
    drawn = [answered[name].used_by(count) for name, count in counts.items()]
    slowest_Q = np.max([answered[name].slowest_Q(n) for name, n in counts.items()], axis=0)
    return System(
        "verifier",
        f"team, vetted by {verifier}, of {sum(counts.values())}",
        as_floats(scores),
        total_used([*drawn, {verifier: judging_Q2}]),
        slowest_Q + waited_Q,
    )


def _chosen(candidates: Mapping[str, Sequence[float]], judged: Mapping[str, Judged]) -> float:
    """Expected correctness of a random one among the most trusted."""
    if not candidates:
        return 0.0

    def trust(vote: str) -> float:
        known = judged[vote].trust if vote in judged else np.nan
        return -1.0 if np.isnan(known) else float(known)

    most = max(map(trust, candidates))
    # An answer is as right as the first that gave it.
    return float(np.mean([right[0] for vote, right in candidates.items() if trust(vote) == most]))
