"""What a user should be told of a step that went wrong without ending the run."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from vocabulary import Trajectory


def troubles(
    rows: Sequence[Trajectory],
    metrics: Mapping[str, float],
    *,
    trained: Collection[str],
    frozen: Collection[str],
) -> dict[str, str]:
    """Role -> one sentence about it.

    Args:
        rows: all rows of the step.
        metrics: what the learners measured, by ``learner/ROLE/NAME``.
        trained: roles that learn.
        frozen: all others.
    """
    found = {role: f"never answers: {reason}" for role, reason in _mute(rows, frozen).items()}
    for role in trained:
        if not math.isfinite(metrics.get(f"learner/{role}/grad_norm", 0.0)):
            found[role] = "did not learn: its gradient is no finite number"
    for role, reason in _idle(rows, trained).items():
        found[role] = f"has nothing to learn from: {reason}"
    return found


def _idle(rows: Sequence[Trajectory], roles: Iterable[str]) -> dict[str, str]:
    """Those of ``roles`` without a row to learn from -> the most common reason."""
    found: dict[str, str] = {}
    for role in roles:
        own = [row for row in rows if row.role == role]
        if not any(row.trainable for row in own):
            state = _most_common(own) if own else "it was not asked"
            found[role] = "its answers are empty" if state == "ok" else state
    return found


def _mute(rows: Sequence[Trajectory], roles: Iterable[str]) -> dict[str, str]:
    """Those of ``roles`` that were asked and failed each time -> the most common reason."""
    own = {role: [row for row in rows if row.role == role] for role in roles}
    return {
        role: _most_common(some)
        for role, some in own.items()
        if some and all(row.status != "ok" for row in some)
    }


def _most_common(rows: Sequence[Trajectory]) -> str:
    return Counter(row.status for row in rows).most_common(1)[0][0]
