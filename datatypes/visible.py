"""Text of models for human readers: hidden characters are written out.

A terminal obeys escape sequences, and a page shows text in another order after directional marks.
"""

import re

# Characters that are invisible, or that change how others look: controls (but line breaks and
# tabs), soft hyphens, zero-width and directional marks, tags, private use, lone surrogates.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\ue000-\uf8ff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


def visible(text: str) -> str:
    """``text`` with every hidden character written out: ``\\x1b`` as ␛, U+202E as ``‹U+202E›``."""
    return _HIDDEN.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"‹U+{code:04X}›"
