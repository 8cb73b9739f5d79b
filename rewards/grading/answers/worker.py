"""The process in which formulas are compared: one JSON line in, one JSON line out.

Started as a file, so that it imports neither this project nor the caller's main module. It may
hang, swell or crash: its parent kills it at the deadline, the kernel does so a little later even
when the parent is gone, and its memory is limited.

Two formulas are equal when they have equal values at points that nobody can foresee to be special
(identity testing: J. T. Schwartz, J. ACM 27(4), 1980), computed to many digits and compared by
relative distance. Formulas without variables have one value.

Only points count at which both formulas are real in every step, and each factor under an even root
or in a logarithm is positive: ``\\sqrt{ab}`` is compared where a and b are, so that it equals
``\\sqrt a \\sqrt b``, and ``\\sqrt{x^2}`` at negative x too, so that it is not x. Where too few
points are left, the factors may have any sign, and then complex values count as well. A step that
has a complex argument, since the formula holds i, may give any value.

Formulas with a floor or ceiling are compared at whole numbers, where one of their sides often ends:
of both parities, around powers of 2 and 3. Variables that are whole by custom (n, m, k, i, j) are
never anything else. Formulas with an absolute value or an even root are compared far away, too.

Other than that, variables are known by the order in which they come, so that their names decide
nothing.
"""

import contextlib
import json
import logging
import os
import random
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import mpmath
from mpmath import mp

MEMORY = 4 << 30
"""Bytes of address space."""
GRACE_S = 2.0
"""Seconds after the deadline at which the process ends itself."""
DIGITS = (40, 600)
"""Decimal digits of the values: first few, which tells most formulas apart, then more than an
answer could spell out."""
GUARD = 15
"""Digits that rounding may cost."""
ENOUGH = 3
"""Points at which both formulas must be defined."""
POSITIVE = (6, 40)
"""How many points with positive variables are taken, and how many are tried."""
SIGNED = (2, 8)
"""The same for every other choice of signs."""
FINEST = 6
"""Points at which values are computed to the most digits."""
WHOLE = (
    *range(1, 21),
    *(power + step for power in (27, 32, 64, 81) for step in (-1, 0, 1)),
    *(100, 127, 128, 243, 1000, 1024),
)
"""Whole numbers at which floors and ceilings are compared."""
WHOLE_NAMES = frozenset("nmkij")
FAR = (100, 10_000)
"""Distances at which absolute values and even roots are compared."""
NEAR, WIDE = 4, 12
"""Powers of 3 between which coordinates lie: of the first half of the tries, and of the others."""


class NotRealError(ValueError):
    """A step leaves the real numbers, or rests on two signs that cancel."""


def _power(base: Any, exponent: Any) -> Any:
    if base == 0 and mpmath.re(exponent) <= 0:
        raise ZeroDivisionError
    return mpmath.power(base, exponent)


def _rational_power(base: Any, exponent: Fraction) -> Any:
    """A power or root whose exponent is a literal: the real one where there is a real one."""
    top, bottom = exponent.numerator, exponent.denominator
    if bottom % 2 and bottom > 1 and mpmath.im(base) == 0 and mpmath.re(base) < 0:
        return (-1) ** top * mpmath.power(-base, mp.mpf(top) / bottom)
    return _power(base, mp.mpf(top) / bottom)


def _whole(value: Any, rounded: Callable[[Any], Any]) -> Any:
    """``rounded(value)``, where the rounding of log_2 8 does not make it 2."""
    near = mpmath.nint(value)
    limit = mp.mpf(10) ** (GUARD - mp.dps) * max(1, abs(value))
    return near if abs(value - near) <= limit else rounded(value)


def _undefined(name: str, *arguments: Any) -> Any:
    """The value of a function of which nothing is known: of one that has no property by chance."""
    value = mp.mpf(0)
    for argument in arguments:
        a, b, c = (random.Random(f"{name} {part}").randint(3**20, 3**21) for part in range(3))
        unit, x = mp.mpf(3**20), argument + value / 3
        value = mpmath.sin(a / unit * x + b / unit) + mpmath.cos(x**2 / 7 + c / unit)
    return value


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "sum": lambda *terms: reduce(lambda a, b: a + b, terms),
    "product": lambda *factors: reduce(lambda a, b: a * b, factors),
    "quotient": lambda a, b: a / b,
    "negative": lambda a: -a,
    "power": _power,
    "root": lambda a, degree: _power(a, 1 / degree),
    "log": lambda a, base: mpmath.log(a) / mpmath.log(base),
    "degrees": mpmath.radians,
    "abs": abs,
    "floor": lambda value: _whole(value, mpmath.floor),
    "ceiling": lambda value: _whole(value, mpmath.ceil),
    "factorial": mpmath.factorial,
    "binomial": mpmath.binomial,
    **{name: getattr(mpmath, name) for name in ("sin", "cos", "tan", "cot", "sec", "csc")},
    **{name: getattr(mpmath, name) for name in ("sinh", "cosh", "tanh")},
    **{
        f"arc{name}": getattr(mpmath, f"a{name}")
        for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")
    },
}
Point = Mapping[str, Fraction]
CONSTANTS: Mapping[str, Any] = {"pi": mp.pi, "e": mp.e, "i": mp.j, "oo": mp.inf}


