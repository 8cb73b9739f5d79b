"""What a role is paid, whether it differs, and whether it is asked at all."""

from typing import Any

import numpy as np

from coterie.datatypes import Episode, Trajectory
from coterie.extras.ops.doctor.observe import Observed
from coterie.extras.ops.doctor.signal import check_signal, check_spaces, check_variety


def row(agent: str, reward: float, problem: str, replica: int, prompt: int = 0) -> Trajectory:
    return Trajectory(
        agent=agent,
        role=agent.rpartition("_")[0],
        tokens=np.array([prompt, 7], np.int64),
        mask=np.array([False, True]),
        logprobs=np.zeros(2, np.float32),
        reward=reward,
        reward_terms={"game": reward},
        groups={"problem+role": problem},
        member=f"{problem}/{replica}/{agent}",
        turns=((1, 2),),
    )


def observed(*rows: Trajectory, **more: Any) -> Observed:
    episodes = [
        Episode(trajectory.groups["problem+role"], 0, 1, "train", [trajectory], {})
        for trajectory in rows
    ]
    return Observed(episodes, {}, [], **more)


def test_what_is_paid_and_where_it_differs() -> None:
    # Group p: 1 and 0; group q: 0 and 0. Two rows of one member are one agent.
    rows = [row("me_0", 1.0, "p", 0), row("me_0", 1.0, "p", 0), row("me_0", 0.0, "p", 1)]
    rows += [row("me_0", 0.0, "q", 0), row("me_0", 0.0, "q", 1)]
    (finding,) = check_signal(observed(*rows), "me", "problem+role", trained=True)
    assert finding.measured == "mean 0.250; 1 of 2 groups have a signal"
    assert finding.verdict == "ok"


def test_equal_rewards_teach_nothing() -> None:
    rows = [row("me_0", 0.0, "p", 0), row("me_0", 0.0, "p", 1)]
    (finding,) = check_signal(observed(*rows), "me", "problem+role", trained=True)
    assert (finding.verdict, "--rollout.temperature" in finding.way_out) == ("not measured", True)
    (finding,) = check_signal(observed(*rows), "me", "problem+role", trained=False)
    assert finding.verdict == "ok"


def test_a_role_that_is_never_asked() -> None:
    episodes = observed(row("me_0", 0.0, "p", 0))
    (finding,) = check_signal(episodes, "you", "problem+role", trained=True)
    assert (finding.check, finding.verdict) == ("asked", "wrong")
    assert "a yield is missing" in finding.way_out
    (finding,) = check_signal(episodes, "you", "problem+role", trained=False)
    assert finding.verdict == "not measured"


def test_games_that_are_all_the_same() -> None:
    alike = observed(row("me_0", 0.0, "p", 0), row("me_0", 0.0, "q", 0))
    assert check_variety(alike).verdict == "not measured"
    assert "every game is the same" in check_variety(alike).measured
    other = observed(row("me_0", 0.0, "p", 0), row("me_0", 0.0, "q", 0, prompt=3))
    assert check_variety(other).measured == "2 problems begin with 2 different prompts"
    assert check_variety(other).verdict == "ok"


def test_observations_outside_their_space() -> None:
    assert check_spaces(observed(outside="me_0 observes 3")).verdict == "wrong"
    assert check_spaces(observed()).verdict == "ok"
