"""Check the contract of trajectories: they hold exactly what the policy read and sampled."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from coterie.datatypes import Trajectory
from coterie.envs.contract import why_not_paid
from coterie.extras.ops.doctor.finding import Finding, judge
from coterie.extras.ops.doctor.observe import Observed

_WAY_OUT = (
    "the environment or the policy breaks the contract of docs/architecture.md; "
    "coterie check examines the environment alone"
)


def faults(row: Trajectory, *, blind: bool) -> Iterator[str]:
    """Yield the faults of one row.

    Args:
        row: a trajectory from a rollout.
        blind: whether its policy may omit log-probabilities (NaN).
    """
    length = len(row.tokens)
    if len(row.mask) != length or len(row.logprobs) != length:
        yield "tokens, mask and logprobs differ in length"
        return
    spans = np.zeros(length, np.bool_)
    last = 0
    for start, end in row.turns:
        if not last <= start <= end <= length:
            yield "turns overlap or lie outside the row"
            return
        spans[start:end] = True
        last = end
    if not np.array_equal(spans, row.mask):
        yield "the mask is not the sampled turns"
    if len(row.finish) != len(row.turns):
        yield "turns without a finish reason"
    if row.logprobs[~row.mask].any():
        yield "a log-probability on a token that was not sampled"
    sampled = row.logprobs[row.mask]
    if not blind and not np.isfinite(sampled).all():
        yield "a log-probability that is not finite"
    if (sampled > 1e-6).any():
        yield "a log-probability above 0"
    if why_not_paid(row.agent, row.reward_terms, row.reward):
        yield "reward terms that do not sum to the reward"


def unseen(observed: Observed, role: str) -> int:
    """Number of turns whose context and tokens match no call of the policy."""
    known = {
        (request.prompt.agent, request.prompt.tokens.tobytes(), request.completion.tokens.tobytes())
        for request in observed.asked.get(role, ())
    }
    return sum(
        (row.agent, row.tokens[:start].tobytes(), row.tokens[start:end].tobytes()) not in known
        for row in observed.rows(role)
        for start, end in row.turns
    )


def check_contract(observed: Observed, role: str, *, blind: bool) -> Finding:
    """Check the rows of one role; see :func:`faults` for ``blind``."""
    rows = observed.rows(role)
    turns = sum(len(row.turns) for row in rows)
    if not turns:
        return Finding("trajectories", role, "never answered in these episodes", "not measured")
    faults_seen = Counter(fault for row in rows for fault in faults(row, blind=blind))
    if count := unseen(observed, role):
        faults_seen["a turn whose prompt is not what the policy was asked"] = count
    if count := sum(agent.rpartition("_")[0] == role for agent in observed.broken):
        faults_seen["a context that does not continue the one before"] = count
    measured = f"{len(rows)} rows, {turns} turns"
    if faults_seen:
        measured = "; ".join(f"{fault} ({count})" for fault, count in faults_seen.items())
    return judge("trajectories", role, measured, wrong=bool(faults_seen), way_out=_WAY_OUT)


def check_answers(observed: Observed, role: str) -> Finding:
    """Check that a model answered every request."""
    rows = observed.rows(role)
    failed = Counter(row.status for row in rows if row.status != "ok")
    measured = f"{len(rows) - failed.total()} of {len(rows)} rows"
    if failed:
        measured += f"; most often {failed.most_common(1)[0][0]}"
    return judge(
        "answers",
        role,
        measured,
        wrong=bool(failed),
        way_out=f"give room with --agents.{role}.context, shorten the prompts, or allow more time "
        "with --rollout.call-deadline-s",
    )
