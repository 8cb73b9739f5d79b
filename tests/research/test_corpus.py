"""What the warm starts show: texts of the shipped roles, in the words of the environments."""

import hashlib
import importlib

import pytest

from coterie.datatypes import Problem
from coterie.envs.core_teaching.hints import hint_source
from coterie.envs.eapo_consultation.messages import (
    ExpertCall,
    ReturnEntry,
    parse_calls,
    write_returns,
)
from coterie.envs.eapo_consultation.panel import training_prompt
from coterie.envs.prompts import lone_prompt, strategy_prompt
from coterie.envs.reasoning import strip_answers
from coterie.problems.chains import Chain, ChainSettings, ChainSource
from coterie.rewards.confidence import format_parts
from coterie.rewards.consultation import is_well_formed, read
from miniatures import consulting, deferral, teaching
from miniatures.recipes import RECIPES

# 7 + 8 = 15, 15 - 3 = 12, 2 * 2 + 3 * 4 + 1 = 17: values 5, 2, 7.
CHAIN = Chain((7, 8, 3, 4), "+-@")
DIGESTS = {
    "alice": "0f090f2e836cd480",
    "bob": "72bd2bd5102cc2ae",
    "carol": "7fc1e3ab3d8a9eba",
    "dora": "d59ae00cc02f332f",
    "gina": "bc0db17a05dcb737",
    "hugo": "3ea3f5155d25bc66",
    "small": "e3e6f5df54188a44",
    "smaller": "c7e730d07b263f02",
    "large": "01da7364d609fa99",
    "policy": "5a00654f9893a0c6",
    "pupil": "2ef4a70e8ce28c78",
    "expert": "01ef948b9c68b525",
    "erin": "bd04e7df52576050",
    "frank": "07c6735802c4adb9",
}


@pytest.mark.parametrize("role", RECIPES)
def test_a_rebuilt_role_reads_the_same_texts(role: str) -> None:
    """A batch of each stage of phase 1, and forty of phase 2, in which all forms occur."""
    recipe = RECIPES[role]
    phases = importlib.import_module(f"miniatures.{recipe.family}").phases(recipe)
    texts = [draw() for draw in (*phases.stages, *[phases.draw] * 40)]
    known = deferral.beliefs(recipe) if recipe.family == "deferral" else {}
    digest = hashlib.sha256(repr((texts, known)).encode()).hexdigest()
    assert digest[:16] == DIGESTS[role]


@pytest.mark.parametrize("hint", ["", "7 + 8 = 5 - 3 ="])
def test_prompts_of_teachers_are_those_of_the_environment(hint: str) -> None:
    problem = Problem(id="x", question="7 + 8 - 3 =", gold="2", kind="number")
    shown = strategy_prompt(problem, "plain", hint or None)
    assert shown == teaching.prompt(problem.question, hint)


def test_hints_are_those_of_the_environment() -> None:
    for _, chain in teaching.gate_chains(200):
        shown = teaching.work(chain, chain.values)
        trace = teaching.trace(shown, chain.values[-1])
        source = hint_source(trace, None, lambda text: True)
        assert source is not None
        assert strip_answers(source) == shown


def test_prompts_and_returns_of_a_panel_are_those_of_the_environment() -> None:
    question = consulting.question_of(CHAIN)
    assert question == "All values of 7 + 8 - 3 @ 4 ="
    assert consulting.lone_prompt(question) == lone_prompt(question, "plain")
    assert consulting.panel_prompt(question) == training_prompt(
        question, "plain", experts=3, at_once=3, budget=2
    )
    replies = [(1, "7 + 8 = 5\nAnswer: 5"), (3, None), (2, "4")]
    entries = [
        ReturnEntry("UNAVAILABLE" if reply is None else "OK", reply or "", expert)
        for expert, reply in replies
    ]
    assert consulting.returns(replies) == write_returns(entries)


def test_calls_are_calls() -> None:
    text = consulting.call("7 + 8 = 5", [1, 3], "All values of 5 - 3 =")
    assert consulting.is_call(text)
    start, end = read(text).calls[0]
    assert parse_calls(text[start:end], 3) == [
        ExpertCall(1, "All values of 5 - 3 ="),
        ExpertCall(3, "All values of 5 - 3 ="),
    ]


def test_answers_are_those_of_the_environments() -> None:
    problem = ChainSource(ChainSettings(answer="all"))[5]
    words = problem.question.removeprefix("All values of ").split()
    chain = Chain(tuple(map(int, words[0:-1:2])), "".join(words[1:-1:2]))
    assert consulting.question_of(chain) == problem.question
    assert consulting.solution(chain, chain.values) == problem.meta["solution"]
    trace = consulting.trace(chain, chain.values)
    assert consulting.read_answer(trace) == problem.gold
    assert is_well_formed(trace, answered_calls=0)
    assert all(format_parts(deferral.answer_text(CHAIN, CHAIN.values, 0.9), CHAIN.question))
