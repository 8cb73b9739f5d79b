r"""Whether a formula or an equation has been worked into the form that its question asks for.

"Factor", "expand", "simplify", "rationalize the denominator" and "in vertex form" ask for a form.
The gold answer is its measure: an answer that equals gold and leaves more of that work to do is
none. ``2x(x^2-9)`` does not factor ``2x^3-18x`` where gold is ``2x(x-3)(x+3)``.

The question says, and an answer is wrong that has:

- factor, as a product: fewer factors with letters than gold;
- prime factorization: fewer numbers, ``4 \cdot 21`` for ``2^2 \cdot 3 \cdot 7``;
- expand, multiply out, distribute, remove the brackets: more brackets or like terms than gold;
- simplify, combine like terms, reduce: more like terms, common factors, brackets in sums or roots
  such as ``\sqrt{20}`` than gold, or a division by letters where gold has none; where gold has
  letters also more powers of products and functions of numbers (``5x\ln e``);
- partial fractions: fewer terms than gold; as a single fraction: more;
- rationalize: a root below a fraction bar where gold has none;
- standard, general, vertex, factored, point-slope or slope-intercept form: other squared brackets
  or more steps to take than gold; in an equation also letters on both sides where gold has them on
  one, or brackets where gold has none.
"""

import re
from collections.abc import Callable, Iterator

from coterie.rewards.grading.answers.canonical import trivial_steps
from coterie.rewards.grading.answers.caps import MAX_QUESTION
from coterie.rewards.grading.answers.formula import FUNCTIONS, Formula, parts

_FACTOR = re.compile(
    r"\bfactor(?:i[sz]e|ed)\b|\bas\s+an?\s+product\b"
    r"|(?<!\ba )(?<!the )(?<!what )(?<!common )(?<!scale )(?<!one )(?<!same )\bfactor\b",
    re.IGNORECASE,
)
_PRIMES = re.compile(r"\bprime\s+factors?\b|\bprime\s+factori[sz]ation\b", re.IGNORECASE)
_EXPAND = re.compile(
    r"\b(?:expand(?:ed)?|multiply|distribut(?:e|ive)"
    r"|(?:remove|clear|eliminate) (?:the |all )?(?:brackets|parentheses))\b",
    re.IGNORECASE,
)
_SIMPLIFY = re.compile(
    r"\b(?:simplify|simplest|as simply as possible|(?:combine|collect|group) (?:the )?like terms"
    r"|reduce)\b",
    re.IGNORECASE,
)
_RATIONALIZE = re.compile(r"\brationali[sz]e\b|\brational\s+denominator\b", re.IGNORECASE)
_PARTIAL = re.compile(r"\bpartial\s+fractions?\b", re.IGNORECASE)
_SINGLE = re.compile(r"\bas\s+an?\s+single\b", re.IGNORECASE)
_NAMED_FORM = re.compile(
    r"\b(?:slope[\s-]{1,3}intercept|point[\s-]{1,3}slope|cent(?:er|re)[\s-]{1,3}radius|vertex"
    r"|standard|general)\s+form\b"
    r"|(?<!written )(?<!expressed )\b(?:in|into)\s+the\s+form\b",
    re.IGNORECASE,
)


def falls_short(gold: Formula, answer: Formula, question: str) -> bool:
    """Whether a formula leaves more of the question's work to do than the gold answer does.

    >>> from coterie.rewards.grading.answers.grammar import read
    >>> falls_short(read("(x-1)(x+1)"), read("x^2-1"), "Factor $x^2-1$.")
    True
    """
    question = question[:MAX_QUESTION]

    def more(*counts: Callable[[Formula], int]) -> bool:
        return any(count(answer) > count(gold) for count in counts)

    if _FACTOR.search(question) and _factors(answer) < _factors(gold):
        return True
    if _PRIMES.search(question) and _prime_factors(answer) < _prime_factors(gold):
        return True
    if _EXPAND.search(question) and more(
        trivial_steps, _open_powers, lambda formula: len(_brackets(formula))
    ):
        return True
    if _SIMPLIFY.search(question) and (
        more(trivial_steps, _brackets_in_sums, _open_roots)
        or _divides_anew(gold, answer, _has_letters)
        or (_has_letters(gold) and more(_open_powers, _open_numbers))
    ):
        return True
    if _PARTIAL.search(question) and _terms(answer) < _terms(gold):
        return True
    if _SINGLE.search(question) and more(_terms):
        return True
    if _RATIONALIZE.search(question) and (
        more(_roots_of_fractions) or _divides_anew(gold, answer, _has_root)
    ):
        return True
    if not names_form(question):
        return False
    if _squares(gold) != _squares(answer) or more(trivial_steps):
        return True
    return not _squares(gold) and bool(_brackets(gold)) != bool(_brackets(answer))


