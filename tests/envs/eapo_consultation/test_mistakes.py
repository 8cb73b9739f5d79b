"""What policies, experts and users get wrong."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from coterie import envs
from coterie.envs.eapo_consultation import EapoConsultationEnv
from coterie.rewards.grading.scorer import AnswerScorer

from .scripted import LONG, PROBLEM, RIGHT, THOUGHT, Played, calls


def test_a_policy_that_fails() -> None:
    env = EapoConsultationEnv(LONG, scorer=AnswerScorer())
    env.reset(seed=0, options={"problem": PROBLEM})
    _, rewards, _, truncated, infos = env.step({})
    assert rewards["policy_0"] == 0.0
    assert truncated["policy_0"]
    assert infos["policy_0"]["failed"]


def test_an_expert_that_fails_or_says_nothing_is_unavailable() -> None:
    turns = [calls((1, "a"), (2, "b"), (3, "c")), RIGHT]
    said = {"expert_0": None, "expert_1": "", "expert_2": "<think> never closed"}
    played = Played(turns, lambda agent, query: said[agent])
    assert [entry["status"] for entry in played.returned(1)] == ["UNAVAILABLE"] * 3
    assert played.info["unavailable"] == 3
    assert played.info["rejected"] == played.info["accepted"] == 0


def test_a_malformed_call_costs_a_round() -> None:
    bad = f"{THOUGHT}<agent_calls>[oops]</agent_calls>"
    played = Played([bad, calls((1, "a")), calls((1, "b")), RIGHT], budget=2)  # fmt: skip
    assert played.returned(1) == [{"result": "the call is not JSON", "status": "ERROR"}]
    assert played.returned(2) == [{"expert_id": 1, "result": "expert_0 says 2"}]
    assert played.returned(3)[0]["status"] == "BUDGET_EXHAUSTED"
    # Nothing stops at a call from here on.
    assert [limits["stop"] for limits in played.limits] == [["</agent_calls>"]] * 3 + [[]]
    assert [limits.get("continues", False) for limits in played.limits] == [True] * 3 + [False]
    assert (played.info["rounds"], played.info["errors"], played.info["exhausted"]) == (2, 1, True)
    assert not played.info["formatted"]
    assert played.rewards["policy_0"] == 1.0


def test_nobody_calls_inside_a_thought_for_ever() -> None:
    inside = "<think><agent_calls></agent_calls>"
    env = EapoConsultationEnv(LONG, scorer=AnswerScorer())
    _, infos = env.reset(seed=0, options={"problem": PROBLEM})
    for _ in range(20):
        if env.agents:
            infos = env.step({"policy_0": inside})[-1]
    assert not env.agents
    assert infos["policy_0"]["ignored_calls"] == 8


HOSTILE = [
    "<agent_calls>" * 20_000,
    "</agent_calls>" * 20_000,
    "<think></think>" * 20_000 + "<agent_calls>[</agent_calls>",
    "<agent_calls>" + "[" * 60_000 + "</agent_calls>",
    '<agent_calls>[{"expert_id": 1, "input_parameters": {"query": "'
    + "\\" * 60_000
    + "</agent_calls>",
    "<agent_calls>[{}]</agent_calls>",
    '<agent_calls>{"expert_id": 1, "input_parameters": {"query": "\\ud800"}}</agent_calls>',
    "Answer:" * 50_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_policies_and_experts(text: str) -> None:
    settings = dataclasses.replace(LONG, max_new_tokens=1 << 22)
    env: Any = envs.make("eapo-consultation", settings=settings, scorer=AnswerScorer())
    observations, _ = env.reset(seed=1, options={"problem": PROBLEM})
    ids = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.int64)
    for _ in range(40):
        if env.agents:
            asked = [agent for agent in env.agents if observations[agent]["active"]]
            observations, *_ = env.step(dict.fromkeys(asked, ids))
    assert not env.agents


def test_what_a_policy_that_fails_leaves_is_graded_in_the_batch_too() -> None:
    env = EapoConsultationEnv(LONG, scorer=AnswerScorer())
    env.reset(seed=0, options={"problem": PROBLEM, "step": 1})
    env.step({"policy_0": calls((1, "7 + 8 ="))})
    env.step({"expert_0": "Answer: 2"})
    # It ends the conversation by its silence, and what experts returned is looked at.
    assert env.score_requests({}).checks == (("Answer: 2", PROBLEM),)
