"""When two answers are equal: the rules that need no computer algebra, and how parts combine.

An atom rule gives True or False, or None where it cannot tell. A pair that stays open goes to
math-verify, and the same rules then run once more with its verdicts.
"""

import re
from collections.abc import Callable, Sequence

from rewards.answers.normalise import is_words, key, words
from rewards.answers.rational import drop_units, exact, same_value
from rewards.answers.structure import Shape

AtomRule = Callable[[str, str], bool | None]
"""(gold, answer) -> equal, different, or not known."""

_BASE = re.compile(r"([0-9A-Fa-f]+)\s?_\s?(?:\{\s?([0-9]{1,3})\s?\}|([0-9]))")
_NAMED = re.compile(
    r"(?P<name>(?:\\[a-z]+ ?)?[A-Za-z](?:_(?:\{[A-Za-z0-9]{1,8}\}|[A-Za-z0-9]))?"
    r"(?:\([A-Za-z]\))?)\s?=(?P<value>[^=<>]+)"
)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_OPERATOR = re.compile(r"[-+*/^!|]|\\[A-Za-z]")
# A numeric value holds no variable; e and i are numbers.
_UNKNOWN = re.compile(r"[=<>]|[A-Za-df-hj-z]|[ei]{2}")
_PARENTHESES = "()[]"


def same_words(gold: str, answer: str) -> bool | None:
    r"""Words as words, ``\text{east}`` against ``East``; None where the gold answer is a formula.

    A parser of formulas would read ``teas`` as the same product of letters.
    """
    if not is_words(gold):
        return None
    left, right = (words(text).strip(_PARENTHESES).strip() for text in (gold, answer))
    return left == right


def in_base(text: str) -> tuple[str, int] | None:
    """The digits and the base of ``204_5`` or ``4210_{5}``."""
    match = _BASE.fullmatch(text)
    return (match[1].upper().lstrip("0"), int(match[2] or match[3])) if match else None


def notation(gold: str, answer: str) -> bool | None:
    """What holds before any comparison of values, because a parser would lose it.

    Numerals of a base are compared by digit and base; a missing base is the one that the question
    names.
    """
    gold_base, answer_base = in_base(gold), in_base(answer)
    if gold_base and answer_base:
        return gold_base == answer_base
    if gold_base and answer.isalnum() and answer.isascii():
        return gold_base[0] == answer.upper().lstrip("0")
    if answer_base and exact(gold) is not None:
        return False
    return None


def by_value(gold: str, answer: str, *, percent: bool, tolerance: float = 0.0) -> bool | None:
    """The short-cuts: the same string, or two exact rationals, which decide both ways."""
    if key(gold, fold=False) == key(answer, fold=False):
        return True
    gold, answer = _unnamed(gold, answer)
    left, right = exact(gold), exact(answer)
    if left is not None and right is not None:
        return same_value(left, right, percent=percent, tolerance=tolerance)
    return None


def is_arithmetic(gold: str, answer: str) -> bool:
    r"""Whether ``answer`` may work out to the number ``gold``: ``2^{10}``, ``\sqrt{16}``, ``4!``.

    It holds a digit and an operator or a command, and neither words, variables nor relations, so
    that prose and the garbage of a small model need no algebra.
    """
    answer = drop_units(_unnamed(gold, answer)[1])
    return (
        any(character.isdigit() for character in answer)
        and _OPERATOR.search(answer) is not None
        and _UNKNOWN.search(_COMMAND.sub(" ", answer)) is None
    )


def without_name(text: str) -> str:
    """``x = 5`` as ``5``."""
    match = _NAMED.fullmatch(text)
    return match["value"].strip() if match else text


def _unnamed(gold: str, answer: str) -> tuple[str, str]:
    """Both sides without ``x =``, where at most one side names the value or both name it alike."""
    left, right = _NAMED.fullmatch(gold), _NAMED.fullmatch(answer)
    if left and right and left["name"].replace(" ", "") != right["name"].replace(" ", ""):
        return gold, answer
    return without_name(gold), without_name(answer)


def same(gold: Shape, answer: Shape, atom: AtomRule, *, unordered: bool) -> bool | None:
    """Compare part by part; None while an open pair of atoms could still decide.

    Ordered parts need the same brackets. ``unordered`` lets square brackets hold a collection
    (``[1, 2]`` for the list 1, 2).
    """
    if gold.is_value and answer.is_value:
        return atom(gold.text, answer.text)
    if gold.is_value or answer.is_value:
        # One number is no collection (a parser would take -2 for the set of -2 and -2); else
        # one text against another: "x \in [0,1]" against "[0,1]".
        value = gold if gold.is_value else answer
        return False if exact(value.text) is not None else atom(gold.text, answer.text)
    ends = {gold.ends, answer.ends}
    if unordered and ends == {",", "[]"}:
        ends = {","}
    if len(ends) > 1 or len(gold.items) != len(answer.items):
        return False
    if "," in ends:
        return _same_collection(gold.items, answer.items, atom, unordered=unordered)
    parts = [
        same(left, right, atom, unordered=unordered)
        for left, right in zip(gold.items, answer.items, strict=True)
    ]
    if False in parts:
        return False
    return None if None in parts else True


def _same_collection(
    gold: Sequence[Shape], answer: Sequence[Shape], atom: AtomRule, *, unordered: bool
) -> bool | None:
    """Whether the parts can be paired off, in any order.

    Equality is taken to be transitive, so that the first equal partner is as good as any.
    """
    open_answers = list(answer)
    waiting: list[Shape] = []
    for left in gold:
        for index, right in enumerate(open_answers):
            if same(left, right, atom, unordered=unordered) is True:
                del open_answers[index]
                break
        else:
            waiting.append(left)
    if not waiting:
        return True
    for left in waiting:
        verdicts = [same(left, right, atom, unordered=unordered) for right in open_answers]
        if None not in verdicts:
            return False
    return None
