r"""Gold answers of real problem sets: each equals itself however it is written, and no other.

Reads the folder named by COTERIE_DATA; COTERIE_DATA_ITEMS says how many items of a set are used
(default 150; ``all`` for every one). No text of a benchmark stands here, only indices.
"""

import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from coterie.datatypes import Problem
from coterie.problems.files import load_file
from coterie.rewards.grading.answers import Checker
from tests.rewards.grading.answers.spellings import fraction_forms, integer_forms

pytestmark = pytest.mark.data

SETS = (
    "gsm8k_train.jsonl", "gsm8k_test.jsonl", "svamp.jsonl", "asdiv.jsonl", "aime24.jsonl",
    "aime25.json", "aimo25.json", "amc23.jsonl", "math500.jsonl", "olympiadbench.jsonl",
    "mmlu_stem.jsonl",
)  # fmt: skip


def problems_of(name: str) -> list[Problem]:
    """A seeded choice of a set's problems, without their questions and tolerances."""
    path = Path(os.environ.get("COTERIE_DATA", "none")) / name
    if not path.exists():
        pytest.skip(f"{name} is not in COTERIE_DATA")
    source = load_file(path)
    wanted = os.environ.get("COTERIE_DATA_ITEMS", "60")
    count = source.size if wanted == "all" else min(source.size, int(wanted))
    chosen = sorted(random.Random(20).sample(range(source.size), count))
    return [replace(source[index], question="", tolerance=0.0) for index in chosen]


def value_of(gold: str) -> Fraction | None:
    """The value of an integer, a decimal or a fraction, told without the code under test."""
    text = re.sub(r"(?<=\d),\s?(?=\d{3}(?!\d))", "", re.sub(r"\$|\\!", "", gold).strip())
    text = re.sub(r"\\[dt]?frac ?\{?(-?\d+)\}? ?\{?(\d+)\}?", r"\1/\2", text)
    return Fraction(text) if re.fullmatch(r"-?(?:\d+/\d+|\d*\.?\d+)", text) else None


def spellings(problem: Problem) -> Iterator[str]:
    gold = problem.gold
    yield gold
    if problem.kind == "choice":
        yield from (f"({gold})", f"{gold}.", f"**{gold}**", rf"\text{{{gold}}}", f"${gold}$")
        option = problem.choices["ABCD".index(gold)]
        lowered = [choice.strip().casefold() for choice in problem.choices]
        usable = (
            lowered.count(lowered["ABCD".index(gold)]) == 1
            and not re.search(r"[\n{}$\\#]", option)
            # An option that reads B cannot be told from the letter B; one of signs alone is none.
            and option.strip() not in "ABCD"
            and re.search(r"\w", option) is not None
        )
        if usable:
            yield from (option, f"{gold}. {option}", f"({gold}) {option}")
    elif problem.kind == "text":
        yield from (gold.upper(), gold + ".", rf"\text{{{gold}}}")
    elif problem.kind == "list":
        parts = [part.strip() for part in gold.replace("$", "").split(",")]
        if None not in map(value_of, parts):
            yield from (", ".join(reversed(parts)), rf"\{{{', '.join(parts)}\}}")
    elif (value := value_of(gold)) is not None:
        whole = value.denominator == 1
        yield from integer_forms(int(value)) if whole else fraction_forms(value)
    elif "$" not in gold:
        yield from (f"${gold}$", rf"\({gold}\)")


WRAPPERS = (
    "Some steps: 3 + 4 = 7.\nSo $\\boxed{%s}$.",
    "Some steps: 3 + 4 = 7.\n#### %s",
    "Some steps: 3 + 4 = 7.\n\n**Final answer:** %s",
    "<think>\\boxed{3}?</think>It is 3 or 4.\n<final_answer>%s</final_answer>",
)


@pytest.mark.parametrize("name", SETS)
def test_each_gold_equals_itself_in_every_spelling(name: str, checker: Checker) -> None:
    problems = problems_of(name)
    requests = [
        (wrapper.replace("%s", spelling), problem)
        for problem in problems
        for spelling in dict.fromkeys(spellings(problem))
        for wrapper in WRAPPERS
    ]
    verdicts = checker.check_many(requests)
    wrong = [
        (problem.id, response[-120:], verdict)
        for (response, problem), verdict in zip(requests, verdicts, strict=True)
        if not verdict.correct
    ]
    assert len(requests) >= 4 * len(problems)
    assert wrong == []
    assert checker.pool.timeouts == 0


def alike(left: Problem, right: Problem) -> bool:
    """Whether two gold answers are equal, by a rule of this test's own."""
    if left.kind == "choice":
        return left.gold == right.gold
    bare = [re.sub(r"\^\{?\\circ\}?|\\%|[%$\s]", "", p.gold) for p in (left, right)]
    if left.kind == "list" or right.kind == "list":
        return sorted(bare[0].split(",")) == sorted(bare[1].split(","))
    values = [value_of(text) for text in bare]
    if None not in values:
        return values[0] == values[1]
    named = [re.sub(r"^\w+(\(\w\))?=", "", text) for text in bare]
    return bare[0].casefold() == bare[1].casefold() or (
        named[0] == named[1] and (named == bare or bare[0] == named[0] or bare[1] == named[1])
    )


@pytest.mark.parametrize("name", SETS)
def test_no_gold_equals_another(name: str, checker: Checker) -> None:
    chosen = problems_of(name)
    pairs = [
        pair
        for seed in (1, 2)
        for pair in zip(chosen, random.Random(seed).sample(chosen, len(chosen)), strict=True)
    ]
    verdicts = checker.check_many(
        [(WRAPPERS[0].replace("%s", other.gold), problem) for problem, other in pairs]
    )
    equal = [alike(*pair) for pair in pairs]
    wrong = [
        (problem.id, other.id, problem.gold, other.gold, verdict)
        for (problem, other), verdict, same in zip(pairs, verdicts, equal, strict=True)
        if verdict.correct != same
    ]
    assert equal.count(False) > len(pairs) / 2
    assert wrong == []