class Values:
    """What formulas are worth where their variables have the values ``at``.

    Args:
        real: raise :class:`NotRealError` where a step leaves the real numbers.
        factors: and where two negative factors cancel out under an even root or in a logarithm.
    """

    def __init__(self, at: Point, *, real: bool = False, factors: bool = False) -> None:
        self.at = at
        self.real = real
        self.factors = factors

    def of(self, formula: list[Any]) -> Any:
        """The value of a formula; raises where it has none."""
        kind, *rest = formula
        if kind == "number":
            top, _, bottom = rest[0].partition("/")
            return mp.mpf(int(top)) / int(bottom or 1)
        if kind == "constant":
            return +CONSTANTS[rest[0]]
        if kind == "symbol":
            return mp.mpf(self.at[rest[0]].numerator) / self.at[rest[0]].denominator
        exponent = _exponent(kind, rest)
        if self.factors and (kind == "log" or (exponent and exponent.denominator % 2 == 0)):
            self.check_factors(rest[0])
        if exponent is not None:
            arguments = [self.of(rest[0])]
            result = _rational_power(arguments[0], exponent)
        else:
            arguments = [self.of(part) for part in rest]
            if kind.startswith("of "):
                result = _undefined(kind, *arguments)
            else:
                result = OPERATIONS[kind](*arguments)
        if self.real and isinstance(result, mp.mpc) and not _any_complex(arguments):
            raise NotRealError
        return result

    def check_factors(self, formula: list[Any]) -> None:
        """Raise where a product is positive by two negative factors of different kinds."""
        powers: dict[str, int] = {}
        inside: dict[str, list[Any]] = {}
        for factor, exponent in _factors(formula, 1):
            key = json.dumps(factor)
            powers[key] = powers.get(key, 0) + exponent
            inside[key] = factor
        odd = [inside[key] for key, exponent in powers.items() if exponent % 2]
        if any(factor[0] == "negative" or _is_negative(factor) for factor in odd):
            # A sign in front says which factors are negative.
            return
        if any(mpmath.re(self.of(factor)) < 0 for factor in odd):
            raise NotRealError


def _is_negative(formula: list[Any]) -> bool:
    return formula[0] == "number" and formula[1].startswith("-")


def _any_complex(values: Iterable[Any]) -> bool:
    return any(isinstance(value, mp.mpc) for value in values)


def _exponent(kind: str, rest: list[Any]) -> Fraction | None:
    """The literal exponent of a power or a root."""
    if kind not in ("power", "root") or rest[1][0] != "number":
        return None
    exponent = Fraction(rest[1][1])
    return exponent if kind == "power" else 1 / exponent


def _factors(formula: list[Any], exponent: int) -> Iterator[tuple[list[Any], int]]:
    """The factors of a product or a quotient with their whole exponents."""
    kind, *rest = formula
    if kind == "product":
        for part in rest:
            yield from _factors(part, exponent)
    elif kind == "quotient":
        yield from _factors(rest[0], exponent)
        yield from _factors(rest[1], -exponent)
    elif kind == "power" and (over := _exponent(kind, rest)) and over.denominator == 1:
        yield from _factors(rest[0], exponent * int(over))
    else:
        yield formula, exponent


def symbols(formula: list[Any]) -> list[str]:
    """The variables of a formula in the order in which they come."""
    if formula[0] == "symbol":
        return [formula[1]]
    inside = (symbols(part) for part in formula[1:] if isinstance(part, list))
    return list(dict.fromkeys(name for names in inside for name in names))


