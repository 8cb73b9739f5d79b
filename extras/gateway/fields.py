"""Reads the JSON of requests. Each function returns a valid value, or refuses with one sentence."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.extras.gateway.messages import Refused, Speaker, Tool, ToolCall, canonical_json

MOST_ENTRIES = 4096
"""Messages or tools of a request."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_CONVERSATIONS = ("messages", "input")
"""The field with the conversation, which every wire reads itself."""
SAMPLING: Mapping[str, Sequence[Any]] = {
    "seed": (),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "top_k": (-1, 0),
    "min_p": (0,),
}
"""Sampling setting that is never applied -> its values that change nothing."""


@dataclass(frozen=True)
class Wire:
    """The fields of a wire; every other field is refused. None is allowed everywhere."""

    read: Collection[str]
    """Fields that are applied, or that change nothing in an answer."""
    only: Mapping[str, Sequence[Any]]
    """Field -> its allowed values."""
    ignored: Mapping[str, Sequence[Any]]
    """Field -> its values that change nothing; with another value, which is not applied, the
    request counts as ``sampling_ignored``."""


def read_body(body: bytes) -> dict[str, Any]:
    """Parse a body, which must be a JSON object."""
    try:
        value = json.loads(body.decode())
        if _SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refused(400, "the body has half of a surrogate pair, which is no character") from None
    except (ValueError, RecursionError):
        raise Refused(400, "the body is no JSON") from None
    if not isinstance(value, dict):
        raise Refused(400, "the body must be a JSON object")
    return value


def check(body: Mapping[str, Any], wire: Wire) -> bool:
    """Refuse unsupported fields; return whether a sampling setting is ignored."""
    ignored = False
    for name, value in body.items():
        if value is None or name in wire.read or name in _CONVERSATIONS:
            continue
        if name in wire.ignored:
            ignored |= value not in wire.ignored[name]
        elif value not in wire.only.get(name, ()):
            raise Refused(400, f"{_shown(name)} is not supported here: leave it out")
    return ignored


def check_inside(
    body: Mapping[str, Any],
    name: str,
    only: Mapping[str, Sequence[Any]],
    ignored: Collection[str] = (),
) -> bool:
    """Like :func:`check`, for the fields inside a field that is an object.

    Args:
        body: the body of the request.
        name: name of the field.
        only: inner field -> its allowed values.
        ignored: inner fields that are not applied, whatever their value.
    """
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, dict):
        raise Refused(400, f"{name} must be an object")
    for inner, setting in value.items():
        if setting is not None and inner not in ignored and setting not in only.get(inner, ()):
            raise Refused(
                400, f"{name} is not supported here with this {_shown(inner)}: leave it out"
            )
    return any(value.get(inner) is not None for inner in ignored)


def _shown(name: str) -> str:
    """A field's name for a message; the sender may have written anything."""
    return name if name.isidentifier() and len(name) < 80 else ascii(name)[:80]


def objects(value: Any, name: str) -> list[dict[str, Any]]:
    """A list of JSON objects."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Refused(400, f"{name} must be a list of objects")
    if len(value) > MOST_ENTRIES:
        raise Refused(400, f"{name} has more than {MOST_ENTRIES} entries")
    return value


def text(value: Any, name: str) -> str:
    """A string, or the text of a list of text parts; "" for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
        raise Refused(
            400, f"{name} must be text, or a list of parts that are text: write an object as JSON"
        )
    parts = []
    for part in objects(value, name):
        kind = "text" if part.get("type") is None else part["type"]
        if kind not in ("text", "input_text", "output_text"):
            raise Refused(400, f"{name} has a part of type {kind!r:.40}: only text is read")
        if not isinstance(part.get("text"), str):
            raise Refused(400, f"{name} has a part of text without text")
        parts.append(part["text"])
    return "".join(parts)


def word(value: Any, name: str) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise Refused(400, f"{name} must be text")
    return value


def truth(value: Any, name: str, *, default: bool) -> bool:
    """A boolean; ``default`` for None."""
    if value is None:
        return default
    if not isinstance(value, bool):
        raise Refused(400, f"{name} must be true or false")
    return value


def speaker(value: Any, known: Collection[Speaker]) -> Speaker:
    """Who speaks in a message; OpenAI's clients may call the system a developer."""
    for name in known:
        if value == name or (value == "developer" and name == "system"):
            return name
    raise Refused(400, f"a message has the role {value!r:.40}")


def identity(value: Any, name: str) -> str:
    """The id of a call; "" for None."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Refused(400, f"{name} must be text")
    return value


def count(value: Any, name: str) -> int | None:
    """A whole number of at least 1, or None."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Refused(400, f"{name} must be a whole number of at least 1")
    return value


def sampling(body: Mapping[str, Any]) -> dict[str, float]:
    """The requested temperature (0 to 2) and top-p (0 to 1)."""
    requested: dict[str, float] = {}
    for name, most in (("temperature", 2), ("top_p", 1)):
        if (number := body.get(name)) is None:
            continue
        if type(number) not in (int, float) or not 0 <= number <= most:
            raise Refused(400, f"{name} must be a number from 0 to {most}")
        requested[name] = float(number)
    if "top_p" in requested:
        # The sampler needs a number above 0; both keep the likeliest token only.
        requested["top_p"] = max(requested["top_p"], 1e-6)
    return requested


def words(value: Any, name: str) -> tuple[str, ...]:
    """A string or a list of at most 16 strings; none may be empty."""
    value = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise Refused(400, f"{name} must be text, or a list of texts")
    if len(value) > 16:
        raise Refused(400, f"{name} has more than 16 entries")
    return tuple(value)


def tool(name: Any, description: Any, parameters: Any) -> Tool:
    """A tool that may be called."""
    description = description if isinstance(description, str) else ""
    sorted_keys, own = (canonical_json(parameters or {}, sort=sort) for sort in (True, False))
    return Tool(word(name, "a tool's name"), description, sorted_keys, own)


def call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    """A call that an assistant made."""
    return ToolCall(
        identity(call_id, "the id of a call"),
        word(name, "the name of a called tool"),
        canonical_json(arguments if arguments is not None else {}),
    )


def event(data: Any, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    # Many clients split lines at characters such as U+2028, too: JSON in ASCII has none of them.
    text = data if isinstance(data, str) else json.dumps(data)
    return f"{head}data: {text}\n\n".encode()