def names_form(question: str) -> bool:
    """Whether a question asks for "vertex form", "standard form" or "the form ..."."""
    return _NAMED_FORM.search(question[:MAX_QUESTION]) is not None


def arranged_otherwise(gold: Formula, answer: Formula) -> bool:
    """Whether two equations differ in form: letters on one side or on both, squares of brackets,
    and brackets at all where none is squared."""
    (gold_left, gold_right), (left, right) = gold[1:], answer[1:]
    if (_has_letters(gold_left) and _has_letters(gold_right)) != (
        _has_letters(left) and _has_letters(right)
    ):
        return True
    squares = sorted(_squares(gold_left) + _squares(gold_right))
    if squares or _squares(left) + _squares(right):
        return squares != sorted(_squares(left) + _squares(right))
    return any(map(_brackets, (gold_left, gold_right))) != any(map(_brackets, (left, right)))


def _has_letters(formula: Formula) -> bool:
    return any(part[0] == "symbol" for part in parts(formula))


def _has_root(formula: Formula) -> bool:
    fractional = (part[0] == "power" and _denominator(part[2]) > 1 for part in parts(formula))
    return any(fractional) or any(part[0] == "root" for part in parts(formula))


def _denominator(exponent: Formula) -> int:
    return exponent[1].denominator if exponent[0] == "number" else 1


def _unsigned(formula: Formula) -> Formula:
    return formula[1] if formula[0] == "negative" else formula


def _factors(formula: Formula) -> int:
    """Factors that hold a letter, a square as two."""
    return _factors_with(formula, _has_letters)


def _prime_factors(formula: Formula) -> int:
    """Factors that are numbers, but 1, a square as two."""
    return _factors_with(formula, lambda part: part[0] == "number" and part[1] != 1)


def same_factorization(gold: Formula, answer: Formula, question: str) -> bool:
    """Whether prime factors are asked for, and both have the same: ``2*3*3`` and ``2*3^2``."""
    if _PRIMES.search(question[:MAX_QUESTION]) is None:
        return False
    factors = _numbers(gold)
    return factors is not None and factors == _numbers(answer)


def _numbers(formula: Formula) -> list[Formula] | None:
    """The numbers of a product of numbers and of their powers, in order; None for another one."""
    kind, *inside = formula
    if kind == "number":
        return [formula[:2]]
    if kind == "power" and inside[0][0] == inside[1][0] == "number" and 0 < inside[1][1] <= 64:
        return [inside[0][:2]] * int(inside[1][1])
    if kind != "product":
        return None
    factors: list[Formula] = []
    for part in inside:
        numbers = _numbers(part)
        if numbers is None:
            return None
        factors += numbers
    return sorted(factors)


def _factors_with(formula: Formula, counts: Callable[[Formula], bool]) -> int:
    kind, *inside = _unsigned(formula)
    if kind == "product":
        return sum(_factors_with(part, counts) for part in inside)
    if kind == "quotient":
        return _factors_with(inside[0], counts)
    if kind == "power" and inside[1][0] == "number" and 0 < inside[1][1] <= 64:
        return int(inside[1][1]) * _factors_with(inside[0], counts)
    return int(counts(formula))


