"""What the warm start shows: imperfect work that follows from what was written before it."""

import random
import re
from dataclasses import replace

import pytest

from coterie.datatypes import Problem
from coterie.envs.core_teaching.hints import hint_source
from coterie.envs.prompts import strategy_prompt
from coterie.envs.reasoning import strip_answers
from coterie.problems.chains import OPERATIONS, Chain, ChainSource
from miniatures.chains import Habits, draw_any, draw_habits, habits_of
from miniatures.recipes import TEACHING
from miniatures.teaching import (
    cold_example,
    gate_chains,
    hinted_example,
    parse_chain,
    prompt,
    read_answer,
    trace,
    work,
)

CHAIN = Chain((7, 8, 3, 4), "+-@")
NO_HABITS = Habits({})


def never() -> float:
    return 0.999999


def test_a_cold_example_by_hand():
    # 7+8=15->5; 5-3=2; 2*2+3*4+1=17->7
    example = cold_example(CHAIN, NO_HABITS, never)
    assert example.prompt == "Question: 7 + 8 - 3 @ 4 =\nLet's solve this step by step:"
    assert example.answer == (
        ' <strategy id="1"> 7 + 8 = 5 - 3 = 2 @ 4 = <result> 7 </result> </strategy>'
        " <final_answer> 7 </final_answer>"
    )


def test_a_wrong_value_is_passed_on():
    # 7+8 is written 1; then 1-3=-2->8 and 8*2+3*4+1=29->9 are right for what was written.
    habits = Habits({("+", 7, 8): (1, 1.0)})
    example = cold_example(CHAIN, habits, random.Random(0).random)
    assert "7 + 8 = 1 - 3 = 8 @ 4 = <result> 9 </result>" in example.answer


def test_a_hinted_example_by_hand():
    example = hinted_example(CHAIN, NO_HABITS, never, scrambled=0.5)
    assert example.prompt == (
        "Question: 7 + 8 - 3 @ 4 =\nHint:\n7 + 8 = 5 - 3 = 2 @ 4 =\nLet's solve this step by step:"
    )
    assert read_answer(example.answer) == "7"


def test_a_scrambled_hint_is_copied_and_its_last_step_computed():
    uniform = random.Random(1).random
    copied = 0
    for _ in range(300):
        chain = draw_any(4, uniform)
        example = hinted_example(chain, NO_HABITS, uniform, scrambled=1.0)
        hint = example.prompt.split("Hint:\n")[1].split("\n")[0]
        assert f"> {hint} <" in example.answer
        left = int(hint.split()[-4])
        right = OPERATIONS[chain.operators[-1]](left, chain.digits[-1])
        assert read_answer(example.answer) == str(right)
        copied += hint != work(chain, chain.values)
    # All three shown values are right by chance once in a thousand.
    assert copied >= 297


def test_every_weak_entry_has_one_wrong_value_in_bounds():
    habits = draw_habits("@#", (0.1, 0.85), random.Random(0).random)
    assert set(habits.wrong) == {(s, a, b) for s in "@#" for a in range(10) for b in range(10)}
    for (sign, a, b), (value, probability) in habits.wrong.items():
        assert value != OPERATIONS[sign](a, b)
        assert 0.1 <= probability <= 0.85
        assert habits.write(sign, a, b, never) == OPERATIONS[sign](a, b)
        assert habits.write(sign, a, b, lambda: 0.0) == value
    # Mean of U(.1,.85) is .475; its mean over 200 entries has a standard deviation of .0153.
    mean = sum(probability for _, probability in habits.wrong.values()) / 200
    assert abs(mean - 0.475) < 0.06


def test_habits_do_not_depend_on_the_seed_but_on_the_role():
    alice = TEACHING[0]
    assert habits_of(alice) == habits_of(replace(alice, seed=9))
    assert habits_of(alice) != habits_of(replace(alice, role="bob"))


@pytest.mark.parametrize("hint", ["", "7 + 8 = 5 - 3 ="])
def test_prompts_are_those_of_the_environment(hint):
    problem = Problem(id="x", question="7 + 8 - 3 =", gold="2", kind="number")
    assert strategy_prompt(problem, "plain", hint or None) == prompt(problem.question, hint)


def test_hints_are_those_of_the_environment():
    for chain in gate_chains(200):
        shown = work(chain, chain.values)
        source = hint_source(trace(shown, chain.values[-1]), None, lambda text: True)
        assert source is not None
        assert strip_answers(source) == shown


def test_chains_are_read_back():
    for index in range(100):
        problem = ChainSource()[index]
        chain = parse_chain(problem.question)
        assert chain.question == problem.question
        assert re.fullmatch(r"\d", problem.gold)
        assert str(chain.values[-1]) == problem.gold
