"""The corpus of policy and expert."""

import random

from coterie.envs.eapo_consultation.messages import (
    ExpertCall,
    ReturnEntry,
    parse_calls,
    write_returns,
)
from coterie.envs.eapo_consultation.panel import training_prompt
from coterie.envs.prompts import lone_prompt as env_lone_prompt
from coterie.problems.chains import Chain, ChainSettings, ChainSource
from coterie.rewards.consultation import is_well_formed, read
from miniatures.chains import Habits, habits_of
from miniatures.consulting import (
    call,
    call_example,
    expert_example,
    is_call,
    lone_example,
    lone_prompt,
    panel_prompt,
    question_of,
    read_answer,
    returned_example,
    returns,
    solution,
    trace,
)
from miniatures.recipes import CONSULTING

# 7 + 8 = 15, 15 - 3 = 12, 2 * 2 + 3 * 4 + 1 = 17: values 5, 2, 7.
CHAIN = Chain((7, 8, 3, 4), "+-@")
RIGHT = Habits({})


def fixed(*numbers: float):
    stream = iter(numbers)
    return lambda: next(stream)


def test_prompts_and_returns_are_those_of_the_environment() -> None:
    question = question_of(CHAIN)
    assert question == "All values of 7 + 8 - 3 @ 4 ="
    assert lone_prompt(question) == env_lone_prompt(question, "plain")
    assert panel_prompt(question) == training_prompt(
        question, "plain", experts=3, at_once=3, budget=2
    )
    replies = [(1, "7 + 8 = 5\nAnswer: 5"), (3, None), (2, "4")]
    entries = [
        ReturnEntry("UNAVAILABLE", "", expert)
        if reply is None
        else ReturnEntry("OK", reply, expert)
        for expert, reply in replies
    ]
    assert returns(replies) == write_returns(entries)


def test_questions_are_those_of_the_problems() -> None:
    problem = ChainSource(ChainSettings(answer="all"))[5]
    words = problem.question.removeprefix("All values of ").split()
    chain = Chain(tuple(map(int, words[0:-1:2])), "".join(words[1:-1:2]))
    assert question_of(chain) == problem.question
    assert solution(chain, chain.values) == problem.meta["solution"]
    assert read_answer(trace(chain, chain.values)) == problem.gold


def test_traces_by_hand() -> None:
    assert trace(CHAIN, CHAIN.values) == (
        " <think> 7 + 8 = 5 - 3 = 2 @ 4 = 7 </think>\nAnswer: 527"
    )
    example = expert_example(CHAIN, random.random)
    assert example.answer == " 7 + 8 = 5 - 3 = 2 @ 4 = 7\nAnswer: 527"
    assert is_well_formed(trace(CHAIN, CHAIN.values), answered_calls=0)
    wrong = Habits({("-", 5, 3): (9, 1.0)})
    # 9 is passed on: 2 * 9 + 3 * 4 + 1 = 31.
    assert lone_example(CHAIN, wrong, fixed(0.5), panel=True).answer.endswith("Answer: 591")


def test_calls_are_calls() -> None:
    text = call("7 + 8 = 5", [1, 3], "All values of 5 - 3 =")
    assert is_call(text)
    start, end = read(text).calls[0]
    assert parse_calls(text[start:end], 3) == [
        ExpertCall(1, "All values of 5 - 3 ="),
        ExpertCall(3, "All values of 5 - 3 ="),
    ]


def test_what_is_left_is_asked() -> None:
    # decomposed (.1 < .25) after one of three steps (.0); one expert (.0): 1 and 1 go, 3 is left.
    example, asked, first, seats = call_example(CHAIN, RIGHT, fixed(0.1, 0.0, 0.0, 0.0, 0.0))
    assert (first, seats) == ([5], [3])
    assert question_of(asked) == "All values of 5 - 3 @ 4 ="
    assert example.answer == call("7 + 8 = 5", [3], question_of(asked))


def test_every_example_is_consistent() -> None:
    uniform = random.Random(0).random
    habits = habits_of(CONSULTING[0])
    cut = unanswered = 0
    for _ in range(200):
        example = returned_example(CHAIN, habits, uniform)
        answer = read_answer(example.answer)
        assert answer is not None
        assert len(answer) == 3
        cut += '"result": "7 + 8 =' in example.prompt and "nAnswer:" not in example.prompt
        unanswered += "UNAVAILABLE" in example.prompt
    assert cut > 20
    assert unanswered > 40


def test_replies_are_copied_however_wrong() -> None:
    # The whole question, not cut, to one expert who answers; each value is random.
    stream = fixed(0.9, 0.0, 0.0, 0.0, 0.9, 0.9, 0.0, 0.11, 0.0, 0.22, 0.0, 0.33)
    example = returned_example(CHAIN, RIGHT, stream)
    assert '"result": "7 + 8 = 1 - 3 = 2 @ 4 = 3\\nAnswer: 123"' in example.prompt
    assert example.answer == trace(CHAIN, [1, 2, 3])
