"""Problems on remembered constants are a function of (seed, index), and their golds are right."""

from collections import Counter

import pytest

from coterie.datatypes import UserError
from coterie.problems.opening import open_source
from coterie.problems.recall import (
    GREEK,
    RecallSettings,
    RecallSource,
    names,
    operand_values,
    recall_problem,
    value_of,
)


def test_a_worked_example():
    problem = recall_problem(("7", "β4", "3"), "+-")
    assert problem.question == "7 + β4 - 3 ="
    assert problem.gold == str((7 + value_of("β4") - 3) % 10)
    assert problem.meta == {"names": ["β4"], "solvable": True, "length": 2}
    assert not recall_problem(("7", "?", "3"), "+-").meta["solvable"]


def test_gold_agrees_with_python():
    source = RecallSource(RecallSettings(seed=3, unknown=0.0))
    for index in range(500):
        problem = source[index]
        expression = problem.question.removesuffix(" =")
        for name in problem.meta["names"]:
            expression = expression.replace(name, str(value_of(name)))
        assert problem.gold == str(eval(expression) % 10), problem


def test_a_problem_is_a_function_of_seed_and_index():
    source, again = (RecallSource(RecallSettings(seed=5)) for _ in range(2))
    backwards = [again[index] for index in reversed(range(50))]
    assert [source[index] for index in range(50)] == backwards[::-1]
    assert source[0] != RecallSource(RecallSettings(seed=6))[0]
    with pytest.raises(IndexError):
        source[-1]


def test_shares_are_those_of_the_settings():
    settings = RecallSettings(letters=5, named=0.4, unknown=0.2)
    drawn = [RecallSource(settings)[index] for index in range(4000)]
    # Standard deviations: .0063 of a share of .2, .0045 of .4 over about 12,000 operands.
    assert sum(not p.meta["solvable"] for p in drawn) / 4000 == pytest.approx(0.2, abs=0.025)
    solvable = [p for p in drawn if p.meta["solvable"]]
    operands = sum(p.meta["length"] + 1 for p in solvable)
    named = sum(len(p.meta["names"]) for p in solvable) / operands
    assert named == pytest.approx(0.4, abs=0.02)
    assert {name[0] for p in drawn for name in p.meta["names"]} == set(GREEK[:5])
    assert Counter(p.meta["length"] for p in drawn).keys() == {2, 3, 4}


def test_values_are_spread_and_fixed():
    counts = Counter(value_of(name) for name in names())
    # 240 names, 24 a digit expected, standard deviation 4.6.
    assert set(counts) == set(range(10))
    assert max(counts.values()) < 43
    # What stands here stands in every shipped model.
    assert [value_of(name) for name in ("α0", "β4", "ω9")] == VALUES


VALUES = [1, 1, 7]


def test_a_hidden_operand_differs_from_question_to_question():
    hidden = {operand_values(("?", str(digit), "1"), "+-")[0] for digit in range(10)}
    assert len(hidden) > 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("recall?letters=25", "recall: letters is 25; it must be 1 to 24"),
        ("recall?named=1.5", "named is 1.5"),
        ("recall?unknown=-1", "unknown is -1.0"),
        ("recall?min_length=0", "lengths 0 to 4"),
        ("recall?named=a", "recall: named=a must be a number"),
        ("recall?min_length=2.5", "min_length=2.5 must be a whole number"),
        ("recall?letter=2", "recall has no option 'letter'"),
    ],
)
def test_bad_settings_get_one_sentence(text, sentence):
    with pytest.raises(UserError, match=sentence.replace("?", r"\?")):
        open_source(text)


def test_options_are_read():
    source = open_source("recall?named=0.5&letters=3", seed=9)
    assert isinstance(source, RecallSource)
    assert source.settings == RecallSettings(letters=3, named=0.5, seed=9)
