r"""The shape of an answer: one value, an ordered tuple or interval, an unordered collection.

Brackets are part of the shape: ``(0,1)``, ``[0,1]`` and ``(0,1]`` are three different answers.
"""

import re
from dataclasses import dataclass

from rewards.answers.normalise import plain
from rewards.answers.rational import drop_thousands

_TOKEN = re.compile(
    r"\\\\|\\[{}]|\\[lr]angle(?![A-Za-z])|[()\[\]{}]|[,;]"
    r"|(?<=[\s\d)}\]])(?:and|or)(?=[\s\d(\\-])"
)
_OPEN = frozenset({"(", "[", "{", r"\{", r"\langle"})
_CLOSE = frozenset({")", "]", "}", r"\}", r"\rangle"})
_SEPARATORS = frozenset({",", ";", "and", "or"})
_BRACKETS = {"(": "()", "[": "[]"}
_LOOSE_COMMA = re.compile(r"[,;]\s|\s(?:and|or)\s")
_SIGNS = re.compile(r"\\pm(?![A-Za-z])")


@dataclass(frozen=True)
class Shape:
    """An answer taken apart."""

    text: str
    """The whole of it, as ``normalise.plain`` writes it."""
    ends: str = ""
    """Opening and closing bracket of a tuple or interval (``"(]"``), ``","`` for an unordered
    collection, empty for one value."""
    items: tuple["Shape", ...] = ()

    @property
    def is_value(self) -> bool:
        """Whether there is nothing to take apart."""
        return not self.ends


def _split(text: str) -> tuple[list[str], bool] | None:
    """The pieces between top-level separators, and whether one pair of brackets spans the text.

    None where the brackets do not balance.
    """
    depth = 0
    pieces: list[str] = []
    start = 0
    spans = True
    last = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in _OPEN:
            if depth == 0 and match.start() > 0:
                spans = False
            depth += 1
        elif token in _CLOSE:
            depth -= 1
            if depth < 0:
                return None
            if depth == 0:
                last = match.end()
        elif depth == 0 and token in _SEPARATORS:
            pieces.append(text[start : match.start()])
            start = match.end()
    if depth:
        return None
    pieces.append(text[start:])
    return pieces, spans and last == len(text)


def _expand_signs(text: str) -> list[str]:
    r"""``1 \pm \sqrt{19}`` as the two values that it stands for."""
    if len(_SIGNS.findall(text)) != 1:
        return [text]
    return [_SIGNS.sub(sign, text) for sign in ("+", "-")]


def _inside(text: str) -> tuple[str, str] | None:
    """(ends, content) of a text that is one bracket; the caller knows that a pair spans it."""
    for opening, name in ((r"\{", ","), (r"\langle", "<")):
        closing = {r"\{": r"\}", r"\langle": r"\rangle"}[opening]
        if text.startswith(opening) and text.endswith(closing):
            ends = "," if name == "," else "<>"
            return ends, text[len(opening) : -len(closing)]
    if text[:1] in _BRACKETS and text[-1:] in ")]":
        return text[0] + text[-1], text[1:-1]
    return None


def _shape(text: str, depth: int) -> Shape:
    text = plain(text)
    parts = _split(text)
    if parts is None or depth == 0:
        return Shape(text)
    pieces, spans = parts
    pieces = [piece for piece in map(plain, pieces) if piece]
    if len(pieces) > 1:
        values = [value for piece in pieces for value in _expand_signs(piece)]
        return Shape(text, ",", tuple(_shape(value, depth - 1) for value in values))
    bracket = _inside(text) if spans else None
    if bracket is not None:
        ends, content = bracket
        inner = _split(content)
        if inner is None:
            return Shape(text)
        within = [piece for piece in map(plain, inner[0]) if piece]
        if len(within) == 1:
            # A single value in brackets is that value: "[42]", "(C)", "\{7\}".
            return _shape(within[0], depth - 1)
        if not within:
            return Shape(text)
        if ends == ",":
            within = [value for piece in within for value in _expand_signs(piece)]
        return Shape(text, ends, tuple(_shape(piece, depth - 1) for piece in within))
    signs = _expand_signs(text)
    if len(signs) == 2:
        return Shape(text, ",", tuple(Shape(plain(value)) for value in signs))
    return Shape(text)


def shape(text: str, *, thousands: bool = True, depth: int = 4) -> Shape:
    """Take an answer apart.

    ``thousands`` reads ``1,080`` as one number; brackets always separate (``(1,080)`` is a
    pair). Brackets that do not balance, or stand deeper than ``depth``, stay one value.
    """
    text = plain(text)
    if thousands and not text.startswith(("(", "[", "\\{", "\\langle")):
        text = _outside_brackets(text)
    return _shape(text, depth)


def _outside_brackets(text: str) -> str:
    """Drop the commas of thousands where no bracket is open."""
    pieces: list[str] = []
    depth = 0
    start = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in _OPEN:
            if depth == 0:
                pieces.append(drop_thousands(text[start : match.start()]))
                start = match.start()
            depth += 1
        elif token in _CLOSE and depth:
            depth -= 1
            if depth == 0:
                pieces.append(text[start : match.end()])
                start = match.end()
    rest = text[start:]
    pieces.append(drop_thousands(rest) if depth == 0 else rest)
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
