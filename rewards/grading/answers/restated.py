r"""Whether an answer is the question's own content over again.

"3 + 4" is no answer to "3 + 4 =", nor is "(4 + 3) + 0"; "2x + 3 = 11" solves no equation, and
84/168 is not in lowest terms. Formulas, equations and numbers of the question are compared by
:mod:`canonical` form, so that no step that does nothing makes them another answer.

- A formula in the question's form is wrong where gold has another form. Where question and gold
  share a form (6x/8 and 3x/4), an answer may leave no more steps than gold does.
- The question's own equation is wrong, unless gold is another arrangement of it (y = 5 - 3x from
  3x + y = 5) and the answer is arranged as gold is, or as the question names.
- Where a number is to be written in another way ("lowest terms", "as a fraction", "scientific
  notation"), the question's kind of numeral is wrong unless gold has it. Where that number stands
  in the question, only the kind that is asked for counts: 5.75 is no mixed number. "Express your
  answer as a fraction" is no such task.
- Wherever "lowest terms" or "simplest form" is asked for, a fraction that can be reduced is wrong.
  A mixed number is right unless an improper fraction is asked for, and the other way round.
- Gold that stands in the question ("Simplify x + 1") is right in any order. Where the question asks
  for no form, so is every formula of gold's form.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from coterie.rewards.grading.answers.canonical import Form, arrangement, canonical, difference
from coterie.rewards.grading.answers.caps import MAX_QUESTION, refuses
from coterie.rewards.grading.answers.formula import LEAVES, Formula, ordered, parts
from coterie.rewards.grading.answers.grammar import read
from coterie.rewards.grading.answers.normalise import key, plain
from coterie.rewards.grading.answers.tasks import arranged_otherwise, names_form
from coterie.rewards.grading.answers.values import exact

_INLINE = re.compile(r"\$([^$]{1,512})\$|\\[(\[](.{1,512}?)\\[)\]]", re.DOTALL)
_RELATIONS = re.compile(r"[=<>,;]|\\(?:le|ge|leq|geq|in|to)(?![A-Za-z])")
_PROSE = re.compile(
    r"(?<![\\A-Za-z])(?!(?:arc)?(?:sin|cos|tan)h?\b|(?:sqrt|pi|ln|log|exp)\b)[A-Za-z]{2,}"
    r"|[.,;:?!](?=\s|$)|\n"
)
_ARTICLE = re.compile(r"\A\s*(?:a|A|I)\s+(?=\S)|\s+(?:a|I)\s*\Z")
_ANSWER_FORM = re.compile(
    r"\b(?:express|give|write|leave|put|enter|state|round)\s+(?:your|the|all|any)\s"
    r"(?:final\s)?(?:answer|result|solution)s?\b[^.?!]{0,200}",
    re.IGNORECASE,
)
_ASKS_FORM = re.compile(
    r"\b(?:simplify|simplified|convert|rewrite|express|rationali[sz]e|expand|factor|written?|write)\b"
    r"|\breduce\s+(?:[$\\0-9]|the fraction)|\b(?:lowest terms|simplest \w+|scientific notation)\b"
    r"|\bstandard form\b|\b(?:as|to|into|in)\s(?:an?\s)?(?:\w+\s)?"
    r"(?:fraction|decimal|percent|percentage|(?:mixed|improper|whole) number)\b",
    re.IGNORECASE,
)
_TARGET = re.compile(
    r"\b(?:as|to|into|in|an?)\s(?:an?\s)?(?:[a-z]+\s){0,2}?(?P<name>mixed number|improper fraction"
    r"|fraction|decimal|scientific notation)\b",
    re.IGNORECASE,
)
_LOWEST = re.compile(
    r"\b(?:lowest terms|simplest form|simplified|reduced|simplify|common fraction)\b", re.IGNORECASE
)
_REQUIRES_LOWEST = re.compile(
    r"\b(?:lowest|simplest|reduced|simplified)\s+(?:\w+\s+)?(?:terms?|forms?|fractions?)\b"
    r"|\b(?:fully|completely)\s+(?:reduced|simplified)\b|\birreducible\b"
    r"|\b(?:simplify|reduce)\s+(?:your|the|any|all|it)\b|\b(?:relatively prime|coprime)\b",
    re.IGNORECASE,
)
_IMPROPER = re.compile(r"\bimproper\s+fraction", re.IGNORECASE)
_MIXED = re.compile(r"\bas\s+an?\s+(?:\w+\s+)?mixed\s+(?:number|fraction)", re.IGNORECASE)
_KINDS = {
    "mixed number": {"mixed"},
    "improper fraction": {"fraction", "unreduced"},
    "fraction": {"fraction", "unreduced"},
    "decimal": {"numeral"},
    "scientific notation": {"scientific"},
}
"""Form that a task names -> the kinds of numeral that have it."""
_FOR_A_VARIABLE = re.compile(
    r"\b(?:slope[\s-]{1,3}intercept|solve|isolate|subject|in terms of)\b", re.IGNORECASE
)
_SLOPE_INTERCEPT = re.compile(r"\bslope[\s-]{1,3}intercept\b", re.IGNORECASE)

_FRACTION = r"(?:\\frac ?\{ ?[0-9]+ ?\} ?\{ ?[0-9]+ ?\}|\\frac ?[0-9]{2}|[0-9]+ ?/ ?[0-9]+)"
_DECIMAL = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_NUMERAL = re.compile(
    rf"[+-]?(?:(?P<mixed>[0-9]+ ?\\frac ?(?:\{{[0-9]+\}} ?\{{[0-9]+\}}|[0-9]{{2}})"
    r"|[0-9]+ [0-9]+ ?/ ?[0-9]+)"
    r"|(?P<repeating>[0-9]*\.[0-9]*\\(?:overline|bar|dot) ?(?:\{[0-9]{1,40}\}|[0-9]))"
    rf"|(?P<fraction>{_FRACTION})"
    rf"|(?P<scientific>{_DECIMAL} ?(?:(?:\\times|\\cdot|\*) ?10 ?\^ ?(?:\{{ ?[+-]?[0-9]+ ?\}}"
    r"|[+-]?[0-9]+)|[eE][+-]?[0-9]+))"
    rf"|(?P<percent>{_DECIMAL} ?%)"
    rf"|(?P<numeral>{_DECIMAL}))"
)
_OPERATORS = "+-*/^_=\\{(["


@dataclass(frozen=True)
class Content:
    """What a question holds."""

    formulas: frozenset[Formula]
    """With the parts of sums and products in one order; no single number or letter."""
    forms: frozenset[Form]
    equations: tuple[Formula, ...]
    numbers: frozenset[tuple[Fraction, str]]
    """(value, kind of numeral)."""
    asks_form: bool
    """Whether the task is to write something in another way."""
    target: frozenset[str]
    """The kinds of numeral that the task names."""
    lowest: bool
    """Whether it names lowest terms."""


def restates(gold: Formula, answer: Formula, written: str, question: str) -> bool:
    """Whether a formula stands in the question, up to steps that do nothing, and the gold answer
    is of another form.

    Args:
        written: the answer as it is written.
    """
    content = content_of(question)
    form, steps = canonical(answer)
    target, least = canonical(gold)
    if form == target and steps <= least and not content.asks_form:
        return False
    if ordered(answer) in content.formulas:
        return True
    if form in content.forms:
        return form != target or steps > least
    return _stands_in(written, question)


def _stands_in(written: str, question: str) -> bool:
    stated = key(written, fold=False)
    before, after = (r"(?<![\w.])" * stated[:1].isalnum(), r"(?![\w.])" * stated[-1:].isalnum())
    task = key(question, fold=False)
    return re.search(before + re.escape(stated) + after, task) is not None


def restates_equation(gold: Formula, answer: Formula, solved: bool, question: str) -> bool:
    """Whether an equation is one of the question's, up to a number and the order of its terms.

    Where the gold answer is another arrangement of that equation (``y = 5 - 3x``), the answer has
    to be in the gold answer's, or in the form that the question names.

    Args:
        solved: whether the answer names a variable on one side, as far as the gold answer does.
    """
    form = difference(answer)
    stated = [other for other in content_of(question).equations if difference(other) == form]
    if not stated:
        return False
    if difference(gold) != form or not solved:
        return True
    more = sum(canonical(side)[1] for side in answer[1:])
    less = sum(canonical(side)[1] for side in gold[1:])
    if more > less or arrangement(answer) == arrangement(gold):
        return more > less
    # "Standard form" is Ax + By = C as well as Ax + By - C = 0.
    same_form = names_form(question) and not arranged_otherwise(gold, answer)
    return not same_form or arrangement(answer) in map(arrangement, stated)


def asks_solved(question: str) -> bool:
    """Whether a line is asked for as ``y = mx + b``, and in no other arrangement."""
    return _SLOPE_INTERCEPT.search(question[:MAX_QUESTION]) is not None


def names_variable(question: str) -> bool:
    """Whether an equation is to be solved for the variable that the gold answer names."""
    return _FOR_A_VARIABLE.search(question[:MAX_QUESTION]) is not None


def repeats_form(gold: str, answer: str, question: str) -> bool:
    """Whether the task is to write a number in another way, and ``answer`` is the number in the way
    of the question, or in no way that the task names."""
    content = content_of(question)
    form, target, value = kind_of(answer), kind_of(gold), exact(answer)
    if not content.asks_form or not form or value is None or value.literal is None:
        return False
    of_value = {kind for number, kind in content.numbers if number == value.literal}
    if of_value and (_misses(target, form, content) or _is_shifted(target, form, answer)):
        return True
    if form == target:
        return False
    if {form, target} == {"numeral", "percent"} and value.literal == _literal(gold):
        # "as a percentage", gold 70: the sign is a unit.
        return False
    same_way = {"fraction", "unreduced"} if form in ("fraction", "unreduced") else {form}
    return not same_way.isdisjoint(of_value)


def misses_form(gold: Formula, answer: Formula, written: str, question: str) -> bool:
    """Whether a fraction is not in the lowest terms that the question asks for, or is a mixed
    number where an improper one is asked for, or the other way round.

    Args:
        written: the answer as it is written.
    """
    question = question[:MAX_QUESTION]
    if len(answer) > 3 >= len(gold) and _REQUIRES_LOWEST.search(question):
        return True
    if gold[1].denominator == 1 or abs(gold[1]) < 1:
        return False
    form = kind_of(written)
    if form == "mixed":
        return _IMPROPER.search(question) is not None and _MIXED.search(question) is None
    improper = form in ("fraction", "unreduced")
    return improper and _MIXED.search(question) is not None and not _IMPROPER.search(question)


def _literal(text: str) -> Fraction | None:
    value = exact(text)
    return value and value.literal


def _misses(target: str, form: str, content: Content) -> bool:
    """Whether the gold answer is what the task names, and the answer is not."""
    if content.lowest and target != "unreduced" and form == "unreduced":
        return True
    return target in content.target and form not in content.target


def _is_shifted(target: str, form: str, answer: str) -> bool:
    r"""``63\times10^5``, which is no scientific notation of 6,300,000."""
    if not target == form == "scientific":
        return False
    mantissa = re.match(r"[+-]?([0-9]*)", answer.strip())
    return mantissa is None or len(mantissa[1]) != 1 or mantissa[1] == "0"


def kind_of(text: str) -> str:
    """How a number is written: ``numeral``, ``fraction`` (in lowest terms), ``unreduced``,
    ``mixed``, ``scientific`` or ``percent``; empty for anything else."""
    match = _NUMERAL.fullmatch(text.strip())
    kind = match.lastgroup if match else None
    if kind == "fraction":
        top, bottom = re.findall("[0-9]+", text) if "{" in text or "/" in text else text[-2:]
        return "fraction" if math.gcd(int(top), int(bottom)) == 1 else "unreduced"
    if kind == "repeating":
        return "numeral"
    if kind == "scientific" and re.search(r"(?:\^ ?\{? ?|[eE])[+-]?0+ ?\}?\Z", text):
        return "numeral"
    return kind or ""


@lru_cache(maxsize=1024)
def content_of(question: str) -> Content:
    """The formulas, equations and numbers of a question; formulas stand between dollar signs, or
    between words."""
    question = question[:MAX_QUESTION]
    formulas: set[Formula] = set()
    equations: list[Formula] = []
    for text in _stretches(question):
        sides = [_formula(side) for side in _RELATIONS.split(text)]
        formulas.update(part for side in sides if side for part in parts(side))
        if _RELATIONS.findall(text) == ["="] and all(sides):
            equations.append(("equation", *sides))
    several = {part for part in formulas if part[0] not in LEAVES}
    forms = {canonical(part)[0] for part in several}
    bare = _ANSWER_FORM.sub(" ", question)
    named = _TARGET.search(bare)
    return Content(
        frozenset(map(ordered, several)),
        frozenset(form for form in forms if form[1] and not _is_leaf(form)),
        tuple(equations),
        frozenset(_numbers(question)),
        _ASKS_FORM.search(bare) is not None,
        frozenset(_KINDS[named["name"].casefold()]) if named else frozenset(),
        _LOWEST.search(bare) is not None,
    )


def _is_leaf(form: Form) -> bool:
    """A single letter, whatever was done to it."""
    number, powers = form
    return number == 1 and len(powers) == 1 and powers[0][0][0] in LEAVES and powers[0][1] == 1


def _formula(text: str) -> Formula | None:
    text = plain(text)
    return None if refuses(text) else read(text)


def _stretches(question: str) -> Iterator[str]:
    """The texts of a question that may be formulas."""
    for match in _INLINE.finditer(question):
        yield match[match.lastindex or 1]
    for text in _PROSE.split(_INLINE.sub(" the ", question)):
        if text and not text.isspace():
            yield _ARTICLE.sub("", text)


def _numbers(question: str) -> Iterator[tuple[Fraction, str]]:
    """The numbers that stand alone, in no longer formula."""
    text = plain(question)
    for match in _NUMERAL.finditer(text):
        before, after = text[: match.start()].rstrip()[-1:], text[match.end() :].lstrip()[:1]
        neighbours = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
        if (before and before in _OPERATORS) or (after and after in _OPERATORS):
            continue
        value = None if any(map(str.isalpha, neighbours)) else exact(match[0].strip())
        if value is not None and value.literal is not None:
            yield value.literal, kind_of(match[0])
            if value.percent:
                yield value.literal / 100, "percent"
