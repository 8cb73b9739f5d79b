r"""Limits on the length, nesting and exponents of a text before it is parsed.

A cap spares the deadline for the common blow-ups; what slips through is killed with its process.
"""

import math
import re

MAX_LENGTH = 512
"""Characters of an answer, and of a gold answer, that reach the parser."""
MAX_QUESTION = 8192
"""Characters of a question that are read."""
MAX_POWER = 10_000
"""The largest literal exponent, and the largest literal argument of a factorial."""
MAX_TOWER = 2
"""How deep exponents may stand in exponents."""
MAX_DEPTH = 8
"""How deep brackets may stand in brackets; the parser's time grows by a half with each level."""

_POWER = re.compile(r"(?:\^|\*\*)[\s{(]*[+-]?\s*([0-9]+)")
_NUMERIC_TOWER = re.compile(r"(?:\^|\*\*)[\s{(]*([0-9]+)[\s})]*(?:\^|\*\*)[\s{(]*([0-9]+)")
_FACTORIAL = re.compile(r"([0-9]+)[\s)}]*!")
_FACTORIALS = re.compile(r"![\s)}\]]*!")
_BRACKET = re.compile(r"\\\\|\\[{}]|[()\[\]{}]")
_EXPONENT_OR_GROUP = re.compile(r"\\\\|\\[{}]|(?:\^|\*\*)\s*[{(]|\^|\*\*|[{}()]")


def balanced(text: str) -> bool:
    """Whether every brace of a group is opened and closed."""
    depth = 0
    for match in re.finditer(r"\\[\\{}]|[{}]", text):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth < 0:
            return False
    return depth == 0


def tower(text: str) -> int:
    """How deep exponents stand in exponents: 1 for ``x^2``, 3 for ``9^{9^{9^9}}``."""
    deepest = 0
    groups: list[bool] = []  # of each open group, whether it is an exponent
    for match in _EXPONENT_OR_GROUP.finditer(text):
        token = match.group()
        if token[0] in "^*":
            deepest = max(deepest, sum(groups) + 1)
            if token[-1] in "{(":
                groups.append(True)
        elif token in ("{", "("):
            groups.append(False)
        elif token in ("}", ")") and groups:
            groups.pop()
    return deepest


def nesting(text: str) -> int:
    """How deep brackets of any kind stand in brackets: 2 for ``((x))``."""
    depth = deepest = 0
    for match in _BRACKET.finditer(text):
        token = match.group()[-1]
        if token in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif token in ")]}":
            # "]0,1[" closes what it never opened.
            depth = max(0, depth - 1)
    return deepest


def refuses(text: str) -> bool:
    """Whether ``text`` is empty, too long, unprintable, unbalanced or too large to be parsed."""
    if not text or len(text) > MAX_LENGTH or not balanced(text):
        return True
    if any((c < " " and c not in "\t\n\r") or "\ud800" <= c <= "\udfff" for c in text):
        return True
    literals = _POWER.findall(text) + _FACTORIAL.findall(text)
    if any(int(digits) > MAX_POWER for digits in literals):
        return True
    if tower(text) > MAX_TOWER or nesting(text) > MAX_DEPTH or _FACTORIALS.search(text):
        return True
    return any(
        # The exponent is itself a power: 9^{9^9} has 9^9 for its exponent.
        int(base) > 1 and int(power) * math.log10(int(base)) > math.log10(MAX_POWER)
        for base, power in _NUMERIC_TOWER.findall(text)
    )
