"""Check that roles act and answer, and that their rewards differ."""

from collections import Counter

from coterie.algorithms.batching import by_agent
from coterie.datatypes import Trajectory
from coterie.extras.ops.doctor.finding import Finding, judge
from coterie.extras.ops.doctor.observe import Observed

_LOOK = "docs/models.md#the-tiny-team says what the tiny models read"


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


def check_signal(observed: Observed, role: str, key: str, *, trained: bool) -> Finding:
    """Check the rewards of a role, and in how many groups under ``key`` they differ. A role that is
    ``trained`` must act."""
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
    if trained and not differ:
        way_out = (
            "nothing is learned from equal rewards: other problems, a higher "
            f"--rollout.temperature, or another model ({_LOOK})"
        )
        return Finding("rewards", role, measured, "not measured", way_out)
    return Finding("rewards", role, measured, "ok")


def _agents(observed: Observed, role: str) -> list[Trajectory]:
    """A row of each agent, which has one status and one reward, however many rows its contexts
    made."""
    rows = observed.rows(role)
    return [rows[indices[-1]] for indices in by_agent(rows)]
