"""Where a response holds its program."""

import re

from rewards.answers import after_thinking

LONGEST = 1 << 16
"""Characters of a program; a longer one is refused."""

_FENCE = re.compile(r"^[ \t]{0,3}```([^\n`]{0,40})$", re.MULTILINE)


def program_in(response: str, entry: str, prompt: str) -> str | None:
    """The program of a response; None where it has none.

    After the thinking: the last fenced block that names ``entry``, else the whole text if it
    defines ``entry``, else, where the text begins with an indented line, the continuation of
    ``prompt``. The prompt stands in front, for the imports and helpers in it.
    """
    text = after_thinking(response)
    blocks = [block for block in _blocks(text) if entry in block]
    defines = re.search(rf"^[ \t]*def[ \t]+{re.escape(entry)}\b", text, re.MULTILINE)
    if blocks:
        return f"{prompt}\n\n{blocks[-1]}"
    if defines:
        return f"{prompt}\n\n{text}"
    first = next((line for line in text.split("\n", 8)[:8] if line.strip()), "")
    return f"{prompt}{text}" if prompt and first[:1] in (" ", "\t") else None


def _blocks(text: str) -> list[str]:
    """The contents of closed fences; an opening one that is never closed reaches to the end."""
    found: list[str] = []
    start: int | None = None
    for mark in _FENCE.finditer(text):
        if start is None:
            start = mark.end() + 1
        else:
            found.append(text[start : mark.start()])
            start = None
    return found if start is None else [*found, text[start:]]
