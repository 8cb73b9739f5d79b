"""Rescues by hints, beside what a second try without a hint achieves."""

# B traces of one question

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coterie.rewards.rescue import hint_lift, hint_outcomes, rescue_candidates


@dataclass(frozen=True)
class HintCounts:
    """What the hints of one question did; counts of second-round traces."""

    eligible: int
    """Saw a hint, their role had failed cold, a peer had not (CoRe, arXiv:2601.21600)."""
    rescued: int
    """Of these, right."""
    retried: int
    """The same but for the hint: there was one for them, and chance withheld it."""
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
    control_B: npt.ArrayLike,
    *,
    role: str | None = None,
) -> HintCounts:
    """Counts over one question's traces, or over those that ``role`` wrote.

    Rounds are those of :mod:`coterie.rewards.rescue`. ``control_B`` are the traces that would be
    eligible had they seen the hint that there was for them: a question whose peer has nothing to
    hint at is no control of those that have. As chance decides trace by trace who sees its hint,
    both kinds are taken from the same questions.
    """
    correct_B = np.asarray(correct_B, dtype=bool)
    hinted_B = np.asarray(hinted_B, dtype=bool)
    role_B, round_B = np.asarray(role_B), np.asarray(round_B)
    counted_B = np.ones(len(correct_B), bool) if role is None else role_B == role
    eligible_B = counted_B & rescue_candidates(correct_B, hinted_B, role_B, round_B)
    withheld_B = counted_B & np.asarray(control_B, dtype=bool)
    outcomes = np.array(hint_outcomes(hint_lift(correct_B, hinted_B, role_B, round_B)), object)
    return HintCounts(
        eligible=int(eligible_B.sum()),
        rescued=int((eligible_B & correct_B).sum()),
        retried=int(withheld_B.sum()),
        recovered=int((withheld_B & correct_B).sum()),
        helped=int((counted_B & (outcomes == "helped")).sum()),
        hurt=int((counted_B & (outcomes == "hurt")).sum()),
        neutral=int((counted_B & (outcomes == "neutral")).sum()),
    )
