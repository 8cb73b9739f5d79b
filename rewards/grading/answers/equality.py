"""When two answers are equal: the rules that need no computer algebra, and how parts combine.

An atom rule gives True or False, or the pair of formulas that algebra has to compare; once it has,
the same rules run again with its verdicts.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from coterie.datatypes import Problem
from coterie.rewards.grading.answers.caps import MAX_QUESTION
from coterie.rewards.grading.answers.formula import Formula, ordered, parts
from coterie.rewards.grading.answers.normalise import (
    DOLLAR,
    LETTER_ALONE,
    asks_product,
    is_sequence,
    is_words,
    key,
    plain,
    sequence,
    words,
)
from coterie.rewards.grading.answers.question_units import (
    asks_percentage,
    contradicts,
    miscounts,
)
from coterie.rewards.grading.answers.restated import (
    asks_solved,
    misses_form,
    names_variable,
    repeats_form,
    restates,
    restates_equation,
)
from coterie.rewards.grading.answers.structure import (
    DERIVATIVE,
    FUNCTION_OF_ANGLE,
    Shape,
    equation,
    shape,
)
from coterie.rewards.grading.answers.tasks import (
    arranged_otherwise,
    falls_short,
    names_form,
    same_factorization,
)
from coterie.rewards.grading.answers.units import THING
from coterie.rewards.grading.answers.values import (
    NUMBER_WORDS,
    Value,
    same_value,
    says_a_value,
    value_of,
)
from coterie.rewards.grading.answers.verbs import (
    asking_sentence,
    says_another_deed,
    says_asked_share,
)

Pair = tuple[Formula, Formula]
"""(gold, answer): two formulas, or two equations ``("equation", left, right)``."""
AtomRule = Callable[[Shape, Shape], bool | None]
"""(gold, answer) -> equal, different, or not known yet."""

_BASE = re.compile(r"\(?([0-9A-Fa-f]+)\)? ?_ ?(?:\{ ?([0-9]{1,3}|[a-z]{3,8}) ?\}|([0-9]))")
_REQUESTED_BASE = re.compile(
    r"\b(?:in|to|into|as)\s+(?:(?:a|an|its|the)\s+)?(?:base[\s-]+\$?(?P<base>[0-9]{1,2}|[a-z]{3,5})\b"
    r"|(?P<name>binary|octal|decimal|hexadecimal)\b(?!\s+(?:places?|digits?|points?)))"
    r"|\bbase[\s-]+\$?(?P<adjective>[0-9]{1,2}|[a-z]{3,5})\$?\s+(?:numeral|number|value|representation|expansion)\b",
    re.IGNORECASE,
)
_BASES = NUMBER_WORDS | {"binary": 2, "octal": 8, "decimal": 10, "hexadecimal": 16}
_LOWERED = re.compile("[₀-₉]{1,3}")
_DIGITS_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_PARENTHESES = "()[]"
_HYPHENS = re.compile(r"[0-9]+(?: ?- ?[0-9]+)+")
_ARRANGED = re.compile(
    r"\b(?:arrange|rank|sort|order)\s+(?:the|these|those|them|all|from)\b"
    r"|\bin (?:what|which) order\b"
    r"|\b(?:list|write|put|give|state|name|enter|submit|report|express|provide|return)\b[^.?!]{0,80}"
    r"(?:\bin\s+(?!any\b|no\b|some\b)(?:\w+\s+){0,2}order\b(?!\s+(?:to|that)\b)"
    r"|\bfrom\s+(?:the\s+)?\w+(?:est|st)\s+to\s)"
    # "What is the correct order of the steps?", "Find the path of the ant.", "the next two terms"
    r"|\b(?:what\s+(?:is|are|was|were)|find|give|determine|state|write|name)\s+(?:the|their|its|a|one)\s+"
    r"(?:(?!of\b)\w+\s+){0,3}(?:order|ordering|ranking|sequence|path|route|itinerary|permutation)\b"
    r"(?!['’]|\s+(?:of\s+)?(?:(?:the|a|an|this)\s+)?(?:statistics|magnitude|group|subgroup|element|matrix"
    r"|pole|zero|reaction|differential|field|graph|curve)|\s+of\s+\$)"
    r"|\bnext\s+\w+\s+(?:terms|numbers)\b"
    r"|\b(?:first|last)\s+\w+\s+(?:terms|numbers|digits|elements|members|values)\s+"
    r"(?:of|in)\s+(?:the|this|a)\s+\w*\s?(?:sequence|progression|series|pattern)\b"
    # "What are the roots, in increasing order?"
    r"|,\s+in\s+(?:ascending|descending|increasing|decreasing|chronological|alphabetical|numerical)"
    r"\s+order\s*[.?)]"
    # "How many boys and girls are there, respectively?"
    r"|\b(?:how\s+(?:many|much)|what\s+(?:is|are|was|were))\b"
    r"(?:(?!\b(?:if|when|where|with|such|given)\b)[^.?!]){0,160}\brespectively\b",
    re.IGNORECASE,
)
"""Words that ask for a list in an order."""
_SYSTEM = re.compile(
    r"\b(?:solve|solutions?\s+(?:to|of))\s+the\s+(?:following\s+)?system\b", re.IGNORECASE
)
_ANGLE_MARKS = re.compile(r"\\angle|[ {}()]")
_INDEXED = re.compile(
    r"(?P<stem>[A-Za-z])'? ?(?:_ ?(?:\{ ?(?P<below>[0-9]{1,9}) ?\}|(?P<digit>[0-9]))"
    r"|\( ?(?P<argument>-?[0-9]{1,9}) ?\))"
)
"""A name with a number: ``a_5``, ``S_{10}``, ``f(3)``."""
_REQUESTED_INDEX = re.compile(
    r"\b(?:find|what|determine|compute|calculate|evaluate|give|value of|terms?|number|equals?"
    r"|then)\b,?"
    r"(?: (?:is|are|does|do|was|will|the|exact|value|of|term|number|sum|[a-z]+th|first|second"
    r"|third)\b,?"
    rf"){{0,6}} {_INDEXED.pattern}"
    r"(?! ?[-+*/^(]| ?= ?[^?\s.]| ?,? ?(?:[A-Za-z] ?[_(]|\\[ld]|\.\.))",
    re.IGNORECASE,
)
"""The same where a question asks for it: "Find the fifth term $a_5$"."""
_INDEX_OPEN = re.compile(rf"{_INDEXED.pattern} ?= ?(?:\?|\Z)")
_LETTER = re.compile(r"[A-Za-z](?:_\{?[A-Za-z0-9]\}?|\([0-9]{1,4}(?: ?/ ?[0-9]{1,4})?\))?")
"""``a``, ``a_1`` or ``d(10)``"""
_SEPARATOR = re.compile(r"\s*(?:,\s*and\b|,|\band\b)\s*")
_LISTED = re.compile(
    rf"(?<![A-Za-z\\]){_LETTER.pattern}(?:{_SEPARATOR.pattern}{_LETTER.pattern}(?![A-Za-z]))+"
)
"""Names in a row: ``a, b and c``, ``T(10) and T(11)``."""
_REQUESTED_NAMES = re.compile(
    r"\b(?:find|determine|solve|compute|calculate|give|values?|what)\s+"
    r"(?:(?:are|for|of|the|all|both|real|positive|integers?|numbers?|constants?|values?)\s+){0,6}"
    rf"(?P<names>{_LISTED.pattern})",
    re.IGNORECASE,
)
"""The same where a question asks for each: "Find the values of a, b and c"."""


def same_words(gold: str, answer: str, question: str = "") -> bool | None:
    r"""Words as words, ``\text{east}`` against ``East``, and sequences of letters in their order;
    None where the gold answer is a formula.

    A reader of formulas would take ``teas`` and ``HHT`` for products of letters in any order.
    """
    if asks_product(gold, question[:MAX_QUESTION]):
        return None
    if _HYPHENS.fullmatch(plain(gold)):
        # A score, a route or a range: no difference is left as an answer.
        return key(gold, fold=False) == key(answer, fold=False)
    if not is_words(gold) and not is_sequence(gold):
        return None
    written = shape(answer)
    same_letters = sequence(gold) == sequence(written.text if written.is_value else answer)
    if is_sequence(gold) and not is_words(gold):
        return same_letters
    left, right = (words(text).strip(_PARENTHESES).strip() for text in (gold, answer))
    return same_letters or left == right


def in_base(text: str) -> tuple[str, int] | None:
    """The digits and the base of ``204_5`` or ``4210_{5}``."""
    match = _BASE.fullmatch(_with_subscript(text))
    if match is None:
        return None
    return match[1].upper().lstrip("0"), _base(match[2] or match[3])


def _base(name: str) -> int:
    """The number that a base is called by; 0 for any other word."""
    return int(name) if name.isdigit() else _BASES.get(name.casefold(), 0)


def _with_subscript(text: str) -> str:
    """``13_{10}`` of ``13₁₀``."""
    return _LOWERED.sub(lambda match: f"_{{{match[0].translate(_DIGITS_LOWERED)}}}", text)


def same_numeral(gold: str, answer: str, question: str = "") -> bool | None:
    """Numerals of a base by digit and base, None where neither names one; a missing base is the
    one that the question asks for, or ten.

    >>> same_numeral("13", "13_{10}"), same_numeral("13", "13_5"), same_numeral("13", "13")
    (True, False, None)
    """
    gold_base, answer_base = in_base(gold), in_base(answer)
    if gold_base is None:
        if answer_base is None or not re.fullmatch("[0-9A-Fa-f]+", gold):
            return None
        return answer_base == (gold.upper().lstrip("0"), _base_of(gold, question))
    if answer_base is None and answer.isalnum() and answer.isascii():
        return gold_base[0] == answer.upper().lstrip("0")
    return gold_base == answer_base


def _base_of(gold: str, question: str) -> int:
    """The base of a gold answer that names none; 0 if it is not clear."""
    requested = {
        _base(match["base"] or match["name"] or match["adjective"])
        for match in _REQUESTED_BASE.finditer(question[:MAX_QUESTION])
    }
    if requested:
        return requested.pop() if len(requested) == 1 else 0
    named = _BASE.finditer(plain(question[:MAX_QUESTION]))
    bases = [_base(match[2] or match[3]) for match in named]
    # In a question about 101_2, 11 may be three.
    largest = max(int(digit, 16) for digit in gold)
    return 0 if any(largest < base for base in bases) else 10


def compare(gold: Shape, answer: Shape, problem: Problem) -> bool | Pair:
    """One value against another: equal, different, or what algebra has to compare.

    A text that is not read whole equals nothing but itself.
    """
    if differ(gold.name, answer.name):
        if names_variable(problem.question):
            return False
        gold, answer = _with_name(gold), _with_name(answer)
    if _names_another(gold.name, answer.name, problem.question):
        return False
    if same_text(gold.text, answer.text):
        return True
    if (
        not gold.name
        and (named := same_words(gold.text, answer.text, problem.question)) is not None
    ):
        return named
    if (verdict := same_numeral(gold.text, answer.text, problem.question)) is not None:
        return verdict
    if equation(answer.text) or equation(gold.text):
        return _equations(gold, answer, problem.question) or False
    left = value_of(gold.text)
    if left is None:
        return False
    right = value_of(answer.text, problem.question if left.is_number else None)
    if right is None or not _same_unit(left, right, problem):
        return False
    if left.literal is not None and right.literal is not None and says_a_value(left, right):
        if repeats_form(gold.text, answer.text, problem.question) or misses_form(
            left.formula, right.formula, answer.text, problem.question
        ):
            return False
        return same_value(left, right, percent=problem.percent, tolerance=problem.tolerance)
    if same_factorization(left.formula, right.formula, problem.question):
        return True
    if left.is_number != right.is_number or not says_a_value(left, right):
        return False
    if ordered(left.formula) == ordered(right.formula):
        return True
    if restates(left.formula, right.formula, answer.text, problem.question) or falls_short(
        left.formula, right.formula, problem.question
    ):
        return False
    return left.formula, right.formula


def differ(gold: str, answer: str) -> bool:
    """Whether two names are of two things; ``y(x)`` is ``y``, and no name is any."""
    bare = [name.partition("(")[0] or name for name in (gold, answer)]
    same = gold == answer or (("(" in gold) != ("(" in answer) and bare[0] == bare[1])
    return bool(gold and answer) and not same


def _names_another(gold: str, answer: str, question: str) -> bool:
    """Whether an answer names ``a_4`` to a question about ``a_5``, or ``dx/dy`` to ``dy/dx``."""
    if gold or not answer:
        return False
    text = plain(question[:MAX_QUESTION])
    if indexed := _INDEXED.fullmatch(answer):
        return _has_another_index(indexed, text)
    if not answer.startswith("\\"):
        return False
    if answer.startswith("\\frac"):
        derivatives = {match.replace(" ", "") for match in DERIVATIVE.findall(text)}
        return bool(derivatives) and answer.replace(" ", "") not in derivatives
    if FUNCTION_OF_ANGLE.fullmatch(answer) is None:
        return False
    named = {_ANGLE_MARKS.sub("", match[0]) for match in FUNCTION_OF_ANGLE.finditer(text)}
    return _ANGLE_MARKS.sub("", answer) not in named


def _has_another_index(name: re.Match[str], question: str) -> bool:
    """Whether a question asks for a name with a number, and this one has another number."""
    requested = [
        match
        for pattern in (_REQUESTED_INDEX, _INDEX_OPEN)
        for match in pattern.finditer(question)
        if match["stem"] == name["stem"]
    ]
    return bool(requested) and _index(name) not in map(_index, requested)


def _index(name: re.Match[str]) -> str:
    return name["below"] or name["digit"] or name["argument"]


def _with_name(part: Shape) -> Shape:
    return Shape(f"{part.name}={part.text}")


def _equations(gold: Shape, answer: Shape, question: str) -> Pair | None:
    """Two equations for algebra; None if they differ or the answer leaves work to do."""
    left, right = _sides(gold), _sides(answer)
    if left is None or right is None:
        return None
    solution = value_of(gold.text) if gold.name else None
    solves = (solution is not None and solution.is_number) or asks_solved(question)
    if gold.name and solves and not answer.name:
        return None
    values = [value_of(side) for side in (*left, *right)]
    formulas = [value.formula for value in values if value is not None]
    if len(formulas) < len(values):
        return None
    target, written = ("equation", *formulas[:2]), ("equation", *formulas[2:])
    solved = bool(answer.name) or not gold.name
    if restates_equation(target, written, solved, question):
        return None
    if names_form(question) and arranged_otherwise(target, written):
        return None
    return target, written


def _sides(part: Shape) -> tuple[str, str] | None:
    return equation(part.text) or ((part.name, part.text) if part.name else None)


def same_text(gold: str, answer: str) -> bool:
    """Whether two answers are one string without typesetting; money is more than its number."""
    money = DOLLAR in plain(answer) and DOLLAR not in plain(gold)
    return key(gold, fold=False) == key(answer, fold=False) and not money


def _same_unit(gold: Value, answer: Value, problem: Problem) -> bool:
    """Whether the units of two values agree; a missing one is the one that is asked for."""
    if gold.percent and answer.percent:
        return True
    if answer.percent and not (gold.unit or problem.percent):
        share = gold.literal is not None and 0 < abs(gold.literal) < 1
        if not asks_percentage(problem.question, share=share):
            return False
    if (
        answer.counted
        and contradicts(THING, problem.question)
        and not (answer.unit and says_asked_share(answer.behind, problem.question))
    ):
        return False
    if miscounts(answer.behind, problem.question):
        return False
    same = gold.unit == answer.unit != ""
    if not same and says_another_deed(answer.behind, problem.question):
        return False
    units = [value.unit or "%" * value.percent for value in (gold, answer)]
    if units == ["", "degree"] and ("constant", "pi") in parts(gold.formula):
        # pi/6 is an angle in radians.
        return False
    if not units[0] and not (answer.percent and problem.percent):
        return not contradicts(units[1], problem.question)
    return "" in units or units[0] == units[1]


def order_counts(gold: Shape, question: str) -> bool:
    """Whether a list without brackets is to be in the order of the gold answer: the question asks
    to arrange it, or it is letters out of their alphabetical order (``C, A, B``).

    >>> from coterie.rewards.grading.answers.structure import shape
    >>> order_counts(shape("C, A, B"), ""), order_counts(shape("A, C"), "Which are right?")
    (True, False)
    """
    if gold.ends != ",":
        return False
    letters = [item.text for item in gold.items]
    if all(
        len(text) == 1 and text.isupper() and not item.name
        for text, item in zip(letters, gold.items, strict=True)
    ) and letters != sorted(letters):
        return True
    if _SYSTEM.search(question[:MAX_QUESTION]) and all(item.is_value for item in gold.items):
        return True
    return _ARRANGED.search(question[:MAX_QUESTION]) is not None


def same(
    gold: Shape, answer: Shape, atom: AtomRule, *, unordered: bool, arranged: bool = False
) -> bool | None:
    """Compare part by part; None while an open pair of atoms could still decide.

    Ordered parts need the same brackets. Three parts or more in square brackets may be a list
    without brackets; ``unordered`` lets two be one (``[1, 2]`` for the list 1, 2). ``arranged``
    compares the parts of a list in their order.
    """
    if gold.is_value and answer.is_value:
        return atom(gold, answer)
    if differ(gold.name, answer.name):
        return False
    gold, answer = _as_other(gold, answer), _as_other(answer, gold)
    ends = {gold.ends, answer.ends}
    if ends == {",", "()"} and (_is_point(gold) or _is_point(answer)):
        ends = {"()"}
    if ends == {"<>", "()"}:
        # A vector, in either notation.
        ends = {"()"}
    if ends == {",", "[]"} and (unordered or len(gold.items) > 2):
        # No interval has three ends; brackets in the gold answer say that order counts.
        ends = {"," if unordered else gold.ends}
    if len(ends) > 1 or len(gold.items) != len(answer.items):
        return False
    if ends & {",", r"\cup"} and not (arranged or _lists_letters(gold, answer)):
        return _same_collection(gold.items, answer.items, atom, unordered=unordered)
    parts = [
        same(left, right, atom, unordered=unordered)
        for left, right in zip(gold.items, answer.items, strict=True)
    ]
    if False in parts:
        return False
    return None if None in parts else True


def _as_other(part: Shape, other: Shape) -> Shape:
    """``[[1, 2], [3, 4]]`` as a matrix and a row or column as a vector, where the other one is."""
    rows = part.items
    if other.ends == "matrix" and part.ends == "[]" and all(row.ends == "[]" for row in rows):
        return replace(part, ends="matrix", items=tuple(replace(row, ends="row") for row in rows))
    if other.ends in ("()", "<>") and part.ends == "matrix":
        if len(rows) == 1:
            return replace(part, ends="()", items=rows[0].items)
        if all(len(row.items) == 1 for row in rows):
            return replace(part, ends="()", items=tuple(row.items[0] for row in rows))
    return part


def in_question_order(answer: Shape, question: str) -> Shape | None:
    """The values of several names, in the order in which the question lists these names; None
    where it lists no such names.

    To "Find $p$ and $q$" ``q = 3, p = 4`` and ``(p, q) = (4, 3)`` are 4 and 3. Unknowns of a system
    that the question does not list are in the order of the alphabet.
    """
    question = question[:MAX_QUESTION]
    if answer.ends == "()":
        names = answer.name[1:-1].split(",") if answer.name.startswith("(") else []
    elif answer.ends == ",":
        names = [item.name for item in answer.items if item.name]
        if names and len(names) < len(answer.items):
            return None
    else:
        return None
    if not all(map(_LETTER.fullmatch, names)):
        return None
    text = question.replace("$", "")
    requested = [match["names"] for match in _REQUESTED_NAMES.finditer(text)]
    if len({*names}) < len(names):
        # To "Find p and q" are "p = 3, p = 4" two values of p and none of q.
        several = any({*names} < {*_SEPARATOR.split(listed)} for listed in requested)
        return Shape(answer.text) if several else None
    bare = answer.ends == "," and not names
    if bare and (counted := _in_order_of_things(answer, question)):
        return counted
    for listed in reversed(requested if bare else _LISTED.findall(text)):
        order = [name.replace(" ", "") for name in _SEPARATOR.split(listed)]
        if not names and len(order) == len(answer.items):
            pairs = bare and not all(item.is_value for item in answer.items)
            return None if pairs else Shape(answer.text, ",", answer.items)
        if sorted(order) == sorted(names):
            return _arranged(answer, names, order)
    if requested and any("(" in name for name in names):
        # T(10) and T(13), where T(10) and T(11) are asked for
        return Shape(answer.text)
    if names:
        first = [*dict.fromkeys(letter for letter in LETTER_ALONE.findall(text) if letter in names)]
        return _arranged(answer, names, first) if first == sorted(names) else None
    return Shape(answer.text, ",", answer.items) if _SYSTEM.search(question) and not bare else None


def _arranged(answer: Shape, names: Sequence[str], order: Sequence[str]) -> Shape:
    """The values of names in an order, without their names."""
    items = dict(zip(names, answer.items, strict=True))
    return Shape(answer.text, ",", tuple(replace(items[name], name="") for name in order))


def _in_order_of_things(answer: Shape, question: str) -> Shape | None:
    """``4 plums, 3 pears`` in the order in which the question first has the things; None where it
    does not have each of them, or an item names none."""
    values = [value_of(item.text, question) for item in answer.items]
    things = [value.behind.strip().casefold() if value else "" for value in values]
    asking = asking_sentence(question)
    text = asking if all(thing in asking for thing in things) else question.casefold()
    places = [text.find(thing) for thing in things]
    if "" in things or -1 in places or len({*places}) < len(places):
        return None
    items = dict(zip(places, answer.items, strict=True))
    return Shape(answer.text, ",", tuple(items[place] for place in sorted(places)))


def _lists_letters(gold: Shape, answer: Shape) -> bool:
    """Whether an answer only lists the values that the gold answer gives to ``x, y``, in the order
    of the alphabet."""
    names = [item.name for item in gold.items]
    letters = all(len(name) == 1 for name in names) and names == sorted({*names})
    return letters and not any(item.name for item in answer.items)


def _is_point(shape: Shape) -> bool:
    """Whether it is ``x = 1, y = 2``: values of different variables in the order of their names."""
    names = [item.name for item in shape.items]
    return "" not in names and names == sorted({*names}, key=lambda name: name.lstrip("\\"))


def _same_collection(
    gold: Sequence[Shape], answer: Sequence[Shape], atom: AtomRule, *, unordered: bool
) -> bool | None:
    """Whether the parts can be paired off in any order."""
    # Equality is transitive, so the first equal partner is as good as any.
    rest = list(answer)
    waiting: list[Shape] = []
    for left in gold:
        equal = (right for right in rest if same(left, right, atom, unordered=unordered))
        if (partner := next(equal, None)) is not None:
            rest.remove(partner)
        else:
            waiting.append(left)
    if not waiting:
        return True
    for left in waiting:
        if None not in [same(left, right, atom, unordered=unordered) for right in rest]:
            return False
    return None
