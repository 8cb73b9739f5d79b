"""The process in which formulas are compared: one JSON line in, one JSON line out.

Started as a file, so that it imports neither this project nor the caller's main module. It may
hang, swell or crash: its parent kills it at the deadline, the kernel does so a little later even
when the parent is gone, and its memory is limited.

Two formulas are equal when they have equal values at points that nobody can foresee to be special
(identity testing: J. T. Schwartz, J. ACM 27(4), 1980), computed to many digits and compared by
relative distance. Formulas without variables have one value.
"""

import contextlib
import json
import logging
import os
import random
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import reduce
from itertools import cycle
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
SIGNS = ((1, 1), (1, 1), (1, 1), (-1, 1), (-1, -1))
"""Signs of the variables at each point, in turn: some identities hold for positive numbers only."""
ENOUGH = 3
"""Points at which both formulas must be defined."""


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
    "floor": mpmath.floor,
    "ceiling": mpmath.ceil,
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


def value(formula: list[Any], at: Point) -> Any:
    """What a formula is worth where its variables have the values ``at``."""
    kind, *rest = formula
    if kind == "number":
        top, _, bottom = rest[0].partition("/")
        return mp.mpf(int(top)) / int(bottom or 1)
    if kind == "constant":
        return +CONSTANTS[rest[0]]
    if kind == "symbol":
        return mp.mpf(at[rest[0]].numerator) / at[rest[0]].denominator
    if kind in ("power", "root") and rest[1][0] == "number":
        exponent = Fraction(rest[1][1])
        return _rational_power(value(rest[0], at), exponent if kind == "power" else 1 / exponent)
    return OPERATIONS[kind](*(value(part, at) for part in rest))


def symbols(formula: list[Any]) -> set[str]:
    """The variables of a formula."""
    if formula[0] == "symbol":
        return {formula[1]}
    return set().union(*(symbols(part) for part in formula[1:] if isinstance(part, list)))


def points(names: Iterable[str]) -> list[dict[str, Fraction]]:
    """Where formulas in these variables are compared; one empty point for formulas in none."""
    chosen: list[dict[str, Fraction]] = []
    for number, signs in enumerate(SIGNS):
        size = {name: random.Random(f"{name}{number}").randint(3**20, 3**23) for name in names}
        at = {name: Fraction(sign * size[name], 3**21) for name, sign in zip(names, cycle(signs))}
        chosen.append(at)
    return chosen if names else [{}]


def _close(left: Any, right: Any) -> bool:
    if left == right or not (mpmath.isfinite(left) and mpmath.isfinite(right)):
        return bool(left == right)
    distance = abs(left - right)
    return bool(distance <= mp.mpf(10) ** (GUARD - mp.dps) * max(abs(left), abs(right)))


def _wherever(defined: Callable[[Point], Any], names: list[str]) -> list[Any]:
    """The values at every point that has one."""
    values: list[Any] = []
    for point in points(names):
        with contextlib.suppress(ArithmeticError, ValueError, TypeError):
            values.append(defined(point))
    return values


def _same_formula(gold: list[Any], answer: list[Any], names: list[str]) -> bool:
    same = _wherever(lambda at: _close(value(gold, at), value(answer, at)), names)
    return len(same) >= (ENOUGH if names else 1) and all(same)


def _same_equation(gold: list[Any], answer: list[Any], names: list[str]) -> bool:
    """Whether both are the same up to a number by which both sides are multiplied: then the
    differences of the sides are in one ratio everywhere."""

    def ratio(at: Point) -> Any:
        left, right = (
            value(left_side, at) - value(right_side, at)
            for _, left_side, right_side in (gold, answer)
        )
        return left / right

    ratios = _wherever(ratio, names)
    return len(ratios) >= ENOUGH and all(r != 0 and _close(ratios[0], r) for r in ratios)


def compare(gold: list[Any], answer: list[Any]) -> str:
    """``equal`` or ``different``, for two formulas or two equations."""
    names = sorted(symbols(gold) | symbols(answer))
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
