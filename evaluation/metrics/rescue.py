"""Rescues by hints, beside what a second try without a hint achieves."""

# B traces of one question, Q questions

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from evaluation.metrics.bootstrap import Estimate, bootstrap, paired_difference, wilson
from evaluation.metrics.present import Floats, ratio
from rewards.lift import hint_lift, hint_outcomes
from rewards.rescue import HINT, eligible


@dataclass(frozen=True)
class HintCounts:
    """What the hints of one question did; counts of second-round traces."""

    eligible: int
    """Saw a hint, their role had failed cold, a peer had not (CoRe, arXiv:2601.21600)."""
    rescued: int
    """Of these, right."""
    retried: int
    """The same but for the hint: they tried again cold."""
    recovered: int
    """Of these, right: what chance and regression to the mean achieve."""
    helped: int
    """Saw a hint and did better than their role's cold rate."""
    hurt: int
    """Saw a hint and did worse."""
    neutral: int
    """Saw a hint and did the same."""


def hint_counts(
    correct_B: npt.ArrayLike,
    hinted_B: npt.ArrayLike,
    role_B: npt.ArrayLike,
    round_B: npt.ArrayLike,
    *,
    role: str | None = None,
) -> HintCounts:
    """Counts over one question's traces, or over those that ``role`` wrote.

    Rounds are those of :mod:`rewards.rescue`.
    """
    correct_B = np.asarray(correct_B, dtype=bool)
    hinted_B = np.asarray(hinted_B, dtype=bool)
    role_B, round_B = np.asarray(role_B), np.asarray(round_B)
    counted_B = np.ones(len(correct_B), bool) if role is None else role_B == role
    # Whoever would have been eligible with a hint splits into those who saw one and the control.
    candidate_B = counted_B & eligible(correct_B, round_B == HINT, role_B, round_B)
    outcomes = np.array(hint_outcomes(hint_lift(correct_B, hinted_B, role_B, round_B)), object)
    return HintCounts(
        eligible=int((candidate_B & hinted_B).sum()),
        rescued=int((candidate_B & hinted_B & correct_B).sum()),
        retried=int((candidate_B & ~hinted_B).sum()),
        recovered=int((candidate_B & ~hinted_B & correct_B).sum()),
        helped=int((counted_B & (outcomes == "helped")).sum()),
        hurt=int((counted_B & (outcomes == "hurt")).sum()),
        neutral=int((counted_B & (outcomes == "neutral")).sum()),
    )


@dataclass(frozen=True)
class RescueRates:
    """Rates over questions. ``count`` of a rate is its denominator in traces."""

    rescue: Estimate
    """rescued / eligible, Wilson's interval."""
    control: Estimate
    """recovered / retried, Wilson's interval."""
    advantage: Estimate
    """rescue - control, bootstrap over questions; ``count`` is the number of questions."""
    matched: Estimate
    """The same within questions that have both kinds of trace: free of differences between
    questions."""
    lift: Estimate
    """(helped - hurt) / hinted, bootstrap over questions."""


def rescue_rates(counts: Sequence[HintCounts], *, seed: int = 0) -> RescueRates:
    """Rates, intervals and the comparison with the un-hinted control."""
    table_QC = np.array([astuple(count) for count in counts], dtype=np.float64).reshape(-1, 7)
    rescued, recovered = (
        ratio(table_QC[:, 1], table_QC[:, 0]),
        ratio(table_QC[:, 3], table_QC[:, 2]),
    )
    total = table_QC.sum(axis=0).astype(int)
    return RescueRates(
        rescue=wilson(total[1], total[0]),
        control=wilson(total[3], total[2]),
        advantage=bootstrap(table_QC, _advantage, seed=seed),
        matched=paired_difference(recovered, rescued, seed=seed),
        lift=bootstrap(table_QC, _lift, seed=seed),
    )


def _advantage(mean_C: Floats) -> Floats:
    return ratio(mean_C[..., 1], mean_C[..., 0]) - ratio(mean_C[..., 3], mean_C[..., 2])


def _lift(mean_C: Floats) -> Floats:
    return ratio(mean_C[..., 4] - mean_C[..., 5], mean_C[..., 4:7].sum(axis=-1))
