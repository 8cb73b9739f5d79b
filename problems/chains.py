"""Generated arithmetic: chains of operations modulo 10, evaluated from left to right.

Family P uses ``+`` and ``-``, family T two invented operations ``@`` and ``#``, and family X both
kinds. Chains suit models of 150k parameters. There are about 10^9 chains with five operations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from coterie.datatypes import Problem, UserError, Validated
from coterie.problems.source import Generated

Family = Literal["P", "T", "X"]
Answer = Literal["last", "all"]

OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: (a + b) % 10,
    "-": lambda a, b: (a - b) % 10,
    "@": lambda a, b: (2 * a + 3 * b + 1) % 10,
    "#": lambda a, b: (3 * b - a) % 10,
}
FAMILIES: Mapping[Family, str] = {"P": "+-", "T": "@#", "X": "+-@#"}
ALL_VALUES = "All values of"
"""Prefix of a question whose answer is every value."""
_LONGEST = 64


@dataclass(frozen=True)
class Chain:
    """An expression without precedence: ``Chain((7, 8, 3), "+-")`` is (7 + 8) - 3."""

    digits: tuple[int, ...]
    operators: str
    """A sign between each two digits."""

    @property
    def question(self) -> str:
        """``7 + 8 - 3 =``"""
        return question_of(self.digits, self.operators)

    @property
    def working(self) -> str:
        """``7 + 8 = 5 - 3 = 2``"""
        parts = zip(self.operators, self.digits[1:], self.values)
        steps = (f" {sign} {digit} = {value}" for sign, digit, value in parts)
        return f"{self.digits[0]}{''.join(steps)}"

    @property
    def values(self) -> tuple[int, ...]:
        """The value after each operation; the last is the answer."""
        values: list[int] = []
        running = self.digits[0]
        for sign, digit in zip(self.operators, self.digits[1:]):
            running = OPERATIONS[sign](running, digit)
            values.append(running)
        return tuple(values)


@dataclass(frozen=True)
class ChainSettings(Validated):
    """The distribution of chains, and the seed of their stream."""

    mix: Annotated[tuple[float, float, float], Ge(0)] = (0.25, 0.25, 0.5)
    """Shares of the families P, T and X; they need not sum to one."""
    min_length: int = 3
    """Fewest operations."""
    max_length: int = 5
    """Most operations."""
    answer: Answer = "last"
    """last: the last value is the answer, a digit. all: every value, one digit each, so that an
    answer is hardly ever right by chance."""
    seed: Annotated[int, Interval(gt=-(2**63), lt=2**63)] = 0

    def check(self) -> None:
        if not 0 < sum(self.mix) < float("inf"):
            raise UserError(f"chains: mix {self.mix} must be shares of P, T and X, not all 0")
        check_lengths("chains", self.min_length, self.max_length)
        if self.mix[2] > 0 and self.min_length < 2:
            raise UserError("chains: family X needs min_length of 2 at least, or a share of 0")


def question_of(operands: Sequence[int | str], signs: str) -> str:
    """Return the question, such as ``7 + β4 - 3 =``."""
    steps = (f" {sign} {operand}" for sign, operand in zip(signs, operands[1:]))
    return f"{operands[0]}{''.join(steps)} ="


def check_lengths(source: str, least: int, most: int) -> None:
    """Check the numbers of operations of a generator.

    Raises:
        UserError: they are out of range.
    """
    if not 1 <= least <= most <= _LONGEST:
        raise UserError(
            f"{source}: lengths {least} to {most} must satisfy "
            f"1 <= min_length <= max_length <= {_LONGEST}"
        )


class ChainSource(Generated):
    """An endless generator of chains. A problem's id is its question, so that common problems of
    two sources have the same id."""

    name = "chains"
    settings: ChainSettings

    def __init__(self, settings: ChainSettings | None = None) -> None:
        super().__init__(settings or ChainSettings())

    def __getitem__(self, index: int) -> Problem:
        rng = self.stream(index)
        family, chain = draw_chain(self.settings, rng.random)
        every = self.settings.answer == "all"
        question = f"{ALL_VALUES} {chain.question}" if every else chain.question
        gold = "".join(map(str, chain.values if every else chain.values[-1:]))
        return Problem(
            id=question,
            question=question,
            gold=gold,
            kind="number",
            meta={
                "family": family,
                "length": len(chain.operators),
                "solution": f"{chain.working}\nAnswer: {gold}",
            },
        )


def draw_chain(settings: ChainSettings, uniform: Callable[[], float]) -> tuple[Family, Chain]:
    """Draw a family by its share, and length, signs and digits uniformly; ``uniform`` returns
    numbers in [0, 1)."""
    mark = uniform() * sum(settings.mix)
    family: Family = "P" if mark < settings.mix[0] else "T"
    if mark >= settings.mix[0] + settings.mix[1]:
        family = "X"
    spread = settings.max_length - settings.min_length + 1
    length = settings.min_length + int(uniform() * spread)
    signs = FAMILIES[family]
    operators = "".join(signs[int(uniform() * len(signs))] for _ in range(length))
    # A mixed chain must have both kinds of signs.
    while family == "X" and (set(operators) <= set("+-") or set(operators) <= set("@#")):
        operators = "".join(signs[int(uniform() * len(signs))] for _ in range(length))
    digits = tuple(int(uniform() * 10) for _ in range(length + 1))
    return family, Chain(digits, operators)
