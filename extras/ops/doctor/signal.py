"""Check for a learning signal: whether roles act, and whether rewards and episodes differ."""

from coterie.datatypes import Trajectory
from coterie.extras.ops.doctor.finding import Finding, judge
from coterie.extras.ops.doctor.observe import Observed

_LOOK = "docs/models.md#the-tiny-team says what the tiny models read"


def check_signal(observed: Observed, role: str, key: str, *, trained: bool) -> list[Finding]:
    """Check the rewards of a role, and in how many groups they differ.

    Args:
        observed: episodes of several problems, with several replicas of each.
        role: the role.
        key: the grouping whose groups are compared.
        trained: whether the role learns; it is then an error if it never acts.
    """
    agents = {(row.member, row.agent): row for row in observed.rows(role)}
    if not agents:
        return [
            Finding(
                "asked",
                role,
                f"never, in {len(observed.episodes)} episodes",
                "wrong" if trained else "not measured",
                "a yield is missing in the environment, or no episode gets that far: train "
                "another role first with --train-role",
            )
        ]
    groups: dict[str, set[float]] = {}
    for row in agents.values():
        groups.setdefault(row.groups.get(key, ""), set()).add(round(row.reward, 9))
    differ = sum(len(paid) > 1 for paid in groups.values())
    mean = sum(row.reward for row in agents.values()) / len(agents)
    measured = f"mean {mean:.3f}; {differ} of {len(groups)} groups have a signal"
    if trained and not differ:
        way_out = (
            "nothing is learned from equal rewards: other problems, a higher "
            f"--rollout.temperature, or another model ({_LOOK})"
        )
        return [Finding("rewards", role, measured, "not measured", way_out)]
    return [Finding("rewards", role, measured, "ok")]


def check_variety(observed: Observed) -> Finding:
    """Check that episodes of different problems have different first prompts."""
    first = {
        (episode.problem_id, _prompt(episode.trajectories[0]))
        for episode in observed.episodes
        if episode.trajectories
    }
    problems, prompts = (len({prompted[part] for prompted in first}) for part in (0, 1))
    measured = f"{problems} problems begin with {prompts} different prompts"
    if problems > 1 and prompts == 1:
        return Finding(
            "variety",
            "all",
            f"{measured}: every game is the same",
            "not measured",
            "meant in a board game, where groups differ by sampling alone; anywhere else, reset() "
            "ignores its problem and its seed",
        )
    return Finding("variety", "all", measured, "ok")


def check_spaces(observed: Observed) -> Finding:
    """Check that the observations of a third-party environment lie in its declared spaces."""
    return judge(
        "observation spaces",
        "all",
        observed.outside or "hold what was observed",
        wrong=bool(observed.outside),
        way_out="fix the space or the observation; coterie check examines the environment alone",
    )


def _prompt(row: Trajectory) -> bytes:
    end = row.turns[0][0] if row.turns else len(row.tokens)
    return row.tokens[:end].tobytes()
