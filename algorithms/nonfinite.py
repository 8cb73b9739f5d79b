"""A learner that cannot go on: its loss, gradient or weights are infinite or NaN."""

import math
from collections.abc import Callable, Sequence

from coterie.datatypes import Trajectory, UserError

PATIENCE = 3
"""Training steps running in which no optimizer step was finite; one or two happen, and pass."""


class NotFinite(UserError):
    """Raised where training would learn nothing more."""

    def __init__(self, why: str, row: Trajectory | None = None, advantage: float = 0.0) -> None:
        """``row`` is the cause, where a single row is, with its advantage."""
        super().__init__(why)
        self.row, self.advantage = row, advantage


def cause_of(
    rows: Sequence[Trajectory],
    advantages: Sequence[float],
    alone: Callable[[int], tuple[float, float]],
) -> NotFinite:
    """The first row whose own loss or gradient is not finite; where each alone is, the one with the
    largest gradient.

    Args:
        rows: of a step whose loss or gradient is not finite.
        advantages: theirs.
        alone: gives loss and norm of the gradient of one row, by its place.
    """
    largest, most = 0, -1.0
    for place, row in enumerate(rows):
        loss, norm = alone(place)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            why = f"the row of {row.agent} alone has a loss of {loss:g} and a gradient of {norm:g}"
            return NotFinite(why, row, advantages[place])
        if norm > most:
            largest, most = place, norm
    why = f"each of its rows is finite, with gradients of up to {most:.1e}, but their sum is not"
    return NotFinite(why, rows[largest], advantages[largest])