def _is_sum(formula: Formula) -> bool:
    return _unsigned(formula)[0] == "sum" and _has_letters(formula)


def _brackets(formula: Formula) -> list[int]:
    """The exponents of sums with letters that are raised (to whole numbers) or multiplied."""
    return [exponent for part in parts(formula) for exponent in _brackets_of(part)]


def _brackets_of(formula: Formula) -> Iterator[int]:
    kind, *inside = formula
    if kind == "product":
        yield from (1 for part in inside if _is_sum(part))
    elif kind == "power" and _is_sum(inside[0]) and inside[1][0] == "number":
        exponent = inside[1][1]
        if exponent > 1 and exponent.denominator == 1:
            yield int(exponent)


def _squares(formula: Formula) -> list[int]:
    return sorted(exponent for exponent in _brackets(formula) if exponent > 1)


def _brackets_in_sums(formula: Formula) -> int:
    """Terms that are a number or a formula times a bracket: ``3+2(x-1)``."""
    sums = (part[1:] for part in parts(formula) if part[0] == "sum")
    return sum(any(_brackets_of(_unsigned(term))) for terms in sums for term in terms)


def _terms(formula: Formula) -> int:
    formula = _unsigned(formula)
    return len(formula) - 1 if formula[0] == "sum" else 1


def _open_powers(formula: Formula) -> int:
    """Whole powers of products with a number or a power in them, and powers of powers."""
    return sum(
        part[0] == "power"
        and part[2][0] == "number"
        and part[2][1].denominator == 1
        and _has_letters(part[1])
        and not {"number", "power"}.isdisjoint(_kinds_of_factors(part[1]))
        for part in parts(formula)
    )


def _kinds_of_factors(formula: Formula) -> list[str]:
    formula = _unsigned(formula)
    return [part[0] for part in (formula[1:] if formula[0] == "product" else [formula])]


def _open_numbers(formula: Formula) -> int:
    """Functions, roots and powers of numbers: ``\\ln e`` in ``5x\\ln e``."""
    kinds = FUNCTIONS | {"root", "power", "factorial", "binomial"}
    return sum(part[0] in kinds and not _has_letters(part) for part in parts(formula))


def _open_roots(formula: Formula) -> int:
    """Roots of whole numbers out of which a factor may be taken: ``\\sqrt{20}``."""
    return sum(
        _is_whole(part[1]) and _is_whole(part[2]) and _has_factor(int(part[1][1]), int(part[2][1]))
        for part in parts(formula)
        if part[0] == "root"
    )


def _roots_of_fractions(formula: Formula) -> int:
    """``\\sqrt{7/2}``, which divides by a root."""
    return sum(
        part[1][0] == "quotient" or (part[1][0] == "number" and part[1][1].denominator > 1)
        for part in parts(formula)
        if part[0] == "root"
    )


def _is_whole(formula: Formula) -> bool:
    return formula[0] == "number" and formula[1].denominator == 1


def _has_factor(number: int, power: int) -> bool:
    """Whether a power of 2, 3, ... divides the number; false above 10^6."""
    if not (1 < number <= 10**6 and 1 < power <= 20):
        return False
    return any(number % base**power == 0 for base in range(2, int(number ** (1 / power)) + 2))


def _divides_anew(gold: Formula, answer: Formula, below: Callable[[Formula], bool]) -> bool:
    """Whether the answer divides by what ``below`` says, and the gold answer does not."""
    return _divides(answer, below) and not _divides(gold, below)


def _divides(formula: Formula, below: Callable[[Formula], bool]) -> bool:
    for part in parts(formula):
        if part[0] == "quotient" and _is_plain(part[2]) and below(part[2]):
            return True
        if part[0] != "power" or part[2][0] != "number" or part[2][1] >= 0:
            continue
        if _is_plain(part[1]) and (below(part[1]) or below(part)):
            return True
    return False


def _is_plain(formula: Formula) -> bool:
    """Whether no function stands in it: ``1/\\cos x`` has a name of its own."""
    return FUNCTIONS.isdisjoint(part[0] for part in parts(formula))
