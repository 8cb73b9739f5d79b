"""What the question says about an answer: its formulas are none, what it counts is a unit."""

import re
from dataclasses import replace

import pytest

from coterie.datatypes import AnswerKind, Problem
from coterie.problems.chains import ChainSource
from coterie.problems.recall import RecallSource
from coterie.problems.source import ProblemSource
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.scorer import AnswerScorer


def problem(gold: str, kind: AnswerKind = "math") -> Problem:
    return Problem(id="p", question="", gold=gold, kind=kind)


def test_a_formula_of_the_question_is_no_answer_to_it() -> None:
    scorer = AnswerScorer()
    asked = problem(r"2\sqrt{3}")
    for answer, question, right in (
        (r"\sqrt{12}", r"Simplify $\sqrt{12}$.", False),
        (r"\sqrt{12}", "How long is the side?", True),
        (r"2\sqrt3", r"Is it $2\sqrt3$?", True),
    ):
        verdict = scorer.check(rf"\boxed{{{answer}}}", replace(asked, question=question))
        assert verdict.correct == right
    asked = replace(problem("6x^2-7x-3"), question="Let $p(x) = (2x-3)(3x+1)$. Expand it.")
    for answer in ("(2x-3)(3x+1)", r"(3x+1) \cdot (2x-3)", r"\left(-3+2x\right)(3x+1)"):
        assert not scorer.check(rf"\boxed{{{answer}}}", asked).correct
    assert scorer.check(r"\boxed{-3-7x+6x^2}", asked).correct
    assert scorer.check(r"\boxed{7}", replace(problem("7", "number"), question="Is it 7?")).correct
    scorer.close()


def test_what_the_question_counts_is_a_unit() -> None:
    checker = Checker()
    asked = replace(problem("9", "number"), question="How many purple zebras are not asleep?")
    for answer, right in (
        ("9 zebras", True),
        ("9 purple zebras", True),
        ("9 zebra", True),
        ("9 gnus", False),
        ("9 not zebras", False),
        ("9 asleep or not", False),
        ("9 million zebras", False),
        ("9g", False),
    ):
        assert checker.check(f"Answer: {answer}", asked).correct == right
    grams = replace(asked, question="How many grams do the zebras eat?")
    assert checker.check("Answer: 9g", grams).correct


@pytest.mark.parametrize("source", [ChainSource(), RecallSource()], ids=["chains", "recall"])
def test_a_generated_question_is_not_answered_by_itself(source: ProblemSource) -> None:
    checker = Checker()
    for index in range(200):
        asked = source[index]
        chain = asked.question.removesuffix("=").strip()
        digits = re.findall(r"\d", chain)
        for answer in (
            chain,
            chain.replace(" ", ""),
            f"{chain} = {int(asked.gold) + 1}",
            f"({chain})",
            f"{chain} + 0",
            f"0 + {chain}",
            f"{asked.gold} + 0",
            f"{asked.gold} * 1",
            f"{asked.gold}/1",
            " + ".join(reversed(digits)),
            " - ".join(digits),
        ):
            verdict = checker.check(rf"\boxed{{{answer}}}", asked)
            assert not verdict.correct, (asked, answer)
        assert checker.check(rf"\boxed{{{asked.gold}}}", asked).correct
    assert checker.pool.alive == 0
