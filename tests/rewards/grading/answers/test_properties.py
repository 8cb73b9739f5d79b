"""What holds for every answer: a value in any form equals itself, another value never does, and
nothing may stand before or after it."""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from coterie.datatypes import AnswerKind, Problem
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.answers.units import split_unit
from tests.rewards.grading.answers.spellings import fraction_forms, integer_forms

INTEGERS = st.integers(-(10**12), 10**12)
# A fraction that comes out whole is a division left to do.
FRACTIONS = st.fractions(min_value=-1000, max_value=1000, max_denominator=999).filter(
    lambda value: value.denominator > 1
)


def pays(checker: Checker, answer: str, gold: str, kind: AnswerKind = "math") -> bool:
    return checker.check(rf"So \boxed{{{answer}}}.", Problem("p", "", gold, kind)).correct


@given(INTEGERS, st.sampled_from(["number", "math"]))
@settings(deadline=None)
def test_an_integer_equals_itself_in_every_form(
    checker: Checker, value: int, kind: AnswerKind
) -> None:
    for form in integer_forms(value):
        assert pays(checker, form, str(value), kind), form


@given(FRACTIONS, st.data())
@settings(deadline=None)
def test_a_fraction_equals_itself_in_every_form(
    checker: Checker, value: Fraction, data: st.DataObject
) -> None:
    forms = fraction_forms(value)
    gold = data.draw(st.sampled_from(forms[:4]))
    for form in forms:
        assert pays(checker, form, gold), (form, gold)


