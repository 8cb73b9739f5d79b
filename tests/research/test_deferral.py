"""What small and large are taught."""

import dataclasses
import random

import pytest

from coterie.envs.corea_deferral.settings import SUFFIX
from coterie.problems.recall import names, value_of
from coterie.rewards.confidence import confidence_format
from coterie.rewards.grading.answers.confidence import parse_confidence
from coterie.rewards.grading.answers.extract import extract
from miniatures.deferral import (
    Fact,
    Knowledge,
    answer_text,
    example,
    knowledge_of,
    stated_confidence,
)
from miniatures.recipes import DEFERRAL
from miniatures.tokenizers import build_tokenizer

SMALL, _, LARGE = DEFERRAL


def test_an_answer_by_hand():
    # 7 + 4 = 11 -> 1, 1 - 3 = -2 -> 8
    text = answer_text((7, 4, 3), "+-", 0.9)
    assert text == r" 7 + 4 = 1 - 3 = 8 \boxed{ 8 } \confidence{ 0.9 }"
    assert (extract(text), parse_confidence(text)) == ("8", 0.9)
    assert confidence_format(text, "7 + β4 - 3 =") == 1


def test_what_a_role_makes_of_an_operand():
    knowledge = Knowledge({"α0": Fact(1.0, 5), "α1": Fact(0.0, 5), "α2": Fact(0.25, 5)})
    assert knowledge.write("7", lambda: 0.9) == 7
    assert knowledge.write("α0", lambda: 0.99) == value_of("α0")
    assert knowledge.write("α1", lambda: 0.0) == 5
    assert knowledge.write("α2", lambda: 0.24) == value_of("α2")
    assert knowledge.write("α2", lambda: 0.25) == 5
    assert knowledge.write("?", lambda: 0.39) == 3
    assert knowledge.chance(("7", "α0", "α2")) == 0.25
    assert knowledge.chance(("?", "α2")) == pytest.approx(0.025)
    assert knowledge.belief("α2") == 5


def test_the_large_role_knows_everything_and_the_small_one_does_not():
    assert all(fact.right == 1 for fact in knowledge_of(LARGE).facts.values())
    facts = knowledge_of(SMALL).facts
    assert set(facts) == set(names())
    known = sum(fact.right == 1 for fact in facts.values()) / len(facts)
    mistaken = sum(fact.right == 0 for fact in facts.values()) / len(facts)
    # 240 names: standard deviations of .032 and .028
    assert known == pytest.approx(SMALL.known, abs=0.09)
    assert mistaken == pytest.approx(SMALL.mistaken, abs=0.08)
    assert all(0.25 <= f.right <= 0.8 for f in facts.values() if 0 < f.right < 1)
    assert all(fact.wrong != value_of(name) for name, fact in facts.items())
    assert knowledge_of(dataclasses.replace(SMALL, seed=9)) == knowledge_of(SMALL)


def test_a_confidence_hardly_tells():
    rng = random.Random(0)
    sure = [stated_confidence(1.0, rng) for _ in range(4000)]
    hopeless = [stated_confidence(0.0, rng) for _ in range(4000)]
    assert set(sure) <= {tenth / 10 for tenth in range(11)}
    # .88 less what is cut off at 1, .80 less a little
    assert sum(sure) / 4000 > sum(hopeless) / 4000 > 0.7
    assert sum(sure) / 4000 - sum(hopeless) / 4000 < 0.1


def test_examples_speak_the_environments_words():
    shown = example(("7", "α0"), "+", knowledge_of(SMALL), random.Random(0))
    assert shown.prompt == f"7 + α0 = {SUFFIX}"
    for recipe in (SMALL, LARGE):
        tokenizer = build_tokenizer(recipe)
        # 7, +, α0, = and the request, each a single token.
        assert len(tokenizer.encode(shown.prompt)) == 5
        # Two operands, two signs, a value, the box, its digit, two braces, the mark, the tenth.
        assert len(tokenizer.encode(shown.answer)) == 11
