"""Text of models made safe to look at and safe to embed: nothing hides, nothing breaks out."""

import json
import re
from typing import Any

# Characters that a reader cannot see, or that change what is seen around them: controls (line
# breaks and tabs are layout), soft hyphens, zero-width and directional marks, tags, private use,
# lone surrogates.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\ue000-\uf8ff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


def visible(text: str) -> str:
    """``text`` with every hidden character written out: ``\\x1b`` as ␛, U+202E as ``‹U+202E›``."""
    return _HIDDEN.sub(_shown, text)


def all_visible(value: Any) -> Any:
    """The same for every string in plain data, keys included."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(str(key)): all_visible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [all_visible(item) for item in value]
    return value


def script_json(value: Any) -> str:
    """JSON for the inside of a ``<script>`` element, where ``</script>`` and ``<!--`` would end or
    change it: no ``<``, ``>`` or ``&`` is left as such.

    Raises:
        ValueError: a number that JSON does not have.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"‹U+{code:04X}›"
