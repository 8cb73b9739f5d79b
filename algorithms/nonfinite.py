"""Errors of a learner whose loss, gradient or weights are infinite or NaN."""

import math
from collections.abc import Callable, Sequence

from coterie.datatypes import Trajectory, UserError

PATIENCE = 3
"""Consecutive fully skipped training steps that end a run; one or two can happen by chance."""


class NotFinite(UserError):
    """Raised when further training would change nothing."""

    def __init__(self, why: str, row: Trajectory | None = None, advantage: float = 0.0) -> None:
        """``row``, with its advantage, is the cause; None: no single row is."""
        super().__init__(why)
        self.row, self.advantage = row, advantage


def not_finite_error(
    rows: Sequence[Trajectory],
    advantages: Sequence[float],
    loss_and_norm: Callable[[int], tuple[float, float]],
) -> NotFinite:
    """Find the first row whose loss or gradient is not finite, or else the row with the largest
    gradient; return the error to raise.

    Args:
        rows: the rows of a step whose loss or gradient is not finite.
        advantages: the advantage of each row.
        loss_and_norm: index of a row -> loss and gradient norm of that row alone.
    """
    largest, largest_norm = 0, -1.0
    for i, row in enumerate(rows):
        loss, norm = loss_and_norm(i)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            why = f"the row of {row.agent} alone has a loss of {loss:g} and a gradient of {norm:g}"
            return NotFinite(why, row, advantages[i])
        if norm > largest_norm:
            largest, largest_norm = i, norm
    why = (
        f"each of its rows is finite, with gradients of up to {largest_norm:.1e}, but their sum is "
        "not"
    )
    return NotFinite(why, rows[largest], advantages[largest])
