"""Reading what a server sent, which may be anything."""

import json
from dataclasses import dataclass
from typing import Any

from experts.failure import AttemptFailure

_SHOWN = 160


@dataclass(frozen=True)
class Reply:
    """One choice of a chat or text completion."""

    text: str
    thinking: str
    """Thinking that the server has already separated from the text."""
    ended: bool
    """False where the server cut the reply at its token limit."""
    stopped_by: str
    """The stop string that ended it, where the server says so; it is not part of the text."""
    prompt_tokens: int
    completion_tokens: int


def read_reply(body: bytes, content_type: str) -> Reply:
    """The first choice of an OpenAI-compatible completion.

    Raises:
        AttemptFailure: the body is not JSON (``html``, ``bad_json``), or JSON of another shape
            (``schema``).
    """
    start = body[:512].lstrip()
    if "html" in content_type.lower() or start.startswith(b"<"):
        raise AttemptFailure("html", "server sent a web page", retry=True, example=shown(body))
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        raise AttemptFailure(
            "bad_json", "server sent no whole JSON", retry=True, example=shown(body)
        ) from None
    choice = _first(data.get("choices")) if isinstance(data, dict) else None
    if not isinstance(choice, dict):
        raise AttemptFailure("schema", "server's JSON has no choice", example=shown(body))
    message = choice.get("message")
    if isinstance(message, dict):
        text = message.get("content")
        thinking = message.get("reasoning_content") or message.get("reasoning")
        # A model cut off while it thinks has null content.
        text = "" if text is None and isinstance(thinking, str) else text
    else:
        text, thinking = choice.get("text"), None
    if not isinstance(text, str):
        raise AttemptFailure("schema", "server's choice has no text", example=shown(body))
    stop = choice.get("stop_reason")
    usage = data.get("usage")
    return Reply(
        text=text,
        thinking=thinking if isinstance(thinking, str) else "",
        ended=choice.get("finish_reason") != "length",
        stopped_by=stop if isinstance(stop, str) else "",
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
    )


def shown(body: bytes) -> str:
    """The beginning of ``body`` in one printable line."""
    text = body[: 4 * _SHOWN].decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_SHOWN]


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and 0 <= value < 2**40 else 0
