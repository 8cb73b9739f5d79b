"""What a conversation earns, and what of it is trained."""

import asyncio
from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import Sampling
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.eapo_consultation.outcome import paradigm
from coterie.rewards.grading.scorer import AnswerScorer
from coterie.rollouts import play

from .scripted import LONG, PROBLEM, RIGHT, THOUGHT, Played, calls


@pytest.mark.parametrize(
    ("rule", "answer", "reward"),
    [
        ("em_math", "2.0", 1.0),
        ("em_math", "3", 0.1),
        ("f1_literal", "2", 1.0),
        ("f1_literal", "-2", 1.0),
        ("f1_literal", "x = 2", 2 / 3),
        ("f1_literal", "3", 0.1),
        ("f1_literal", " ".join(["w"] * 39) + " 2", 2 / 41),
        ("f1_or_format", " ".join(["w"] * 39) + " 2", 0.1),
    ],
)
def test_rules(rule: str, answer: str, reward: float) -> None:
    played = Played([f"{THOUGHT}\nAnswer: {answer}"], answer_reward=rule)
    assert played.rewards["policy_0"] == pytest.approx(reward)


@pytest.mark.parametrize(("counted", "reward"), [("dispatched", 0.8), ("accepted", 0.9)])
def test_penalty(counted: str, reward: float) -> None:
    turns = [calls((1, "a"), (2, "b")), RIGHT]
    played = Played(
        turns,
        lambda agent, _: "2" if agent == "expert_0" else None,
        consult_penalty=0.1,
        penalised=counted,
    )
    assert played.rewards["policy_0"] == pytest.approx(reward)
    assert set(played.info["reward_terms"]) == {"answer", "consulting"}


def test_a_penalty_on_right_answers_only() -> None:
    ask = calls((1, "a"), (2, "b"))
    right = Played([ask, RIGHT], consult_penalty=0.1, penalty_only_if_right=True)
    assert right.rewards["policy_0"] == pytest.approx(0.8)
    wrong = Played([ask, f"{THOUGHT}\nAnswer: 3"], consult_penalty=0.1, penalty_only_if_right=True)
    assert wrong.rewards["policy_0"] == pytest.approx(0.1)


def test_consultations_that_the_policy_did_not_choose_cost_nothing() -> None:
    played = Played([RIGHT], consult="always", consult_penalty=0.1)
    assert played.info["calls"] == 3
    assert played.rewards["policy_0"] == pytest.approx(1.0)


def test_a_penalty_that_comes_later() -> None:
    turns = [calls((1, "a")), RIGHT]
    paid = {
        step: Played(turns, consult_penalty=0.1, penalty_start=4, step=step).rewards["policy_0"]
        for step in (4, 5)
    }
    assert paid == {4: 1.0, 5: pytest.approx(0.9)}


def test_the_reply_is_never_the_answer() -> None:
    played = Played([calls((1, "a")), "I give up"], lambda *_: "Answer: 2")
    assert played.info["answer_in_returns"]
    assert played.info["answer"] is None
    assert played.rewards["policy_0"] == 0.0
    assert not Played([calls((1, "a")), RIGHT], lambda *_: "Answer: 3").info["answer_in_returns"]


def test_paradigms() -> None:
    assert paradigm("7 + 8 - 3 =", []) == "self"
    assert paradigm("7 + 8 - 3 =", ["7 + 8 - 3 =", "7 + 8 - 3"]) == "direct"
    assert paradigm("7 + 8 - 3 =", ["7 + 8 - 3 =", "5 - 3 ="]) == "decomposition"


def test_only_what_the_policy_wrote_is_trained(scripted: Any) -> None:
    """Calls are learned; prompts and returns are not."""
    codec = BytesCodec()
    turns = iter([calls((1, "7 + 8 =")), RIGHT])
    env: Any = envs.make("eapo-consultation", settings=LONG, scorer=AnswerScorer())
    policies = {
        "policy": scripted(codec, lambda prompt: next(turns)),
        "expert": scripted(codec, lambda prompt: "Answer: 15"),
    }
    episode = asyncio.run(
        play(env, policies, seed=3, options={"problem": PROBLEM}, sampling=Sampling(400))
    )
    row = next(row for row in episode.trajectories if row.role == "policy")
    masked = codec.decode(row.tokens[row.mask])
    assert masked == calls((1, "7 + 8 =")) + RIGHT
    outside = codec.decode(row.tokens[~row.mask])
    assert outside == (
        "Question: 7 + 8 - 3 =\nExperts: 1 to 3\nSolve:"
        '\n<agent_returns>[{"expert_id": 1, "result": "Answer: 15"}]</agent_returns>\n'
    )
    assert [row.groups["problem+role"] for row in episode.trajectories] == ["q/policy", "q/expert"]
    expert = next(row for row in episode.trajectories if row.role == "expert")
    assert expert.loss_weight == 0.0