def points(
    formulas: Sequence[list[Any]], names: Sequence[str]
) -> Iterator[tuple[int, list[dict[str, Fraction]]]]:
    """Where formulas in these variables are compared, by the signs of the variables: how many
    points are wanted, and those to try. One empty point for formulas in none.

    All are positive, all are negative, and each of them is the only negative and the only positive
    one, so that no order of the names is another case. Floors, absolute values and even roots are
    compared elsewhere as well.
    """
    if not names:
        yield 1, [{}]
        return
    kinds = {kind for formula in formulas for kind in _kinds(formula)}
    rounds = bool(kinds & {"floor", "ceiling"})
    if not (rounds and WHOLE_NAMES.issuperset(names)):
        for group, signs in enumerate(_signs(len(names))):
            wanted, tries = SIGNED if group else POSITIVE
            yield (
                wanted,
                [
                    {
                        name: sign * _size(f"{group} {number} {index}", number, tries)
                        for index, (name, sign) in enumerate(zip(names, signs, strict=True))
                    }
                    for number in range(tries)
                ],
            )
    if rounds:
        random_ = random.Random("whole")
        rows = [WHOLE, *(random_.sample(WHOLE, len(WHOLE)) for _ in names[1:])]
        tried = [dict(zip(names, map(Fraction, row), strict=True)) for row in zip(*rows)]
        yield len(tried), tried
    if kinds & {"abs", "even root"}:
        for sign in (1, -1):
            random_ = random.Random(f"far {sign}")
            tried = [
                {name: sign * Fraction(random_.randint(*FAR)) for name in names} for _ in range(2)
            ]
            yield len(tried), tried


def _signs(count: int) -> Iterable[tuple[int, ...]]:
    """Signs of that many variables: all positive, all negative, and one unlike the others."""
    single = [tuple(-1 if index == one else 1 for index in range(count)) for one in range(count)]
    turned = [tuple(-sign for sign in signs) for signs in single]
    return dict.fromkeys([(1,) * count, (-1,) * count, *single, *turned])


def _kinds(formula: list[Any]) -> Iterator[str]:
    kind, *rest = formula
    exponent = _exponent(kind, rest)
    yield "even root" if exponent is not None and exponent.denominator % 2 == 0 else kind
    for part in rest:
        if isinstance(part, list):
            yield from _kinds(part)


def _size(seed: str, number: int, tries: int) -> Fraction:
    """A positive coordinate of the point ``number``."""
    generator = random.Random(seed)
    power = generator.randint(1, NEAR if number < tries // 2 else WIDE)
    size = Fraction(generator.randint(3**20, 3**21), 3**21)
    return size * 3**power if generator.random() < 0.5 else size / 3**power


def _close(left: Any, right: Any) -> bool:
    if left == right or not (mpmath.isfinite(left) and mpmath.isfinite(right)):
        return bool(left == right)
    distance = abs(left - right)
    return bool(distance <= mp.mpf(10) ** (GUARD - mp.dps) * max(abs(left), abs(right)))


Comparison = Callable[[Values], Any]


def _wherever(
    defined: Comparison, names: Sequence[str], formulas: Sequence[list[Any]]
) -> list[Any]:
    """The values where ``defined`` has one, real if possible; stops at the first False."""
    values: list[Any] = []
    groups = [*points(formulas, names)]
    for real, factors in ((True, True), (True, False), (False, False)):
        values = []
        for wanted, tried in groups:
            before = len(values)
            for point in tried:
                if len(values) == before + wanted or _is_enough(values):
                    break
                with contextlib.suppress(ArithmeticError, ValueError, TypeError):
                    values.append(defined(Values(point, real=real, factors=factors)))
        if len(values) >= (ENOUGH if names else 1):
            break
    return values


def _is_enough(values: list[Any]) -> bool:
    return False in values[-1:] or (len(values) >= FINEST and mp.dps > DIGITS[0])


def _same_formula(gold: list[Any], answer: list[Any], names: Sequence[str]) -> bool:
    def close(values: Values) -> bool:
        return _close(values.of(gold), values.of(answer))

    same = _wherever(close, names, (gold, answer))
    return len(same) >= (ENOUGH if names else 1) and all(same)


def _same_equation(gold: list[Any], answer: list[Any], names: Sequence[str]) -> bool:
    """Whether the differences of the sides have one ratio at every point."""

    def ratio(values: Values) -> Any:
        left, right = (
            values.of(left_side) - values.of(right_side)
            for _, left_side, right_side in (gold, answer)
        )
        return left / right

    ratios = _wherever(ratio, names, (gold, answer))
    return len(ratios) >= ENOUGH and all(r != 0 and _close(ratios[0], r) for r in ratios)


def compare(gold: list[Any], answer: list[Any]) -> str:
    """``equal`` or ``different``, for two formulas or two equations."""
    names = list(dict.fromkeys(symbols(gold) + symbols(answer)))
    same = _same_equation if gold[0] == "equation" else _same_formula
    for mp.dps in DIGITS:
        if not same(gold, answer, names):
            return "different"
    return "equal"


def _limit_memory() -> None:
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def main(deadline_s: float) -> None:
    """Answer questions until standard input ends."""
    # The protocol owns the real standard output; whatever a library prints goes nowhere.
    replies = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    logging.disable(logging.CRITICAL)
    _limit_memory()
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        gold, answer = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, deadline_s + GRACE_S)
        try:
            outcome = compare(gold, answer)
        except Exception:
            outcome = "error"
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(outcome, file=replies, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