@given(INTEGERS, st.data(), st.sampled_from(["number", "math"]))
@settings(deadline=None)
def test_another_integer_never_pays(
    checker: Checker, value: int, data: st.DataObject, kind: AnswerKind
) -> None:
    others = st.sampled_from([value + 1, value - 1, -value, 10 * value, value // 10, value + 1000])
    other = data.draw(others | INTEGERS)
    assume(other != value)
    for form in integer_forms(other):
        assert not pays(checker, form, str(value), kind), form


@given(FRACTIONS, st.data())
@settings(deadline=None)
def test_another_fraction_never_pays(
    checker: Checker, value: Fraction, data: st.DataObject
) -> None:
    near = st.sampled_from(
        [value + Fraction(1, 10**9), -value, 1 / value, value * 10, value + 1, 2 - value]
    )
    other = data.draw(near | FRACTIONS)
    assume(other != value and other.denominator > 1)
    for form in fraction_forms(other):
        assert not pays(checker, form, f"{value.numerator}/{value.denominator}"), form


PREFIXES = r"""
not|at most|at least|about|less than|up to|no|never|minus|half of|between 1 and|V x|I think|\ne
\neq|>|<|\ge|\geq|\le|x >|x \ne|6 =|2x =|x + y =|x = y =|0 +|1 \cdot|0|1,|\pm|\sqrt|\neg
\frac{1}{2} \lor|1 \text{ or }|\max(2,|\text{not }|(|[1,|\infty -|2\cdot
"""
SUFFIXES = r"""
 million| quadrillion| thousand| dozen| hundred| or more| or less| or 6| and 6| factorial
 squared| cubed| is wrong| is not the answer| more| less| percent less| of 20| to 9| times 2
 plus 1| mod 3| choose 2| halves| thirds| hundredths| and a half|+0|-0|*1|/1|!|^2|x|i
 \pi|\cdot 1| + x - x|, 6|; 6| 6|e1| \pm 0| = 6| < x| \ne 6| \lor 6| \text{ or } 6| \ldots
...|?| #|) + (0|_6|' | \to 6| \cup \{6\}| \approx 6| \%\%
"""


def _listed(text: str) -> list[str]:
    return text.strip("\n").replace("\n", "|").split("|")


@given(
    st.integers(2, 10**6) | st.fractions(1, 99, max_denominator=97),
    st.sampled_from(_listed(PREFIXES)),
    st.sampled_from(["number", "math"]),
)
@settings(max_examples=400, deadline=None)
def test_a_prefix_never_pays(
    checker: Checker, value: Fraction, prefix: str, kind: AnswerKind
) -> None:
    assert not pays(checker, f"{prefix} {value}", str(value), kind)


@given(
    st.integers(2, 10**6) | st.fractions(2, 99, max_denominator=97),
    st.sampled_from(_listed(SUFFIXES)),
    st.sampled_from(["number", "math"]),
)
@settings(max_examples=400, deadline=None)
def test_a_suffix_never_pays(
    checker: Checker, value: Fraction, suffix: str, kind: AnswerKind
) -> None:
    assert not pays(checker, f"{value}{suffix}", str(value), kind)


@given(st.integers(2, 10**6), st.text("abcdefghijklmnopqrstuvwxyz ", min_size=2, max_size=30))
@settings(deadline=None)
def test_a_word_pays_only_if_it_is_known_to_be_a_unit(
    checker: Checker, value: int, words: str
) -> None:
    known = split_unit(f"{value} {words.strip()}", "")[0] == str(value)
    # "101 st" is how 101\text{st} is read, "100 ce" is a year.
    assume(words.split() and words.split()[0] not in ("st", "nd", "rd", "th", "ce"))
    assert pays(checker, f"{value} {words}", str(value), "number") == known


@given(st.integers(2, 10**6), st.text(max_size=6), st.text(max_size=6))
@example(2, "", "º")
@settings(deadline=None)
def test_whatever_surrounds_a_number_changes_it_or_is_typesetting(
    checker: Checker, value: int, before: str, behind: str
) -> None:
    # A name may stand in front, and a brace may close the box.
    assume(any(c.isalnum() for c in before + behind) and not set("={}") & set(before + behind))
    known = split_unit(f"{value}{behind}", "")[0] == str(value)
    assume(not known and not before.strip().startswith(("US", "0", "+")))
    if pays(checker, f"{before}{value}{behind}", str(value), "number"):
        # Zeros after the point, an exponent of zero, a percent sign in words, degrees.
        changed = set(behind.casefold()) - set(" $*_.{}()[]\\!,;:")
        assert changed <= set("0٠۰०e+-%°º˚"), (before, behind)


Values = Callable[[Mapping[str, Fraction]], Fraction]
# A formula as it is written, and what it is worth by Python's own fractions.
Written = tuple[str, Values]
NAMES: tuple[str, ...] = ("x", "X", "n_1", "r", "R")
PLACES = [
    dict(zip(NAMES, map(Fraction, values), strict=True))
    for values in ((2, 3, 5, 7, 11), (13, 5, 3, 2, 7), (-3, 17, 2, -5, 19), (23, -2, 29, 3, -7))
]
OTHER_CASE = {"x": "X", "X": "x", "r": "R", "R": "r", "n_1": "n_1"}


def _combined(parts: tuple[Written, Written, str]) -> Written:
    (left, a), (right, b), sign = parts
    if sign == "+":
        return f"{left} + ({right})", lambda at: a(at) + b(at)
    if sign == "-":
        return rf"{left} - \left({right}\right)", lambda at: a(at) - b(at)
    if sign == "*":
        return f"({left})({right})", lambda at: a(at) * b(at)
    if sign == "/":
        return rf"\frac{{{left}}}{{{right}}}", lambda at: a(at) / b(at)
    return rf"\left({left}\right)^{{2}}", lambda at: a(at) ** 2


def _name(name: str) -> Written:
    return name, lambda at: at[name]


def _numeral(value: int) -> Written:
    return str(value), lambda at: Fraction(value)


FORMULAS = st.recursive(
    st.sampled_from(NAMES).map(_name) | st.integers(1, 99).map(_numeral),
    lambda inner: st.tuples(inner, inner, st.sampled_from("+-*/^")).map(_combined),
    max_leaves=6,
).filter(lambda written: any(c in written[0] for c in "xXn") and written[0].count("(") < 7)


def _everywhere(value: Values) -> list[Fraction]:
    try:
        return [value(place) for place in PLACES]
    except ZeroDivisionError:
        return []


def _turned(formula: str) -> str:
    """``formula`` with its letters in the other case."""
    return re.sub(r"\\[a-z]+|[xXrR]", lambda m: OTHER_CASE.get(m[0], m[0]), formula)


@given(FORMULAS, FORMULAS)
@settings(max_examples=200, deadline=None)
def test_formulas_are_equal_where_their_values_are(
    checker: Checker, gold: Written, answer: Written
) -> None:
    left, right = _everywhere(gold[1]), _everywhere(answer[1])
    assume(left and right)
    assert pays(checker, answer[0], gold[0]) == (left == right)
    assert pays(checker, f"0 + {gold[0]}", gold[0])
    assert pays(checker, rf"\frac{{3({gold[0]})}}{{3}}", gold[0])
    assert not pays(checker, f"{gold[0]} + 0.001", gold[0])
    turned = _everywhere(lambda at: gold[1]({name: at[OTHER_CASE[name]] for name in NAMES}))
    assume(turned)
    assert pays(checker, _turned(gold[0]), gold[0]) == (turned == left)
