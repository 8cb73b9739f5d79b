"""Which replies are let in: coins, replicas and modes."""

from typing import Any

from coterie import envs
from coterie.datatypes import Problem
from coterie.envs.eapo_consultation import EapoConsultationEnv, EapoConsultationSettings
from coterie.envs.eapo_consultation.environment import coin
from coterie.rollouts import tasks_for

from .scripted import PROBLEM, RIGHT, THOUGHT, Played, calls

HALF: dict[str, Any] = {"schedule": "const", "accept_rate": 0.5}


def test_the_coin_decides_reply_by_reply() -> None:
    seen = set()
    for seed in range(12):
        played = Played([calls((1, "a"), (2, "b")), RIGHT], **HALF, seed=seed)
        verdicts = tuple(coin(seed, 0, 0, expert) <= 0.5 for expert in (1, 2))
        seen.add(verdicts)
        for entry, accepted, agent in zip(
            played.returned(1), verdicts, ("expert_0", "expert_1"), strict=True
        ):
            result = f"{agent} says 2" if accepted else ""
            assert entry["result"] == result
            assert entry.get("status") == (None if accepted else "UNAVAILABLE")
        # Rejected calls are never dispatched, and cost a round all the same.
        asked = {a for queries in played.queries for a in queries}
        assert asked == {a for a, yes in zip(("expert_0", "expert_1"), verdicts) if yes}
        assert played.info["rounds"] == 1
    assert seen == {(True, True), (True, False), (False, True), (False, False)}


def test_drawing_after_dispatch_lets_the_same_replies_in() -> None:
    turns = [calls((1, "a"), (2, "b")), RIGHT]
    for seed in range(6):
        early, late = (
            Played(turns, **HALF, draw_before_dispatch=first, seed=seed) for first in (True, False)
        )
        assert early.shown == late.shown
        assert set(late.queries[0]) == {"expert_0", "expert_1"}


def test_replicas_have_coins_of_their_own_or_share_them() -> None:
    def accepted(coin: str) -> list[int]:
        turns = [calls((1, "a")), RIGHT]
        played = [Played(turns, **HALF, coin=coin, replica=replica) for replica in range(10)]
        return [each.info["accepted"] for each in played]

    assert set(accepted("response")) == {0, 1}
    assert len(set(accepted("group"))) == 1


def test_groups_are_replicas() -> None:
    env = envs.make("eapo-consultation", settings=EapoConsultationSettings(group_size=5))
    assert env.metadata["replicas"] == 5
    assert EapoConsultationEnv.metadata.get("replicas") is None
    tasks = tasks_for([Problem("p", "1 + 1 =", "2")], seed=1, replicas=3)
    assert [task.options()["replica"] for task in tasks] == [0, 1, 2]
    assert len({task.seed for task in tasks}) == 1


def test_the_acceptance_falls_with_the_step() -> None:
    for step, rate in ((1, 1.0), (2, 0.5), (50, 0.02)):
        assert Played([RIGHT], step=step).info["acceptance"] == rate


def test_evaluation_is_alone() -> None:
    text = calls((1, "a")) + RIGHT
    played = Played([text], mode="eval", step=1)
    assert played.shown == ["Question: 7 + 8 - 3 =\nSolve:"]
    assert played.limits[0]["stop"] == []
    assert played.info["reward_terms"] == {"correct": 1.0}
    assert played.info["consults"] == 0


def test_assisted_evaluation_lets_every_reply_in() -> None:
    turns = [calls((1, "a")), f"{THOUGHT}\nAnswer: 3"]
    played = Played(turns, mode="assisted", step=10_000)
    assert played.returned(1) == [{"expert_id": 1, "result": "expert_0 says 2"}]
    assert played.rewards["policy_0"] == 0.0
    assert played.info["acceptance"] == 1.0


def test_the_workflow_asks_everybody_the_question() -> None:
    played = Played([RIGHT], mode="workflow")
    prompt = "Question: 7 + 8 - 3 =\nSolve:"
    assert played.queries == [dict.fromkeys(("expert_0", "expert_1", "expert_2"), prompt)]
    assert played.shown[0].startswith(f"{prompt}\n<agent_returns>[")
    assert played.shown[0].count("says 2") == 3
    assert played.limits[0]["stop"] == []
    assert played.info["paradigm"] == "direct"


def test_never_and_always() -> None:
    never = Played([RIGHT], consult="never")
    assert never.shown == ["Question: 7 + 8 - 3 =\nSolve:"]
    played = Played([RIGHT], consult="always", schedule="const", accept_rate=0.0)
    assert not played.queries
    assert played.shown[0].count("UNAVAILABLE") == 3


def test_shuffled_queries() -> None:
    played = Played([calls((1, PROBLEM.question)), RIGHT], queries="shuffled")
    asked = played.queries[0]["expert_0"]
    assert asked.startswith("Question: ")
    assert PROBLEM.question not in asked
    again = Played([calls((1, PROBLEM.question)), RIGHT], queries="shuffled")
    assert again.queries == played.queries
