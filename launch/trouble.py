"""What a user should be told of a step that went wrong, whether or not it ends the run."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from algorithms.nonfinite import PATIENCE, NotFinite
from launch.records import row_record
from launch.rundir import RunDirectory
from vocabulary import Trajectory, UserError

NOT_FINITE = "not-finite.jsonl"


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


def not_finite(run: RunDirectory, role: str, step: int, found: NotFinite) -> UserError:
    """What ends a run in which a role cannot learn; the row that it comes from, if it comes from
    one, is stored."""
    way_out = "begin anew with a lower --learner.lr"
    if found.row is None:
        return UserError(f"{role} cannot learn in step {step}: {found}; {way_out}")
    record = row_record(found.row, found.advantage)
    run.append(NOT_FINITE, [{"step": step, "role": role, "why": str(found), "row": record}])
    return UserError(
        f"{role} has learned nothing in {PATIENCE} steps running, the last one step {step}: "
        f"{found}; that row is in {run.path / NOT_FINITE}; mend what makes such rows, or {way_out}"
    )


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
