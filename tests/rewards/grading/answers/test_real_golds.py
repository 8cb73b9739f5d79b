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


# --- what a gold answer is worth, told without the code under test -------------------------------


def value_of(gold: str) -> Fraction | None:
    """The value of an integer, decimal or fraction in the spellings that the sets use."""
    text = gold.replace(r"\dfrac", r"\frac").replace("$", "").replace(r"\!", "").strip()
    text = re.sub(r"(?<=\d),\s?(?=\d{3}(?!\d))", "", text) if text.count(",") < 5 else text
    if re.fullmatch(r"-?(\d+(\.\d+)?|\.\d+)", text):
        return Fraction(text)
    if match := re.fullmatch(r"(-?)\(?(\d+)/(\d+)\)?", text):
        return Fraction(int(match[1] + match[2]), int(match[3]))
    if match := re.fullmatch(r"(-?)\\frac ?(?:\{(-?\d+)\}|(\d)) ?(?:\{(\d+)\}|(\d))", text):
        return Fraction(int(match[1] + (match[2] or match[3])), int(match[4] or match[5]))
    return None


def decimal_of(value: Fraction) -> str | None:
    """The exact decimal of a value that has one of at most 12 places."""
    for places in range(13):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = f"{abs(scaled.numerator):0{places + 1}d}"
            whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
            return ("-" if value < 0 else "") + whole + (f".{part}" if part else "")
    return None


def spellings_of_value(value: Fraction) -> Iterator[str]:
    top, bottom = value.numerator, value.denominator
    if bottom > 1:
        yield f"{top}/{bottom}"
        yield f"{2 * top}/{2 * bottom}"
        for command in ("frac", "dfrac"):
            yield rf"\{command}{{{top}}}{{{bottom}}}"
            yield rf"\{command}{{{3 * top}}}{{{3 * bottom}}}"
    if value < 0:
        yield f"\N{MINUS SIGN}{decimal_of(-value) or f'{-top}/{bottom}'}"
        if bottom > 1:
            yield rf"-\frac{{{-top}}}{{{bottom}}}"
    decimal = decimal_of(value)
    if decimal is not None:
        yield decimal
        yield decimal + ("00" if "." in decimal else ".00")
    if bottom == 1:
        yield rf"\text{{{top}}}"
        yield rf"\${top}"
        if abs(top) >= 1000:
            yield f"{top:,}"
            yield f"{top:,}".replace(",", "{,}")
            yield f"{top:,}".replace(",", r",\!")
            yield f"{top:,}.00"
        if 0 <= top <= 999:
            yield f"{top:03d}"


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
        return
    if problem.kind == "text":
        yield from (gold.upper(), gold + ".", rf"\text{{{gold}}}")
        return
    if "$" not in gold:
        yield from (f"${gold}$", rf"\({gold}\)")
    if problem.kind == "list":
        parts = [part.strip() for part in gold.replace("$", "").split(",")]
        values = [value_of(part) for part in parts]
        if all(value is not None for value in values):
            yield ", ".join(reversed(parts))
            yield rf"\{{{', '.join(parts)}\}}"
            yield ", ".join(map(str, values))
        return
    value = value_of(gold)
    if value is not None:
        yield from spellings_of_value(value)


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
