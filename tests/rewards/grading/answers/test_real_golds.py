r"""Gold answers of real problem sets: each equals itself however it is written, and no other.

Reads the folder named by COTERIE_DATA; COTERIE_DATA_ITEMS says how many items of a set are used
(default 150; ``all`` for every one). No text of a benchmark stands here, only indices.
"""

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from coterie.datatypes import AnswerKind, Problem
from coterie.rewards.grading.answers import Checker

pytestmark = pytest.mark.data

Item = tuple[int, Problem]


def _folder() -> Path:
    folder = os.environ.get("COTERIE_DATA")
    if not folder:
        pytest.skip("COTERIE_DATA does not name a folder")
    return Path(folder)


def _rows(name: str) -> list[dict]:
    path = _folder() / name
    if not path.exists():
        pytest.skip(f"{name} is not in COTERIE_DATA")
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.loads(text)
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _number(value: object) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return str(value)


def _asdiv(row: dict) -> tuple[str, AnswerKind]:
    gold = re.sub(r"\s*\([^()]*\)\s*$", "", row["answer"]) or row["answer"]
    return gold, "number" if value_of(gold) is not None else "text"


def _olympiad(row: dict) -> tuple[str, AnswerKind]:
    return row["final_answer"][0], "list" if row["is_multiple_answer"] else "math"


SETS: dict[str, Callable[[dict], tuple[str, AnswerKind]]] = {
    "gsm8k_train.jsonl": lambda row: (row["answer"].rpartition("####")[2].strip(), "number"),
    "gsm8k_test.jsonl": lambda row: (row["answer"].rpartition("####")[2].strip(), "number"),
    "svamp.jsonl": lambda row: (_number(row["Answer"]), "number"),
    "asdiv.jsonl": _asdiv,
    "aime24.jsonl": lambda row: (_number(row["answer"]), "number"),
    "aime25.json": lambda row: (_number(row["answer"]), "number"),
    "aimo25.json": lambda row: (_number(row["answer"]), "number"),
    "amc23.jsonl": lambda row: (_number(row["answer"]), "number"),
    "math500.jsonl": lambda row: (row["answer"], "math"),
    "olympiadbench.jsonl": _olympiad,
    "mmlu_stem.jsonl": lambda row: ("ABCD"[row["answer"]], "choice"),
}


def items(name: str) -> list[Item]:
    rows = _rows(name)
    wanted = os.environ.get("COTERIE_DATA_ITEMS", "150")
    count = len(rows) if wanted == "all" else min(len(rows), int(wanted))
    chosen = sorted(random.Random(20).sample(range(len(rows)), count))
    indexed: list[Item] = []
    for index in chosen:
        gold, kind = SETS[name](rows[index])
        choices = tuple(rows[index]["choices"]) if kind == "choice" else ()
        problem = Problem(id=f"{name}:{index}", question="", gold=gold, kind=kind, choices=choices)
        indexed.append((index, problem))
    return indexed


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


@pytest.fixture(scope="module", params=[True, False], ids=["shortcuts", "algebra"])
def checker(request: pytest.FixtureRequest) -> Iterator[Checker]:
    checker = Checker(shortcuts=request.param, workers=1, deadline_s=20.0)
    yield checker
    checker.close()


@pytest.mark.parametrize("name", SETS)
def test_each_gold_equals_itself_in_every_spelling(name: str, checker: Checker) -> None:
    requests = [
        (wrapper.replace("%s", spelling), problem)
        for _, problem in items(name)
        for spelling in dict.fromkeys(spellings(problem))
        for wrapper in WRAPPERS
    ]
    verdicts = checker.check_many(requests)
    wrong = [
        (problem.id, response[-120:], verdict)
        for (response, problem), verdict in zip(requests, verdicts, strict=True)
        if not verdict.correct
    ]
    assert len(requests) >= 4 * len(items(name))
    assert wrong == []
    assert checker.pool.timeouts == 0


TRULY_EQUAL: dict[str, frozenset[tuple[int, int]]] = {}
"""Pairs (gold, other) of indices whose equality ``alike`` does not see."""


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
    chosen = items(name)
    pairs = [
        (problem, other_problem)
        for seed in (1, 2)
        for problem, other_problem in zip(
            chosen, random.Random(seed).sample(chosen, len(chosen)), strict=True
        )
    ]
    requests = [
        (WRAPPERS[0].replace("%s", other_problem.gold), problem)
        for (_, problem), (_, other_problem) in pairs
    ]
    verdicts = checker.check_many(requests)
    differing = 0
    wrong = []
    for ((i, problem), (j, other_problem)), verdict in zip(pairs, verdicts, strict=True):
        equal = alike(problem, other_problem) or (i, j) in TRULY_EQUAL.get(name, ())
        differing += not equal
        if verdict.correct != equal:
            wrong.append((i, j, problem.gold, other_problem.gold, verdict))
    assert differing > len(pairs) / 2
    assert wrong == []
