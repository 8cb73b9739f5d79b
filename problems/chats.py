"""Reads chats: ``role`` and ``content`` (OpenAI), ``from`` and ``value`` (ShareGPT)."""

from collections.abc import Callable, Mapping
from typing import Any

from coterie.problems.gold import UnusableRowError

_ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "gpt", "model", "bot", "chatgpt"), "assistant"),
}


def is_chat(value: Any) -> bool:
    """Whether ``value`` is a list of messages."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(entry, Mapping) and _keys(entry) is not None for entry in value)
    )


def messages(column: str, value: Any) -> list[tuple[str, str]]:
    """Return (role, text) of each message with text; roles are system, user and assistant.

    Raises:
        UnusableRowError: a message has another role, calls a tool, or is not text.
    """
    if not is_chat(value):
        raise UnusableRowError(f"{column!r} is a list, not text or a chat")
    read: list[tuple[str, str]] = []
    for entry in value:
        role, content = (entry.get(key) for key in _keys(entry) or ())
        if (name := _ROLES.get(str(role))) is None or entry.get("tool_calls"):
            what = "calls a tool" if name else f"has the role {str(role)[:40]!r}"
            raise UnusableRowError(
                f"a message of {column!r} {what}; a question can hold system, user and assistant"
            )
        if text := _content(column, content):
            read.append((name, text))
    return read


def question_and_response(
    column: str, value: Any, edit: Callable[[str], str] = str.strip
) -> tuple[str, str | None]:
    """Return the chat up to the last message of the user as one text, and the assistant's reply.

    A system message comes first. If the user has several messages, ``User:`` and ``Assistant:``
    begin each turn.

    Args:
        column: column of the chat, for error messages.
        value: the chat.
        edit: applied to the messages of the user.

    Raises:
        UnusableRowError: there is no message of the user, or an unreadable message.
    """
    turns = messages(column, value)
    last = max((i for i, (role, _) in enumerate(turns) if role == "user"), default=-1)
    if last < 0:
        raise UnusableRowError(f"{column!r} is a list without a message of the user")
    response = "\n".join(text for role, text in turns[last + 1 :] if role == "assistant") or None
    before = turns[: last + 1]
    if len(before) < len(turns) and any(role == "system" for role, _ in turns[last + 1 :]):
        raise UnusableRowError(f"{column!r} ends with a system message")
    single = sum(role != "system" for role, _ in before) == 1
    parts: list[str] = []
    for role, text in before:
        text = edit(text) if role == "user" else text
        parts.append(text if single or role == "system" else f"{role.capitalize()}: {text}")
    return "\n\n".join(parts), response


def _keys(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    pairs = (("role", "content"), ("from", "value"))
    return next((pair for pair in pairs if set(pair) <= entry.keys()), None)


def _content(column: str, content: Any) -> str:
    """The text of a message; text parts are joined."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content.strip()
    parts = content if isinstance(content, list) else [content]
    found = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    texts = [text for text in found if isinstance(text, str)]
    if len(texts) < len(found):
        raise UnusableRowError(f"a message of {column!r} holds more than text")
    return "\n".join(texts).strip()
