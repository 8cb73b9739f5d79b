"""The three-way rule, the penalty and the format, by hand."""

import time

import pytest

from coterie.datatypes import Problem, Verdict
from coterie.rewards.consultation import (
    answer_f1,
    answer_reward,
    consult_penalty,
    final_answer,
    graded_part,
    has_answered,
    is_well_formed,
    read,
)
from coterie.rewards.grading.answers.extract import extract


@pytest.mark.parametrize(
    ("rule", "correct", "f1", "formatted", "value"),
    [
        ("f1_literal", False, 0.0488, True, 0.0488),  # less than a wrong answer in good form
        ("f1_or_format", False, 0.0488, True, 0.1),
        ("f1_literal", True, 0.0, True, 0.1),  # \boxed{204}: F1 0, though right
        ("em_math", True, 0.0, True, 1.0),
        ("em_math", False, 1.0, True, 0.1),  # -3 for 3
        ("f1_literal", False, 1.0, False, 1.0),
        ("f1_literal", False, 0.0, False, 0.0),
        ("f1_or_format", False, 2 / 3, True, 2 / 3),
        ("em_math", False, 0.5, False, 0.0),
    ],
)
def test_three_ways(rule: str, correct: bool, f1: float, formatted: bool, value: float) -> None:
    credit = float(correct)
    got = answer_reward(rule, credit=credit, f1=f1, formatted=formatted)  # type: ignore[arg-type]
    assert got == pytest.approx(value)


@pytest.mark.parametrize(("kind", "f1"), [("choice", 1.0), ("text", 0.0)])
def test_the_letter_a_is_no_article(kind: str, f1: float) -> None:
    problem = Problem("p", "Which?", "A", kind, choices=("red", "blue"))  # type: ignore[arg-type]
    assert answer_f1("Answer: A", Verdict(True, "A", "choice"), problem) == f1


def test_part_of_the_credit_is_not_below_the_format() -> None:
    assert answer_reward("em_math", credit=0.05, f1=0.0, formatted=True) == 0.1
    assert answer_reward("em_math", credit=0.05, f1=0.0, formatted=False) == 0.05


def test_penalty() -> None:
    assert consult_penalty(3, 0.05) == pytest.approx(-0.15)
    assert str(consult_penalty(0, 0.05)) == "0.0"


CALL = '<agent_calls>[{"expert_id": 1}]</agent_calls>'


@pytest.mark.parametrize(
    ("text", "calls", "formatted"),
    [
        ("<think> a </think>\nAnswer: 4", 0, True),
        ("so </think>\nAnswer: 4", 0, True),  # the template opened the thought
        ("Answer: 4", 0, False),  # no thought
        ("<think> a </think>\nAnswer: 4 <think>", 0, False),  # ends inside a thought
        (f"<think> a </think><agent_calls>{CALL}\nAnswer: 4", 1, False),  # opened twice
        ("<think> a \nAnswer: 4", 0, False),  # never closed
        ("<think> a <think> b </think>\nAnswer: 4", 0, False),
        ("<think> a </think> </think>\nAnswer: 4", 0, False),
        ("<think> a </think>\nAnswer:  ", 0, False),
        ("<think> a </think>\nAnswer: 4\nAnswer: 5", 0, False),
        ("<think> Answer: 3? </think>\nAnswer: 4", 0, True),
        (f"<think> a </think>{CALL}<think> b </think>\nAnswer: 4", 1, True),
        (f"<think> a </think>{CALL}<think> b </think>\nAnswer: 4", 0, False),  # unanswered
        ("<think> a </think>\nAnswer: 4", 1, False),
        ("<think> a </think><agent_calls>\nAnswer: 4", 0, False),
        ("<think> a </think></agent_calls>\nAnswer: 4", 0, False),
        ("<think> a </think><agent_returns>[]</agent_returns>\nAnswer: 4", 0, False),
        (f"<think> {CALL} </think>\nAnswer: 4", 0, True),  # inside a thought it is just text
    ],
)
def test_format(text: str, calls: int, formatted: bool) -> None:
    assert is_well_formed(text, answered_calls=calls) is formatted


def test_final_answer() -> None:
    assert final_answer("<think> Answer: 3 </think>\nAnswer: 4 \n") == "4"
    assert final_answer("Answer: 3 Answer: 4") == "4"
    assert final_answer("<think> Answer: 3 ") is None
    assert final_answer("<think> Answer: 3 </think> so 4") is None
    assert final_answer("4") is None
    assert final_answer("Answer: ") is None
    # As chat models write it.
    for mark in ("**Answer**:", "Answer :", "So.\nanswer:", "**Answer** :"):
        assert final_answer(f"<think> a </think> {mark} 4") == "4"
        assert graded_part(f"<think> a </think> {mark} 4", "number") == "Answer: 4"
    assert final_answer("My answer: 4") is None


def test_a_box_is_graded_where_no_line_states_an_answer() -> None:
    boxed = r"<think> \boxed{3} </think> 2 + 2: \boxed{4} birds"
    assert graded_part(boxed, "number") == r" 2 + 2: \boxed{4} birds"
    assert graded_part(rf"<think> </think> {CALL} \boxed{{4}}", "number") == " \n \\boxed{4}"
    assert graded_part(boxed + "\nAnswer: 5", "number") == "Answer: 5"
    assert graded_part(r"<think> \boxed{3}", "number") is None
    assert graded_part("2 + 2 = 4", "number") is None
    # The rules of the paper read the line alone.
    assert final_answer(boxed) is None
    assert not has_answered(boxed, "number")
    assert not is_well_formed(boxed, answered_calls=0)


@pytest.mark.parametrize(
    "answer", ["2", "\n\\[\n2\n\\]", "\n$$\n2\n$$", "\n```\n2\n```", "\n\n2\n"]
)
def test_an_answer_below_its_line_is_read(answer: str) -> None:
    assert extract(graded_part(f"<think>x</think>\nAnswer:{answer}", "math") or "") == "2"


def test_a_program_stands_outside_of_thoughts_and_in_a_closed_block() -> None:
    assert graded_part(f"{CALL}<think>no</think>print(1)", "code") == "print(1)"
    assert has_answered("```\nprint(1)\n```", "code")
    assert not has_answered("```\nprint(1)", "code")


def test_calls_are_told_apart() -> None:
    text = f"<think> {CALL} </think> {CALL}"
    reading = read(text)
    assert [text[a:b] for a, b in reading.calls] == ['[{"expert_id": 1}]']
    assert reading.thought_calls == (len("<think> ") + len(CALL),)
    assert not reading.thinking
    assert read(CALL, opened=True).thought_calls


@pytest.mark.parametrize("unit", ["<think>", "</think>", "<agent_calls>", "Answer:", "<", CALL])
def test_a_megabyte_takes_no_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    start = time.process_time()
    is_well_formed(text, answered_calls=0)
    final_answer(text)
    assert time.process_time() - start < 3
