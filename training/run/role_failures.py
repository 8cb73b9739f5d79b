"""Failures of a role in a step: no answers, nothing to learn from, a gradient that is not finite.

``symptoms.py`` reads the answers.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from coterie.algorithms.batching import by_agent
from coterie.algorithms.nonfinite import PATIENCE, NotFinite
from coterie.datatypes import Trajectory, UserError
from coterie.training.run.directory import RunDirectory
from coterie.training.run.episode_records import row_record

NOT_FINITE = "not-finite.jsonl"


def role_failures(
    rows: Sequence[Trajectory],
    metrics: Mapping[str, float],
    *,
    trained: Collection[str],
    frozen: Mapping[str, str],
) -> dict[str, str]:
    """Role -> a sentence on what keeps it from answering or learning.

    Args:
        rows: all rows of the step.
        metrics: of the learners, by ``learner/ROLE/NAME``.
        trained: roles that learn.
        frozen: all other roles, with what their servers said when they failed.
    """
    failing = _only_failures(rows, frozen)
    sentences = {role: f"never answers: {reason}" for role, reason in failing.items()}
    for role in failing:
        if frozen[role]:
            sentences[role] += f" (its server said {frozen[role]})"
    for role in trained:
        if not math.isfinite(metrics.get(f"learner/{role}/grad_norm", 0.0)):
            sentences[role] = "did not learn: its gradient is not finite"
    for role, reason in _untrainable(rows, trained).items():
        sentences[role] = f"has nothing to learn from: {reason}"
    return sentences


def why_no_signal(rows: Sequence[Trajectory], roles: Iterable[str]) -> dict[str, str]:
    """Role -> a sentence on its answers, for roles whose groups never had different rewards.

    Args:
        rows: all rows of a step.
        roles: those whose groups had equal rewards since the run began.
    """
    sentences: dict[str, str] = {}
    for role in roles:
        answered = [row for row in rows if row.role == role and row.mask.any() and row.texts]
        if answered:
            # Pieces of environment and agent alternate; the agent's answer comes last. All rows of
            # an agent have the texts of all its contexts.
            answer = _most_common([row.texts[-1] for row in _first_rows(answered)])
            sentences[role] = (
                "has learned nothing so far: no group had different rewards; its most frequent "
                f"answer ends in {answer[-60:]!r}. Can it read the prompts? "
                "docs/models.md#the-tiny-team says what the tiny models read"
            )
    return sentences


def not_finite(run: RunDirectory, role: str, step: int, error: NotFinite) -> UserError:
    """The error that ends a run in which a role cannot learn; stores the row that caused it, if one
    did, in ``not-finite.jsonl``."""
    way_out = f"start a new run with a lower --agents.{role}.learner.lr"
    if error.row is None:
        return UserError(f"{role} cannot learn in step {step}: {error}; {way_out}")
    record = row_record(error.row, error.advantage)
    run.append(NOT_FINITE, [{"step": step, "role": role, "why": str(error), "row": record}])
    return UserError(
        f"{role} has learned nothing in {PATIENCE} consecutive steps, the last one step {step}: "
        f"{error}; that row is in {run.path / NOT_FINITE}; fix its cause, or {way_out}"
    )


def _untrainable(rows: Sequence[Trajectory], roles: Iterable[str]) -> dict[str, str]:
    """Role without a row to learn from -> the most common reason."""
    reasons: dict[str, str] = {}
    for role in roles:
        of_role = [row for row in rows if row.role == role]
        if not any(row.trainable for row in of_role):
            status = _most_common_status(of_role) if of_role else "it was not asked"
            reasons[role] = "its answers are empty" if status == "ok" else status
    return reasons


def _only_failures(rows: Sequence[Trajectory], roles: Iterable[str]) -> dict[str, str]:
    """Role whose answers all failed -> the most common reason."""
    by_role = {role: [row for row in rows if row.role == role] for role in roles}
    return {
        role: _most_common_status(answers)
        for role, answers in by_role.items()
        if answers and all(row.status != "ok" for row in answers)
    }


def _most_common_status(rows: Sequence[Trajectory]) -> str:
    return _most_common([row.status for row in _first_rows(rows)])


def _first_rows(rows: Sequence[Trajectory]) -> list[Trajectory]:
    """One row of each agent: it counts once, however many rows its contexts made."""
    return [rows[indices[0]] for indices in by_agent(rows)]


def _most_common(values: Sequence[str]) -> str:
    return Counter(values).most_common(1)[0][0]
