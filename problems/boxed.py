r"""The last balanced ``\boxed{...}`` of a solution."""

import re

_OPENING = re.compile(r"\\f?box(?:ed)?\s*\{")
_MARK = re.compile(r"\\f?box(?:ed)?\s*\{|\\[\\{}]|[{}]")


def last_boxed(text: str) -> str | None:
    r"""Content of the last outermost balanced ``\boxed{...}`` or ``\fbox{...}``.

    Braces escaped as ``\{`` and ``\}`` do not count. One pass over the text, whatever it
    holds; None where no box is closed.

    Example: ``last_boxed(r"so \boxed{\frac{1}{2}}.") == r"\frac{1}{2}"``
    """
    found: str | None = None
    depths: list[int | None] = []  # where each open brace's box content starts; None: no box
    for mark in _MARK.finditer(text):
        token = mark.group()
        if token == "{":
            depths.append(None)
        elif token == "}":
            if not depths:
                continue
            start = depths.pop()
            if start is not None:
                found = text[start : mark.start()]
        elif _OPENING.match(token):
            depths.append(mark.end())
    return None if found is None else found.strip()
