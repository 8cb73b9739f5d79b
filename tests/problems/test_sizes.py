"""How many problems an evaluation asks, by the papers' own counts."""

import pytest

from coterie.problems.sizes import measured


@pytest.mark.parametrize(
    ("sets", "held_out", "problems"),
    [
        # CoRe, section 5.1: the official test part, and a fifth of what is published undivided.
        (["gsm8k"], None, 1319),
        (["math-8020"], None, 2500),
        (["aime-1983-2025"], None, 193),
        (["gpqa-main"], None, 90),
        # COREA, section 4.1: GPQA whole, 500 held out of DeepMath, CommonsenseQA's validation.
        (["gpqa-main?split=train"], None, 448),
        (["deepmath"], 500, 500),
        (["commonsenseqa", "math500"], None, 1221 + 500),
        # A generator gives what is asked for, by default 512.
        (["chains?mix=1,0,0"], None, 512),
        (["recall"], 64, 64),
        # The length of a file, or of a set that is not listed, is known once it is read.
        (["gsm8k", "hub:owner/name"], None, None),
        (["problems.jsonl"], None, None),
        (["problems.jsonl"], 100, 100),
    ],
)
def test_problems_that_measure(sets: list[str], held_out: int | None, problems: int | None) -> None:
    assert measured(sets, held_out) == problems
