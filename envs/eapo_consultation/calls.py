r"""Reading a policy's calls: JSON that a language model wrote, with LaTeX in it.

LaTeX inside JSON strings breaks strict parsers twice: ``"\sigma"`` is an error, and ``"\tau"``,
``"\frac"``, ``"\nu"``, ``"\beta"``, ``"\rho"`` are read as control characters without a word.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

LONGEST = 1 << 16
"""Characters of a call; longer ones are refused unread."""

# Kept: \\ \" \/ \uXXXX, and \n where no letter follows. Every other backslash is LaTeX's.
_BACKSLASH = re.compile(r'\\(?:\\|"|/|u[0-9a-fA-F]{4}|n(?![A-Za-z]))|\\')
# Possessive, and an unclosed string runs to the end: one pass whatever the text.
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\[\s\S]?)*+(?:"|\Z)|,(?=\s*+[\]}])')


@dataclass(frozen=True)
class Call:
    """One question to one expert."""

    expert_id: int
    """Counted from 1."""
    query: str


def parse_calls(text: str, experts: int, at_once: int | None = None) -> list[Call] | str:
    """The calls in ``text``, or a sentence that says what is wrong with it.

    Args:
        text: what stands between the tags.
        experts: ids go from 1 to this.
        at_once: most calls in it; as many as there are experts without it.

    Accepted: a list of objects ``{"expert_id": 1, "input_parameters": {"query": "..."}}``, a single
    object, commas before closing brackets. An expert can be asked one thing at a time.

    >>> parse_calls('{"expert_id": 2, "input_parameters": {"query": "$\\tau(n)$?"}}', 3)
    [Call(expert_id=2, query='$\\tau(n)$?')]
    """
    if len(text) > LONGEST:
        return f"the call has more than {LONGEST} characters"
    data = _loads(text)
    if data is None:
        return "the call is not JSON"
    items = [data] if isinstance(data, dict) else data
    if not isinstance(items, list) or not items:
        return "the call must be a list with at least one entry"
    if at_once is not None and len(items) > at_once:
        return f"at most {at_once} can be asked at once"
    calls: list[Call] = []
    for item in items:
        call = _call(item, experts)
        if isinstance(call, str):
            return call
        if any(call.expert_id == other.expert_id for other in calls):
            return f"expert {call.expert_id} is asked twice at once"
        calls.append(call)
    return calls


def escape_latex(text: str) -> str:
    r"""``text`` with every backslash doubled that JSON would misread.

    >>> escape_latex(r'"\frac12 \n"')
    '"\\\\frac12 \\n"'
    """
    return _BACKSLASH.sub(lambda match: match[0] if len(match[0]) > 1 else r"\\", text)


def _loads(text: str) -> Any:
    text = _STRING_OR_COMMA.sub(lambda m: "" if m[0] == "," else m[0], escape_latex(text))
    try:
        # Not strict: a line break inside a string is a line break.
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _call(item: Any, experts: int) -> Call | str:
    if not isinstance(item, dict):
        return "each entry of a call must be an object"
    expert_id, parameters = item.get("expert_id"), item.get("input_parameters")
    if type(expert_id) is not int or not 1 <= expert_id <= experts:
        return f"expert_id must be a whole number from 1 to {experts}"
    query = parameters.get("query") if isinstance(parameters, dict) else None
    if not isinstance(query, str) or not query.strip():
        return "input_parameters must hold a query"
    # A lone surrogate, which JSON can spell, is no text.
    return Call(expert_id, query.encode("utf-8", "replace").decode())
