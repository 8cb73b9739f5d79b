"""Answers that are wrong, but look like answers."""

import random
import re
from decimal import Context, Decimal

from vocabulary import Problem

_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{1,40})?", re.ASCII)
_RATIO = re.compile(r"([+-]?\d{1,40})/(\d{1,40})", re.ASCII)
# The default context rounds to 28 digits.
_EXACT = Context(prec=100)
_STEPS = (-10, -2, -1, 1, 2, 10)


def wrong_answer(problem: Problem, rng: random.Random) -> str:
    """An answer to ``problem`` that differs from its gold answer in value.

    Another letter for choices; numbers and ratios move by a small step; in a list one entry is
    changed; a formula has 1 added; other text is negated; a program is left out.
    """
    gold = problem.gold.strip()
    if problem.kind == "choice":
        letters = [chr(ord("A") + place) for place in range(max(2, len(problem.choices)))]
        return rng.choice([letter for letter in letters if letter != gold.strip("()").upper()])
    if problem.kind in ("text", "qa", "judged"):
        return f"not {gold}"
    if problem.kind == "code":
        return "```python\n# " + str(problem.meta.get("entry_point", "")) + "\n```"
    if problem.kind == "list" and "," in gold:
        first, rest = gold.split(",", 1)
        # Beyond every other entry, so that the list cannot equal a reordering of the gold one.
        return f"{_beyond(gold)},{rest}" if _NUMBER.fullmatch(first.strip()) else f"{gold}, 0, 0"
    return _moved(gold, rng)


def _moved(gold: str, rng: random.Random) -> str:
    step = rng.choice(_STEPS)
    plain = gold.replace(",", "")
    if _NUMBER.fullmatch(plain):
        return format(_EXACT.add(Decimal(plain), Decimal(step)), "f")
    ratio = _RATIO.fullmatch(plain)
    if ratio and int(ratio[2]):
        top, bottom = int(ratio[1]), int(ratio[2])
        return f"{top + step * bottom}/{bottom}"
    return f"{gold}+1" if gold else "0"


def _beyond(gold: str) -> str:
    """A number larger than every number in ``gold``."""
    digits = max((len(run) for run in re.findall(r"\d+", gold)), default=0)
    return "1" + "0" * min(digits, 60)
