"""Reading the JSON of requests: each function gives what it must be, or one sentence."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from coterie.extras.gateway.messages import Refused, Tool, ToolCall, canonical_json

MOST_MESSAGES = 4096
_TEXTS = ("text", "input_text", "output_text")


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is."""
    try:
        value = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise Refused(400, "the body is no JSON") from None
    if not isinstance(value, dict):
        raise Refused(400, "the body must be a JSON object")
    return value


def refuse_unsupported(body: Mapping[str, Any], names: Mapping[str, Sequence[Any]]) -> None:
    """Refuse what would be ignored: a name with another value than those listed, or None."""
    for name, value in body.items():
        if name in names and value is not None and value not in names[name]:
            raise Refused(400, f"{name} is not supported here: leave it out")


def objects(value: Any, name: str) -> list[dict[str, Any]]:
    """A list of JSON objects."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Refused(400, f"{name} must be a list of objects")
    if len(value) > MOST_MESSAGES:
        raise Refused(400, f"{name} has more than {MOST_MESSAGES} entries")
    return value


def text(
    value: Any, name: str, kinds: Sequence[str] = ("text", "input_text", "output_text")
) -> str:
    """A string, or the text of a list of parts, which are nothing but text; "" for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    parts = []
    for part in objects(value, name):
        if part.get("type", "text") not in kinds or not isinstance(part.get("text"), str):
            raise Refused(
                400, f"{name} has a part of type {part.get('type')!r:.40}: only text is read"
            )
        parts.append(part["text"])
    return "".join(parts)


def word(value: Any, name: str) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise Refused(400, f"{name} must be text")
    return value


def count(value: Any, name: str) -> int | None:
    """A number of at least 1, or none."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Refused(400, f"{name} must be a whole number of at least 1")
    return value


def sampling(body: Mapping[str, Any]) -> dict[str, float]:
    """The temperature (0 to 2) and top-p (0 to 1) that a request names."""
    named: dict[str, float] = {}
    for name, most in (("temperature", 2), ("top_p", 1)):
        if (number := body.get(name)) is None:
            continue
        if type(number) not in (int, float) or not 0 <= number <= most:
            raise Refused(400, f"{name} must be a number from 0 to {most}")
        named[name] = float(number)
    if "top_p" in named:
        # At 0 the likeliest token alone is left, as just above it.
        named["top_p"] = max(named["top_p"], 1e-6)
    return named


def words(value: Any, name: str) -> tuple[str, ...]:
    """A string or a list of strings, none empty."""
    value = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise Refused(400, f"{name} must be text, or a list of texts")
    if len(value) > 16:
        raise Refused(400, f"{name} has more than 16 entries")
    return tuple(value)


def tool(name: Any, description: Any, parameters: Any) -> Tool:
    """A function that may be called."""
    described = description if isinstance(description, str) else ""
    return Tool(word(name, "a tool's name"), described, canonical_json(parameters or {}))


def call(identity: Any, name: Any, arguments: Any) -> ToolCall:
    """A call that an assistant made."""
    return ToolCall(
        identity if isinstance(identity, str) else "",
        word(name, "the name of a called tool"),
        canonical_json(arguments if arguments is not None else {}),
    )


def event(data: Any, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    shown = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{head}data: {shown}\n\n".encode("utf-8", "replace")
