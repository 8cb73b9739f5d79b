r"""The shape of an answer: one value, a tuple or interval, a collection, a union, a matrix.

Brackets are part of the shape: ``(0,1)``, ``[0,1]`` and ``(0,1]`` are three different answers. A
name is not: ``x = 5`` is 5 by the name of x, ``0 \le x < 1`` and ``x \in [0,1)`` are one interval.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from coterie.rewards.grading.answers.grammar import SYMBOLS
from coterie.rewards.grading.answers.normalise import plain
from coterie.rewards.grading.answers.values import drop_thousands

_BRACKET = r"\\\\|\\[{}]|\\[lr]angle(?![A-Za-z])|[()\[\]{}]"
_OPEN = frozenset({"(", "[", "{", r"\{", r"\langle"})
_CLOSE = frozenset({")", "]", "}", r"\}", r"\rangle"})


def _between(separator: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<bracket>{_BRACKET})|{separator}")


_COMMA = _between(r"[,;]|(?<=[\s\d)}\]])(?:and|or)(?=[\s\d(\[\\-])|\\lor(?![A-Za-z])")
_UNION = _between(r"\\cup(?![A-Za-z])")
_RELATION = _between(r"\\(?:le|ge|lt|gt|in)(?![A-Za-z])|[<>]=?|=")
_LESS = {"<": ")", r"\lt": ")", "<=": "]", r"\le": "]"}
_MORE = {">": "(", r"\gt": "(", ">=": "[", r"\ge": "["}
_LOOSE_COMMA = re.compile(r"[,;]\s|\s(?:and|or)\s")
_PAIRS = (
    (r"\{", r"\}", ","),
    ("{", "}", ","),
    (r"\langle", r"\rangle", "<>"),
    *((left, right, left + right) for left in "([" for right in ")]"),
)
_SIGNS = re.compile(r"\\(?:pm|mp)(?![A-Za-z])")
_MATRIX = re.compile(
    r"\\begin ?\{ ?(?P<name>[pbB]?matrix|array) ?\}(?: ?\{[lcr| ]{0,16}\})?(?P<body>[^\0]*)"
    r"\\end ?\{ ?(?P=name) ?\}"
)
_SUCH_THAT = re.compile(
    r"\\\{ ?[A-Za-z] ?(?:\\in ?\(-\\infty, ?\\infty\) ?)?(?:\||:|\\mid(?![A-Za-z]))(?=[^|:]*\Z)"
)
_INDEX = r"(?: ?_ ?(?:\{[^{}]{1,16}\}|[A-Za-z0-9]))?"
_SYMBOL = rf"(?:[A-Za-z]|{'|'.join(map(re.escape, sorted(SYMBOLS, reverse=True)))})'{{0,3}}{_INDEX}"
_VARIABLE = re.compile(_SYMBOL)
DERIVATIVE = re.compile(r"\\frac ?\{ ?d ?[A-Za-z]? ?\} ?\{ ?d ?[A-Za-z] ?\}")
_ANGLE = rf"(?:\\angle ?)?(?:[A-Z]{{3}}|{_SYMBOL})"
FUNCTION_OF_ANGLE = re.compile(
    rf"\\(?:sin|cos|tan|cot|sec|csc)(?: ?\^ ?\{{?[0-9]\}}?)? ?"
    rf"(?:\{{ ?{_ANGLE} ?\}}|\( ?{_ANGLE} ?\)|{_ANGLE})(?![A-Za-z0-9])"
)
_NAME = re.compile(
    # P(X=1), x_1, f(x), f^{-1}(x), T(10); dy/dx; AB, \angle ABC, [ABC]; (x, y); "total area"
    rf"P ?\([^()]{{1,24}}\)|{_SYMBOL}(?:\^\{{-1\}})?"
    r"(?: ?\((?:[A-Za-z0-9](?:, ?[A-Za-z0-9]){0,3}|[0-9]{1,4}(?: ?/ ?[0-9]{1,4})?)\))?"
    rf"|{DERIVATIVE.pattern}|{FUNCTION_OF_ANGLE.pattern}"
    rf"|(?:m? ?\\angle ?)?[A-Z]{_INDEX}(?: ?[A-Z]{_INDEX}){{0,3}}|\[[A-Z]{{3,5}}\]|\|[A-Z]{{2}}\|"
    rf"|\( ?{_SYMBOL}(?: ?, ?{_SYMBOL}){{1,5}} ?\)|\\vec ?\{{ ?[A-Za-z] ?\}}"
    r"|(?P<words>[A-Za-z][a-z]{2,15}(?: [a-z]{3,15})?)"
)
_QUANTITIES = """
age amount angle answer area average circumference cost degree diameter difference distance final
height length maximum mean median minimum mode number perimeter price probability product profit
radius rate ratio result slope speed sum surface time total value volume weight width
"""
_NAMED = frozenset(_QUANTITIES.split())


@dataclass(frozen=True)
class Shape:
    """An answer taken apart."""

    text: str
    """The whole of it without its name, as ``normalise.plain`` writes it."""
    ends: str = ""
    r"""Opening and closing bracket of a tuple or interval (``"(]"``), ``","`` for an unordered
    collection, ``"\cup"`` for a union, ``"matrix"`` and ``"row"``; empty for one value."""
    items: tuple["Shape", ...] = ()
    name: str = ""
    """The variable whose value it is said to be."""

    @property
    def is_value(self) -> bool:
        """Whether there is nothing to take apart."""
        return not self.ends


def split(text: str, separators: re.Pattern[str]) -> tuple[list[str], list[str]] | None:
    """(pieces, separators between them) where no bracket is open; None if brackets do not match."""
    depth = start = 0
    pieces: list[str] = []
    between: list[str] = []
    for match in separators.finditer(text):
        token = match.group()
        if match["bracket"]:
            depth += (token in _OPEN) - (token in _CLOSE)
            if depth < 0:
                return None
        elif depth == 0:
            pieces.append(text[start : match.start()])
            between.append(token)
            start = match.end()
    return None if depth else ([*map(plain, pieces), plain(text[start:])], between)


def equation(text: str) -> tuple[str, str] | None:
    """The sides of a text with one equals sign and no other relation."""
    parts = split(text, _RELATION)
    return (parts[0][0], parts[0][1]) if parts is not None and parts[1] == ["="] else None


def shape(text: str, *, thousands: bool = True) -> Shape:
    """Take an answer apart.

    ``thousands`` reads ``1,080`` as one number; brackets always separate (``(1,080)`` is a
    pair). Brackets that do not balance, or stand deeper than five levels, stay one value.
    """
    text = plain(text)
    return _shape(_outside_brackets(text) if thousands else text, 5)


def _shape(text: str, depth: int) -> Shape:
    parts = split(text, _COMMA) if depth else None
    if parts is None:
        return Shape(text)
    pieces = [piece for piece in parts[0] if piece]
    if len(pieces) > 1:
        items = _shapes(pieces, depth)
        joined = set(parts[1]) <= {"or", r"\lor"}
        if joined and all(map(_is_interval, items)):
            return Shape(text, r"\cup", items)
        return Shape(text) if r"\lor" in parts[1] else Shape(text, ",", items)
    return (
        _matrix(text, depth)
        or _named(text, depth)
        or _union(text, depth)
        or _bracketed(text, depth)
        or _pointed(text, depth)
        or _two_signs(text)
        or Shape(text)
    )


def _is_interval(item: Shape) -> bool:
    """Whether it is an interval, by its bounds or brackets, and no point."""
    intervals = ("[]", "[)", "(]")
    endless = item.ends == "()" and any(r"\infty" in end.text for end in item.items)
    return bool(item.name and item.ends) or item.ends in intervals or endless


def _shapes(pieces: Sequence[str], depth: int) -> tuple[Shape, ...]:
    return tuple(_shape(sign, depth - 1) for piece in pieces for sign in _expand_signs(piece))


def _expand_signs(text: str) -> list[str]:
    r"""``1 \pm \sqrt{19}`` as the two values that it stands for."""
    if len(_SIGNS.findall(text)) != 1:
        return [text]
    return [plain(_SIGNS.sub(sign, text)) for sign in ("+", "-")]


def _two_signs(text: str) -> Shape | None:
    signs = _expand_signs(text)
    return Shape(text, ",", tuple(map(Shape, signs))) if len(signs) == 2 else None


def _matrix(text: str, depth: int) -> Shape | None:
    match = _MATRIX.fullmatch(text)
    if match is None or "\\begin" in match["body"]:
        return None
    rows = [row for row in map(plain, re.split(r"\\\\", match["body"])) if row]
    cells = [tuple(_shape(plain(cell), depth - 1) for cell in row.split("&")) for row in rows]
    lines = tuple(Shape(row, "row", items) for row, items in zip(rows, cells, strict=True))
    return Shape(text, "matrix", lines)


_POINT = re.compile(r"[A-Z]'?(?:_\{?[0-9]\}?)?\s?(?=\()")


def _pointed(text: str, depth: int) -> Shape | None:
    """``P(3, -1)`` as the pair of the name P."""
    match = _POINT.match(text)
    pair = _bracketed(text[match.end() :], depth) if match else None
    if match is None or pair is None or pair.ends != "()":
        return None
    return replace(pair, name=match[0].strip())


def _named(text: str, depth: int) -> Shape | None:
    """An equation or membership by its right side, bounds of a variable as an interval."""
    parts = split(text, _RELATION)
    if parts is None or not parts[1]:
        return None
    sides, signs = parts
    if len(signs) == 1 and signs[0] in ("=", r"\in"):
        name = _name(sides[0])
        if not name and signs[0] == "=" and _VARIABLE.fullmatch(sides[1]):
            # 5 = x
            name, sides = sides[1].replace(" ", ""), sides[::-1]
        if len(name) == 1 and re.search(
            rf"(?:\A|(?<=[^\sA-Za-z\\])|(?<=[0-9]\s)){name}(?![A-Za-z_(])", sides[1]
        ):
            # "x = 4x" says nothing of x.
            return None
        return replace(_shape(sides[1], depth - 1), name=name) if name else None
    if all(sign in _MORE for sign in signs):
        # 1 > x >= 0 is 0 <= x < 1.
        turned = {**dict(zip(_MORE, _LESS, strict=True))}
        sides, signs = sides[::-1], [turned[sign] for sign in signs[::-1]]
    if not all(sign in _LESS for sign in signs) or len(signs) > 2:
        return None
    if len(signs) == 1:
        if _name(sides[0]):
            sides, signs = [r"-\infty", *sides], ["<", *signs]
        else:
            sides, signs = [*sides, r"\infty"], [*signs, "<"]
    name = _name(sides[1])
    if not name:
        return None
    left = {")": "(", "]": "["}[_LESS[signs[0]]]
    bounds = tuple(_shape(side, 0) for side in (sides[0], sides[2]))
    return Shape(text, left + _LESS[signs[1]], bounds, name)


def _name(text: str) -> str:
    """The variable, function or quantity that ``text`` names; empty if it is no name."""
    match = _NAME.fullmatch(text)
    if match is None:
        return ""
    if match["words"] and not _NAMED.issuperset(match["words"].casefold().split()):
        return ""
    return text.replace(" ", "")


def _union(text: str, depth: int) -> Shape | None:
    parts = split(text, _UNION)
    if parts is None or not parts[1]:
        return None
    return Shape(text, r"\cup", tuple(_shape(piece, depth - 1) for piece in parts[0]))


def _bracketed(text: str, depth: int) -> Shape | None:
    r"""A text in one pair of brackets; ``\{x : x < 1\}`` is an interval."""
    if (match := _SUCH_THAT.match(text)) and text.endswith(r"\}"):
        return _shape(plain(text[match.end() : -2]), depth - 1)
    pairs = (pair for pair in _PAIRS if text.startswith(pair[0]) and text.endswith(pair[1]))
    opening, closing, ends = next(pairs, ("", "", ""))
    inner = split(text[len(opening) : -len(closing)], _COMMA) if ends else None
    within = [piece for piece in inner[0] if piece] if inner else []
    if len(within) < 2:
        single = _shape(within[0], depth - 1) if within and opening != "{" else None
        # A set that holds a set is no such set, and one that holds the empty set is not empty.
        is_set = single is not None and (single.ends == "," or single.text == r"\emptyset")
        return None if ends == "," and is_set else single
    if ends == ",":
        return Shape(text, ends, _shapes(within, depth))
    return Shape(text, ends, tuple(_shape(piece, depth - 1) for piece in within))


def _outside_brackets(text: str) -> str:
    """Drop the commas of thousands where no bracket is open."""
    pieces: list[str] = []
    depth = 0
    for piece in re.split(f"({_BRACKET})", text):
        depth += (piece in _OPEN) - (piece in _CLOSE and depth > 0)
        pieces.append(piece if depth else drop_thousands(piece))
    return "".join(pieces)


def readings(text: str) -> tuple[Shape, ...]:
    """How a text of a comma-separated list may be read, the likelier reading first.

    In ``2,400, 1,350`` the tight commas are thousands; in ``100,200`` both readings exist.
    """
    text = plain(text)
    loose = bool(_LOOSE_COMMA.search(text))
    first = shape(text, thousands=loose)
    second = shape(text, thousands=not loose)
    return (first,) if first == second else (first, second)
