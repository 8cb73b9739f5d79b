"""Chains are a function of (seed, index), and their gold answers are right."""

import json
from collections import Counter

import pytest

from coterie.datatypes import Problem, UserError
from coterie.problems.chains import Chain, ChainSettings, ChainSource
from coterie.problems.source import ProblemSource

# An independent reading of the rules: residues, written as plain expressions.
RULES = {"+": "(a+b)", "-": "(a-b)", "@": "(a*2+b*3+1)", "#": "(b*3-a)"}


def evaluate(question: str) -> int:
    """Nests one expression per operation and reduces modulo 10 once, at the end."""
    words = question.removesuffix(" =").split(" ")
    value = int(words[0])
    for sign, operand in zip(words[1::2], words[2::2]):
        value = eval(RULES[sign], {"a": value, "b": int(operand)})
    return value % 10


def test_worked_examples():
    # 7+8=15->5, 5-3=2; 2*2+3*4+1=17->7; 3*5-7=8
    chain = Chain((7, 8, 3, 4, 5), "+-@#")
    assert chain.question == "7 + 8 - 3 @ 4 # 5 ="
    assert chain.values == (5, 2, 7, 8)


def test_gold_agrees_with_an_independent_evaluator():
    source = ChainSource(ChainSettings(seed=3))
    for index in range(2000):
        problem = source[index]
        assert problem.gold == str(evaluate(problem.question)), problem


def test_a_problem_is_a_function_of_seed_and_index():
    source, again = ChainSource(ChainSettings(seed=5)), ChainSource(ChainSettings(seed=5))
    backwards = [again[index] for index in reversed(range(50))]
    assert [source[index] for index in range(50)] == backwards[::-1]
    assert source[0] != source[1]
    assert source[0] != ChainSource(ChainSettings(seed=6))[0]


def test_the_stream_is_frozen():
    # Runs, checkpoints' gates and reports name problems by index: these must never change, in
    # whatever process.
    assert [ChainSource()[index].id for index in range(3)] == [
        "8 # 0 @ 6 # 4 # 9 =",
        "9 @ 1 # 2 # 3 # 1 =",
        "8 + 1 @ 8 @ 1 =",
    ]


def test_families_and_lengths():
    source = ChainSource()
    problems = [source[index] for index in range(4000)]
    families = Counter(problem.meta["family"] for problem in problems)
    # Binomial(4000, .25) has a standard deviation of 27.4, Binomial(4000, .5) of 31.6: 4 of them.
    assert abs(families["P"] - 1000) < 110
    assert abs(families["T"] - 1000) < 110
    assert abs(families["X"] - 2000) < 127
    for problem in problems:
        signs = {sign for sign in problem.question if sign in "+-@#"}
        plain, odd = bool(signs & set("+-")), bool(signs & set("@#"))
        assert (plain, odd) == {"P": (True, False), "T": (False, True), "X": (True, True)}[
            problem.meta["family"]
        ]
        count = sum(sign in "+-@#" for sign in problem.question)
        assert problem.meta["length"] == count
        assert 3 <= count <= 5
    assert {problem.meta["length"] for problem in problems} == {3, 4, 5}


def test_a_problem_is_plain_data_and_its_id_is_its_question():
    problem = ChainSource()[9]
    assert problem == Problem(
        id=problem.question,
        question=problem.question,
        gold=problem.gold,
        kind="number",
        meta=json.loads(json.dumps(dict(problem.meta))),
    )
    assert len(problem.gold) == 1
    assert problem.gold.isdigit()


def test_settings_decide_what_is_drawn():
    only = ChainSource(ChainSettings(mix=(0, 1, 0), min_length=1, max_length=1))
    assert {only[index].meta["family"] for index in range(200)} == {"T"}
    assert {only[index].meta["length"] for index in range(200)} == {1}


def test_it_is_a_source():
    source: ProblemSource = ChainSource()
    assert source.name == "chains"
    assert source.size is None
    assert len(source.fingerprint) == 64
    assert source.fingerprint == ChainSource().fingerprint
    assert source.fingerprint != ChainSource(ChainSettings(seed=1)).fingerprint
    with pytest.raises(IndexError, match="index 0"):
        source[-1]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"mix": (0, 0, 0)}, "shares"),
        ({"mix": (-1, 1, 1)}, "it must be at least 0"),
        ({"mix": (1, 1)}, "it must be a list of 3"),
        ({"min_length": 0}, "lengths"),
        ({"min_length": 5, "max_length": 4}, "lengths"),
        ({"min_length": 1}, "family X"),
    ],
)
def test_impossible_settings_are_refused(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        ChainSettings(**settings)
