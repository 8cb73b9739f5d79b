"""What a role is paid, whether it differs, and whether it is asked at all."""

import dataclasses

import numpy as np

from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import Episode, Reading, Trajectory
from coterie.extras.ops.doctor.observe import Observed
from coterie.extras.ops.doctor.signal import check_answers, check_signal, check_teacher


def row(agent: str, reward: float, problem: str, replica: int) -> Trajectory:
    return Trajectory(
        agent=agent,
        role=agent.rpartition("_")[0],
        tokens=np.array([0, 7], np.int64),
        mask=np.array([False, True]),
        logprobs=np.zeros(2, np.float32),
        reward=reward,
        reward_terms={"game": reward},
        groups={"problem+role": problem},
        member=f"{problem}/{replica}/{agent}",
        turns=((1, 2),),
    )


def observed(*rows: Trajectory) -> Observed:
    episodes = [
        Episode(trajectory.groups["problem+role"], 0, 1, "train", [trajectory], {})
        for trajectory in rows
    ]
    return Observed(episodes, {})


def test_what_is_paid_and_where_it_differs() -> None:
    # Group p: 1 and 0; group q: 0 and 0. Two rows of one member are one agent.
    rows = [row("me_0", 1.0, "p", 0), row("me_0", 1.0, "p", 0), row("me_0", 0.0, "p", 1)]
    rows += [row("me_0", 0.0, "q", 0), row("me_0", 0.0, "q", 1)]
    finding = check_signal(observed(*rows), "me", "problem+role", trained=True)
    assert finding.measured == "mean 0.250; 1 of 2 groups have a signal"
    assert finding.verdict == "ok"


def test_equal_rewards_teach_nothing() -> None:
    rows = [row("me_0", 0.0, "p", 0), row("me_0", 0.0, "p", 1)]
    finding = check_signal(observed(*rows), "me", "problem+role", trained=True)
    assert (finding.verdict, "--rollout.temperature" in finding.way_out) == ("not measured", True)
    finding = check_signal(observed(*rows), "me", "problem+role", trained=False)
    assert finding.verdict == "ok"


def test_a_teacher_teaches_where_rewards_are_equal() -> None:
    rows = [row("me_0", 0.0, "p", 0), row("me_0", 0.0, "p", 1)]
    taught = Distillation(beta=1.0, teacher="another")
    told = {"trained": True, "distillation": taught}
    finding = check_signal(observed(*rows), "me", "problem+role", **told)
    assert (finding.verdict, finding.way_out) == ("ok", "")
    assert finding.measured == "mean 0.000; 0 of 1 groups have a signal"


def test_own_weights_teach_where_a_row_is_read_again() -> None:
    rows = [row("me_0", 0.0, "p", 0), row("me_0", 1.0, "p", 1)]
    alone = Distillation(beta=1.0, rewards=False)
    finding = check_signal(observed(*rows), "me", "problem+role", trained=True, distillation=alone)
    assert finding.verdict == "not measured"
    assert finding.measured.endswith("1 of 1 groups have a signal; 0 rows are read again")
    rows[0] = dataclasses.replace(rows[0], reread_after=np.array([3]))
    finding = check_signal(observed(*rows), "me", "problem+role", trained=True, distillation=alone)
    assert finding.verdict == "ok"
    assert finding.measured.endswith("1 rows are read again")


def test_what_a_teacher_can_read() -> None:
    reading = Reading(np.zeros(1, np.float32))
    found = [check_teacher("me", rows) for rows in ([reading] * 2, [reading, None], [None], [])]
    assert [(finding.measured, finding.verdict) for finding in found] == [
        ("reads 2 of 2 rows", "ok"),
        ("reads 1 of 2 rows", "differs"),
        ("reads 0 of 1 rows", "wrong"),
        ("no rows to read", "not measured"),
    ]
    assert "--agents.me.context" in found[1].way_out


def test_a_role_that_is_never_asked() -> None:
    episodes = observed(row("me_0", 0.0, "p", 0))
    finding = check_signal(episodes, "you", "problem+role", trained=True)
    assert (finding.check, finding.verdict) == ("asked", "wrong")
    assert "a yield is missing" in finding.way_out
    finding = check_signal(episodes, "you", "problem+role", trained=False)
    assert finding.verdict == "not measured"


def test_who_did_not_answer_is_told_what_helps() -> None:
    rows = [row("me_0", 0.0, "p", 0), row("me_0", 0.0, "q", 0)]
    assert check_answers(observed(*rows), "me", served=False).verdict == "ok"
    rows[0] = dataclasses.replace(rows[0], status="failed: deadline")
    for served, way_out in ((False, "--agents.me.context"), (True, "docs/experts.md")):
        finding = check_answers(observed(*rows), "me", served=served)
        assert finding.verdict == "wrong"
        assert finding.measured == "1 of 2 agents; most often failed: deadline"
        assert way_out in finding.way_out


def test_an_agent_that_failed_in_three_contexts_failed_once() -> None:
    long = dataclasses.replace(row("me_0", 0.0, "p", 0), status="failed: deadline")
    short = [
        dataclasses.replace(row("me_0", 0.0, "q", replica), status="failed: too long")
        for replica in range(2)
    ]
    finding = check_answers(
        observed(long, long, long, *short, row("me_0", 1.0, "r", 0)), "me", served=False
    )
    assert finding.measured == "1 of 4 agents; most often failed: too long"
