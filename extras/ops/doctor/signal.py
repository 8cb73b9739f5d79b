"""Check that roles act and answer, and that they have something to learn from."""

from collections import Counter
from collections.abc import Sequence

from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.batching import by_agent
from coterie.datatypes import Reading, Trajectory
from coterie.extras.ops.doctor.finding import Finding, judge
from coterie.extras.ops.doctor.observe import Observed
from coterie.training.run.symptoms import TEACHERS

_LOOK = "docs/models.md#the-tiny-team says what the tiny models read"
_NONE = Distillation()


def check_answers(observed: Observed, role: str, *, served: bool) -> Finding:
    """Check that a role answered every request. A server or a pool plays it if ``served``."""
    agents = _agents(observed, role)
    failed = Counter(row.status for row in agents if row.status != "ok")
    measured = f"{len(agents) - failed.total()} of {len(agents)} agents"
    if failed:
        measured += f"; most often {failed.most_common(1)[0][0]}"
    way_out = (
        f"give room with --agents.{role}.context, shorten the prompts, or allow more time "
        "with --rollout.call-deadline-s"
    )
    if served:
        way_out = "docs/experts.md lists the kinds of failure; a run counts them and goes on"
    return judge("answers", role, measured, wrong=bool(failed), way_out=way_out)


def check_signal(
    observed: Observed, role: str, key: str, *, trained: bool, distillation: Distillation = _NONE
) -> Finding:
    """Check the rewards of a role, and in how many groups under ``key`` they differ. A role that is
    ``trained`` must act, and learn from rewards or by ``distillation``."""
    agents = _agents(observed, role)
    if not agents:
        return Finding(
            "asked",
            role,
            f"never, in {len(observed.episodes)} episodes",
            "wrong" if trained else "not measured",
            "a yield is missing in the environment, or no episode gets that far: train "
            "another role first with --train-role",
        )
    groups: dict[str, set[float]] = {}
    for row in agents:
        groups.setdefault(row.groups.get(key, ""), set()).add(round(row.reward, 9))
    differ = sum(len(rewards) > 1 for rewards in groups.values())
    mean = sum(row.reward for row in agents) / len(agents)
    measured = f"mean {mean:.3f}; {differ} of {len(groups)} groups have a signal"
    # A teacher has a finding of its own.
    again = sum(row.reread_after is not None for row in observed.rows(role))
    if trained and distillation.from_itself:
        measured += f"; {again} rows are read again"
    reads = distillation.teaches or (distillation.from_itself and again)
    if trained and not reads and not (differ and distillation.rewards):
        way_out = (
            "nothing is learned from equal rewards: other problems, a higher "
            f"--rollout.temperature, or another model ({_LOOK})"
        )
        return Finding("rewards", role, measured, "not measured", way_out)
    return Finding("rewards", role, measured, "ok")


def check_teacher(role: str, readings: Sequence[Reading | None]) -> Finding:
    """Check that a teacher can read the rows of ``role``; None stands for one that it cannot
    read."""
    if not readings:
        return Finding("teacher", role, "no rows to read", "not measured")
    unread = sum(reading is None for reading in readings)
    measured = f"reads {len(readings) - unread} of {len(readings)} rows"
    if not unread:
        return Finding("teacher", role, measured, "ok")
    way_out = (
        "most others are too long for it, so nothing of it is learned there: lower "
        f"--agents.{role}.context, or take another teacher ({TEACHERS})"
    )
    return Finding(
        "teacher", role, measured, "wrong" if unread == len(readings) else "differs", way_out
    )


def _agents(observed: Observed, role: str) -> list[Trajectory]:
    """A row of each agent, which has one status and one reward, however many rows its contexts
    made."""
    rows = observed.rows(role)
    return [rows[indices[-1]] for indices in by_agent(rows)]
