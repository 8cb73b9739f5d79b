"""How experts fade: the probability that a reply is accepted, by training step."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

Schedule = Literal["inv", "inv-sqrt", "inv-sq", "const", "linear", "cosine"]

_POWERS = {"inv": 1.0, "inv-sqrt": 0.5, "inv-sq": 2.0}
_HALVINGS = 200


# EAPO, arXiv:2509.23730, section 2.3: a reply enters with probability 1 / s in training step s.
@dataclass(frozen=True)
class Fading:
    """One schedule; an instance without arguments is the paper's 1 / s. A run's default is the
    setting ``schedule``, see
    :func:`coterie.envs.eapo_consultation.settings.fading_of`."""

    schedule: Schedule = "inv"
    rate: float = 0.02
    """``const``: the acceptance."""
    scale: float = 1.0
    """``inv``, ``inv-sqrt``, ``inv-sq``: (1 + (s - 1) / scale) to the power -1, -1/2 or -2."""
    span: float = 320.0
    """``linear``, ``cosine``: steps from 1 down to 0."""
    start: int = 0
    """s_0: steps that do not count, such as those of a learning rate's warm-up; the acceptance
    stays at its first value until they are over."""


def acceptance(fading: Fading, step: int) -> float:
    """The probability rho_s, in [0, 1]; ``step`` counts from 1."""
    done = max(step - fading.start, 1) - 1
    if fading.schedule in _POWERS:
        # rho_s = s^-p for scale 1 and start 0
        return (1 + done / fading.scale) ** -_POWERS[fading.schedule]
    if fading.schedule == "const":
        return fading.rate
    left = max(0.0, 1 - done / fading.span)
    return left if fading.schedule == "linear" else (1 - math.cos(math.pi * left)) / 2


def total(fading: Fading, steps: int) -> float:
    """Sum of the acceptance over the first ``steps`` steps."""
    return math.fsum(acceptance(fading, step) for step in range(1, steps + 1))


def match_budget(fading: Fading, budget: float, steps: int) -> Fading:
    """``fading`` stretched until its acceptance sums to ``budget`` over ``steps`` steps.

    ``const`` changes its rate, ``linear`` and ``cosine`` their span, the others their scale.

    Args:
        fading: the schedule.
        budget: what its acceptance is to sum to.
        steps: training steps over which they are counted.

    Raises:
        ValueError: no stretch gives that total.
    """
    if fading.schedule == "const":
        if not 0 <= budget <= steps:
            raise _out_of_reach(fading.schedule, 0, steps, steps, budget)
        return dataclasses.replace(fading, rate=budget / steps)
    name = "scale" if fading.schedule in _POWERS else "span"

    def stretch(logarithm: float) -> Fading:
        return dataclasses.replace(fading, **{name: math.exp(logarithm)})

    # The total grows with the stretch, from the steps before s_0 and one more up to all.
    low, high = -40.0, 40.0
    least, most = (total(stretch(end), steps) for end in (low, high))
    if not least <= budget <= most:
        raise _out_of_reach(fading.schedule, least, most, steps, budget)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if total(stretch(middle), steps) > budget else (middle, high)
    return stretch((low + high) / 2)


def _out_of_reach(
    schedule: str, least: float, most: float, steps: int, budget: float
) -> ValueError:
    return ValueError(
        f"{schedule} can sum to {least:.3g} to {most:.3g} over {steps} steps, not to {budget:g}; "
        "choose a total in that range"
    )


def turn_budget(step: int, *, first: int, last: int, anneal: int) -> int:
    """Rounds T_s allowed in a training step.

    The paper lowers the budget "toward the evaluation budget" and names no schedule.

    Args:
        step: counted from 1.
        first: rounds T_0 at the start.
        last: rounds T_end at the end.
        anneal: steps S of a linear way from the one to the other; 0: ``first`` throughout.
    """
    if anneal < 2:
        return first if anneal == 0 or step < 1 else last
    # T_s = max(T_end, round(T_0 - (T_0 - T_end) (s - 1) / (S - 1)))
    share = (max(step, 1) - 1) / (anneal - 1)
    return max(last, round(first - (first - last) * share))
