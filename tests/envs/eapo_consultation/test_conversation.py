"""Entries, rounds and budgets of scripted conversations, worked out by hand."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from coterie import envs
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.eapo_consultation.messages import as_result
from coterie.envs.eapo_consultation.panel import training_prompt
from coterie.envs.prompts import lone_prompt
from coterie.rewards.grading.scorer import AnswerScorer

from .scripted import LONG, PROBLEM, RIGHT, Played, calls


def test_self_reliance() -> None:
    played = Played([RIGHT])
    assert played.shown == ["Question: 7 + 8 - 3 =\nExperts: 1 to 3\nSolve:"]
    assert played.limits[0]["stop"] == ["</agent_calls>"]
    assert played.rewards == {"policy_0": 1.0, "expert_0": 0, "expert_1": 0, "expert_2": 0}
    assert played.info["paradigm"] == "self"
    assert played.info["formatted"]
    assert not played.info["consulted"]
    assert played.terminated["policy_0"]
    assert not played.truncated["policy_0"]


def test_two_experts_at_once_each_see_their_query_only() -> None:
    turns = [calls((3, "7 + 8 ="), (1, "$\\tau$?")), RIGHT]
    played = Played(turns, step=1)
    assert played.queries == [
        {
            "expert_2": "Question: 7 + 8 =\nSolve:",
            "expert_0": "Question: $\\tau$?\nSolve:",
        }
    ]
    assert played.limits[1]["piece"] == "continuation"
    assert played.returned(1) == [
        {"expert_id": 3, "result": "expert_2 says 2"},
        {"expert_id": 1, "result": "expert_0 says 2"},
    ]
    counted = ("consults", "calls", "accepted", "rejected", "unavailable", "rounds", "errors")
    assert [played.info[name] for name in counted] == [1, 2, 2, 0, 0, 1, 0]
    assert played.info["paradigm"] == "decomposition"
    assert played.info["formatted"]
    assert played.rewards["policy_0"] == 1.0
    assert played.infos["expert_2"]["asked"] == played.infos["expert_2"]["replied"] == 1
    assert played.infos["expert_1"]["asked"] == 0
    assert played.infos["expert_0"]["loss_weight"] == 0.0


def test_a_second_round_begins_afresh_for_the_expert() -> None:
    env: Any = envs.make("eapo-consultation", settings=LONG, scorer=AnswerScorer())
    observations, infos = env.reset(seed=0, options={"problem": PROBLEM})
    seen = []
    for text in (calls((1, "one")), "uno", calls((1, "two")), "due", RIGHT):
        agent = next(a for a in env.agents if observations[a]["active"])
        if agent == "expert_0":
            seen.append(bytes(observations[agent]["tokens"].tolist()).decode())
            assert infos[agent]["text"] == seen[-1]
            assert infos[agent]["fresh"]
        observations, _, _, _, infos = env.step({agent: np.frombuffer(text.encode(), np.uint8)})
    assert seen == ["Question: one\nSolve:", "Question: two\nSolve:"]
    assert infos["expert_0"]["texts"] == [seen[0], "uno", seen[1], "due"]


def test_a_budget_of_calls() -> None:
    # Two of three, two more where one is left, that one, and one too many.
    two = calls((1, "c"), (2, "d"))
    turns = [calls((1, "a"), (2, "b")), two, calls((3, "e")), calls((1, "f")), RIGHT]
    played = Played(turns, budget=3, budget_unit="calls")
    refusal = {"result": "2 are asked and 1 can still be asked", "status": "ERROR"}
    assert played.returned(2) == [refusal]
    assert played.returned(3) == [{"expert_id": 3, "result": "expert_2 says 2"}]
    assert played.returned(4)[0]["status"] == "BUDGET_EXHAUSTED"
    assert len(played.queries) == 2
    assert (played.info["calls"], played.info["rounds"], played.info["errors"]) == (3, 3, 1)
    # A call that comes when nothing is left was well-formed.
    assert played.info["formatted"]


def test_asking_for_too_many_again_and_again_ends() -> None:
    three = calls((1, "a"), (2, "b"), (3, "c"))
    played = Played([three, three, three, RIGHT], budget=2, budget_unit="calls")
    assert [played.returned(n)[0]["status"] for n in (1, 2, 3)] == [
        "ERROR",
        "ERROR",
        "BUDGET_EXHAUSTED",
    ]
    assert not played.queries


def test_an_annealed_turn_budget() -> None:
    turns = [calls((1, "a")), RIGHT]
    assert Played(turns, budget=2, anneal_steps=3, step=2).info["rounds"] == 1
    none_left = Played(turns, budget=2, anneal_steps=3, step=3)
    assert none_left.info["rounds"] == 0
    assert none_left.returned(1)[0]["status"] == "BUDGET_EXHAUSTED"
    # Evaluation with experts knows no annealing.
    assert Played(turns, budget=2, anneal_steps=3, step=3, mode="assisted").queries


def test_one_expert_after_another() -> None:
    turns = [calls((1, "a"), (2, "b")), calls((2, "b")), RIGHT]
    played = Played(turns, at_once=1)
    assert played.returned(1) == [{"result": "at most 1 can be asked at once", "status": "ERROR"}]
    assert played.returned(2) == [{"expert_id": 2, "result": "expert_1 says 2"}]
    assert (played.info["rounds"], played.info["errors"]) == (2, 1)
    # More at once than there are experts is all of them.
    assert dataclasses.replace(LONG, at_once=9).parallel == 3


def test_calls_inside_thoughts_are_text() -> None:
    inside = '<think> <agent_calls>[{"expert_id": 1}]</agent_calls>'
    played = Played([inside, " so </think>\nAnswer: 2"])
    assert played.shown[1] == ""
    assert not played.queries
    assert played.info["ignored_calls"] == 1
    assert played.info["formatted"]
    assert played.rewards["policy_0"] == 1.0


def test_a_thought_that_the_template_opened() -> None:
    """Its mark begins the text that the environment gets."""
    played = Played([calls((1, "a")).replace("<think>", "<think>\n"), RIGHT])
    assert played.info["consults"] == 1
    assert played.info["formatted"]
    unclosed = Played([calls((1, "a")).replace("</think>", ""), "Answer: 2"])
    assert unclosed.info["ignored_calls"] == 1
    assert unclosed.rewards["policy_0"] == 0.0


def test_the_token_limit_ends_the_conversation() -> None:
    call = calls((1, "a"))
    # The call itself spends everything: it is not dispatched.
    played = Played([call], max_new_tokens=len(call))
    assert not played.queries
    assert played.truncated["policy_0"]
    # Experts' replies do not count.
    played = Played([call, RIGHT], max_new_tokens=len(call) + 30)
    assert played.limits[1]["max_new_tokens"] == 30
    assert played.info["response_tokens"] == len(call) + len(RIGHT)
    assert played.info["expert_tokens"] == len("expert_0 says 2")


LONG_REPLY = f"<think>{('so ' * 50).strip()}</think>\nAnswer: {'2' * 50}"


@pytest.mark.parametrize(
    ("text", "limit", "thinking", "kept"),
    [
        ("<think> long </think> short ", 100, 0, "short"),
        ("unopened </think> short", 3, 0, "sho"),
        ("<think> long </think>", 100, 0, ""),
        ("before <think> open", 100, 0, "before"),
        ("<think> one two</think> x", 100, 3, "<think>two</think>\nx"),
        # The reply itself comes first: thinking has what it leaves of the limit, tags included.
        ("<think> one two</think> x", 19, 9, "<think>wo</think>\nx"),
        ("<think> one two</think> x", 17, 9, "x"),
        ("<think>t</think> 12345", 4, 9, "1234"),
        # Without a limit it is kept whole, with all of its thinking.
        (LONG_REPLY, None, 0, LONG_REPLY),
        ("short", None, 0, "short"),
        ("<think> never closed", None, 0, ""),
    ],
)
def test_what_is_kept_of_a_reply(text: str, limit: int | None, thinking: int, kept: str) -> None:
    assert as_result(text, BytesCodec(), limit=limit, thinking_tokens=thinking) == kept


def test_the_offline_workflow_reads_whole_replies() -> None:
    reply = "<think> 7 + 8 is 15, less 3 </think> Answer: 12"

    def shown(mode: str) -> str:
        return Played([RIGHT], lambda *_: reply, reply_tokens=5, mode=mode).shown[0]

    # EAPO, arXiv:2509.23730, appendices C and E: the replies to the question stand after it.
    assert shown("workflow").count("Answer: 12") == 3
    assert shown("workflow").count("less 3") == 3
    trained = Played([RIGHT], lambda *_: reply, reply_tokens=5, consult="always")
    assert "Answer: 12" not in trained.shown[0]
    assert "Answ" in trained.shown[0]


# EAPO, arXiv:2509.23730, appendix G, written down here a second time.
PAPER = """
You are a helpful assistant that can solve a given question step by step. To do so, you can consult
with a panel of three experts. Each question you can ask experts 10 times totally. You can ask one
or more experts for their opinion. You can ask them the same question or different questions
simultaneously. The experts will provide their answers, which you can use to form your final
response. The agent call query and results are enclosed within <agent_calls> </agent_calls> and
<agent_returns> </agent_returns> tags respectively. Agent calls query should be formatted as a list
of dictionaries. For each agent call (an item in the list), you need to provide these keys: (1)
expert_id (int): Required. The ID of the expert you want to consult. Can be 1, 2, or 3. (2)
input_parameters (dict): Required. All input parameters for the expert, in dictionary format. Here
are the experts you can use: Description: This is a panel of three auxiliary intelligent agents (ID
1, 2, 3) that you can consult when you are unsure about the answer to a question. The agents
responses may not always be correct, but they can offer you alternative perspectives to help you
think further. Parameters: (1) query (str): Required. The query string describing the question you
want to ask or discuss. (2) The answer from the agent, including thinking process. The reasoning
process is wrapped by <think></think>. The final answer begins with "Answer: ". For example: User:
What is the capital city of NomanLand and what is its main export? Assistant: <think> This question
has two parts. I will ask two different experts to answer each part. I'll ask expert 1 about the
capital and expert 2 about the main export. </think> <agent_calls> [{"expert_id": 1,
"input_parameters": {"query": "capital city of NomanLand"}}, {"expert_id": 2, "input_parameters":
{"query": "main export of NomanLand"}}] </agent_calls> <agent_returns> [{"expert_id": 1, "result":
"The capital city of NomanLand is NomanCity."}, {"expert_id": 2, "result": "The main export of
NomanLand is widgets."}] </agent_returns> <think> I see. Expert 1 says the capital is NomanCity, and
Expert 2 says the main export is widgets. </think> Answer: The capital of NomanLand is NomanCity and
its main export is widgets."""


def test_the_panel_is_explained_in_the_papers_words() -> None:
    text = training_prompt("What is {x}?", "panel", experts=3, at_once=3, budget=10)
    assert text.split() == [*PAPER.split(), "What", "is", "{x}?"]
    assert text.endswith("\n\nWhat is {x}?")
    assert lone_prompt("x", "panel") == (
        "You are a helpful assistant. You must give the final answer in the last line, in the "
        'format of "Answer: xxx", xxx represents the final answer.\n\nx'
    )


@pytest.mark.parametrize(
    ("experts", "at_once", "facts"),
    [
        (1, 1, ("a panel of one expert.", "agent (ID 1)", "Can be 1.", "one expert at a time")),
        (2, 2, ("a panel of two experts.", "agents (ID 1, 2)", "Can be 1 or 2.", "simultaneously")),
        (3, 2, ("one or more experts, at most two at once, for their", "Can be 1, 2, or 3.")),
        (12, 12, ("a panel of 12 experts.", "9, 10, 11, or 12.")),
    ],
)
def test_other_panels_are_explained_as_they_are(
    experts: int, at_once: int, facts: tuple[str, ...]
) -> None:
    text = training_prompt("x", "panel", experts=experts, at_once=at_once, budget=2)
    assert "ask experts 2 times totally" in text
    assert all(fact in text for fact in facts)
    example = text[text.index("<agent_calls> [") :].split("</agent_calls>")[0]
    shown = json.loads(example.removeprefix("<agent_calls>"))
    assert [call["expert_id"] for call in shown] == ([1, 2] if at_once > 1 else [1])
