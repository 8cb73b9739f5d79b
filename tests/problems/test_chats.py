"""Chats become questions whole."""

import pytest

from coterie.datatypes import UserError
from tests.problems.conftest import load


def said(*turns):
    return [{"role": role, "content": text} for role, text in turns]


BASE = ("system", "Write numbers in base 5.")
PROSE = "We add three and four. " * 10


def test_a_system_message_stands_in_front(tmp_path):
    row = {"prompt": said(BASE, ("user", "3 + 4 =")), "answer": "12"}
    assert load(tmp_path, row)[0].question == "Write numbers in base 5.\n\n3 + 4 ="


def test_earlier_turns_stand_in_front(tmp_path):
    turns = said(BASE, ("user", "Let k be 3."), ("assistant", "Good."), ("user", "What is k + 4?"))
    assert load(tmp_path, {"messages": turns, "answer": "12"})[0].question == (
        "Write numbers in base 5.\n\nUser: Let k be 3.\n\nAssistant: Good.\n\nUser: What is k + 4?"
    )


def test_one_message_is_its_text(tmp_path):
    parts = [{"type": "text", "text": "3 + 4 ="}]
    row = {"prompt": [{"role": "user", "content": parts}], "answer": 7}
    assert load(tmp_path, row)[0].question == "3 + 4 ="


@pytest.mark.parametrize(
    "row",
    [
        {"messages": said(("user", "3 + 4 ="), ("assistant", r"It is \boxed{7}."))},
        {"conversations": [{"from": "human", "value": "3 + 4 ="}, {"from": "gpt", "value": "7"}]},
        {"messages": said(("user", "3 + 4 ="), ("assistant", "3 + 4 = 7. The answer is 7."))},
        {"messages": said(("user", "3 + 4 ="), ("assistant", "Adding them gives **7**."))},
        {
            "messages": said(
                ("user", "3 + 4 ="), ("assistant", rf"<think>\boxed{{8}}?</think>{PROSE}Answer: 7")
            )
        },
    ],
)
def test_the_last_message_of_a_whole_chat_is_the_answer(tmp_path, row):
    (problem,) = load(tmp_path, row)
    assert (problem.question, problem.gold, problem.kind) == ("3 + 4 =", "7", "number")


def test_a_rule_based_reward_keeps_the_system_message(tmp_path):
    row = {"data_source": "own", "ability": "math", "extra_info": {"index": 0, "note": "n"},
           "prompt": said(BASE, ("user", "3 + 4 =")),
           "reward_model": {"style": "rule", "ground_truth": ["12", "12_5"]}}  # fmt: skip
    (problem,) = load(tmp_path, row)
    assert problem.question == "Write numbers in base 5.\n\n3 + 4 ="
    assert problem.golds == ("12", "12_5")


@pytest.mark.parametrize(
    ("turns", "sentence"),
    [
        (said(BASE), "without a message of the user"),
        (said(("user", "1?"), ("assistant", "1.")), "ends with a message of the assistant"),
        (said(("user", "1?"), ("tool", "1.")), "has the role 'tool'"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
         "holds more than text"),
        (said(("user", "1?"), BASE), "ends with a system message"),
        (["1?"], "not text or a chat"),
    ],
)  # fmt: skip
def test_chats_that_cannot_be_a_question(tmp_path, turns, sentence):
    with pytest.raises(UserError, match=f"line 1: .*{sentence}"):
        load(tmp_path, {"prompt": turns, "answer": 1})
