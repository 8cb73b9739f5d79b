"""Generated arithmetic with constants that a model must remember.

``7 + β4 - 3 =`` is evaluated from left to right modulo 10. Each name (a Greek letter and a digit)
has a fixed digit as its value, which the question does not state. ``?`` is a digit that cannot be
known. So some questions can be known and others only guessed, and a model can learn which.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from coterie.datatypes import Problem, Validated, derive_seed
from coterie.datatypes.validation import Share
from coterie.problems.chains import OPERATIONS, check_lengths, question_of
from coterie.problems.source import Generated

GREEK = "αβγδεζηθικλμνξοπρστυφχψω"
HIDDEN = "?"


@dataclass(frozen=True)
class RecallSettings(Validated):
    """The distribution of problems, and the seed of their stream."""

    letters: Annotated[int, Interval(ge=1, le=len(GREEK))] = 12
    """Number of Greek letters; each has ten names."""
    named: Share = 0.3
    """Chance that an operand is a name."""
    unknown: Share = 0.1
    """Share of problems with one hidden operand."""
    min_length: int = 2
    """Fewest operations."""
    max_length: int = 4
    """Most operations."""
    seed: Annotated[int, Interval(gt=-(2**63), lt=2**63)] = 0

    def check(self) -> None:
        check_lengths("recall", self.min_length, self.max_length)


class RecallSource(Generated):
    """An endless generator; a problem's id is its question."""

    name = "recall"
    settings: RecallSettings

    def __init__(self, settings: RecallSettings | None = None) -> None:
        super().__init__(settings or RecallSettings())

    def __getitem__(self, index: int) -> Problem:
        return recall_problem(*draw_recall(self.settings, self.stream(index).random))


def names(letters: int = len(GREEK)) -> list[str]:
    """Return ``α0``, ``α1``, ... of the first ``letters`` letters."""
    return [f"{letter}{digit}" for letter in GREEK[:letters] for digit in range(10)]


def value_of(name: str) -> int:
    """Return the digit of a name, which is the same in every problem."""
    return derive_seed("recall", "constant", name) % 10


def operand_values(operands: Sequence[str], signs: str) -> tuple[int, ...]:
    """Return the values of operands; that of ``?`` depends on the question."""
    hidden = derive_seed("recall", "hidden", question_of(operands, signs)) % 10
    return tuple(
        hidden if operand == HIDDEN else int(operand) if operand.isdigit() else value_of(operand)
        for operand in operands
    )


def recall_problem(operands: Sequence[str], signs: str) -> Problem:
    """Return the problem with these operands (digits, names or ``?``) and a sign between each
    two."""
    running, *others = operand_values(operands, signs)
    for sign, value in zip(signs, others):
        running = OPERATIONS[sign](running, value)
    question = question_of(operands, signs)
    return Problem(
        id=question,
        question=question,
        gold=str(running),
        kind="number",
        meta={
            "names": [operand for operand in operands if operand[0] in GREEK],
            "solvable": HIDDEN not in operands,
            "length": len(signs),
        },
    )


def draw_recall(
    settings: RecallSettings, uniform: Callable[[], float]
) -> tuple[tuple[str, ...], str]:
    """Draw operands and signs of a problem; ``uniform`` returns numbers in [0, 1)."""
    spread = settings.max_length - settings.min_length + 1
    length = settings.min_length + int(uniform() * spread)
    signs = "".join("+-"[int(uniform() * 2)] for _ in range(length))
    operands = [_operand(settings, uniform) for _ in range(length + 1)]
    if uniform() < settings.unknown:
        operands[int(uniform() * len(operands))] = HIDDEN
    return tuple(operands), signs


def _operand(settings: RecallSettings, uniform: Callable[[], float]) -> str:
    digit = str(int(uniform() * 10))
    if uniform() >= settings.named:
        return digit
    return GREEK[int(uniform() * settings.letters)] + digit
