"""Which turns a chat template has appended exactly: one test for each boundary between speakers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coterie.models.codec import HFCodec
from coterie.models.rendering import render

_ASKED: Mapping[str, Any] = {"role": "user", "content": "What is 7 + 8?"}
_SAID = "It is 15."
_THOUGHT = f"<think>\n7 and 8\n</think>\n\n{_SAID}"
_ID = "callnr001"
_CALL = {
    "id": _ID,
    "type": "function",
    "function": {"name": "add", "arguments": {"a": 7, "b": 8}},
}
_TOOL = {
    "type": "function",
    "function": {"name": "add", "description": "adds", "parameters": {"type": "object"}},
}
_RESULT = {"role": "tool", "content": "15", "tool_call_id": _ID, "name": "add"}
_AFTER: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "assistant → user": ({"role": "user", "content": "And less 3?"},),
    "assistant → tool": (_RESULT,),
    "assistant → tool, tool": (_RESULT, {**_RESULT, "content": "12"}),
    "assistant → user, user": (
        {"role": "user", "content": "And less 3?"},
        {"role": "user", "content": "And less 2?"},
    ),
    "assistant → system": ({"role": "system", "content": "Be brief."},),
}
THINKING = "assistant that thought → user"


Fault = Literal["", "refuses it", "begins the answer otherwise", "rewrites the answer",
                "writes other tokens", "ends a call of its own otherwise"]  # fmt: skip


@dataclass(frozen=True)
class Boundary:
    """Where one speaker ends and others begin."""

    name: str
    fault: Fault = ""
    """What the template does instead of appending; empty: it appends, token by token."""


def boundaries(codec: HFCodec, tokenizer: Any) -> list[Boundary]:
    """Compare what the codec appends with the template's rendering of the whole conversation.

    Each conversation is rendered without what follows its answer, and with it. Appending is exact
    where the whole is the beginning, the answer, and what the codec appends, in the same tokens.
    Results of tools must follow a call that the template writes itself alike.

    Args:
        codec: of the template.
        tokenizer: has the template.
    """
    tested = [_tested(codec, tokenizer, name, _SAID, after) for name, after in _AFTER.items()]
    return [*tested, _tested(codec, tokenizer, THINKING, _THOUGHT, _AFTER["assistant → user"])]


def _tested(
    codec: HFCodec, tokenizer: Any, name: str, said: str, after: Sequence[Mapping[str, Any]]
) -> Boundary:
    appended, opened = codec.follow_chat(after, ended=False), codec.open_chat([_ASKED])
    answer = {"role": "assistant", "content": said}
    begun, whole = (each.text for each in render(tokenizer, [[_ASKED], [_ASKED, answer, *after]]))
    if appended is None or opened is None or begun is None or whole is None:
        return Boundary(name, "refuses it")
    if said not in whole:
        return Boundary(name, "rewrites the answer")
    if not whole.startswith(begun + said):
        return Boundary(name, "begins the answer otherwise")
    if _ids(tokenizer, whole) != opened + codec.extend(said) + appended:
        return Boundary(name, "writes other tokens")
    if after[0]["role"] == "tool":
        called = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
        (with_call,) = render(tokenizer, [[_ASKED, called, *after]], [_TOOL])
        if _ids(tokenizer, with_call.text or "")[-len(appended) :] != appended:
            return Boundary(name, "ends a call of its own otherwise")
    return Boundary(name)


def _ids(tokenizer: Any, text: str) -> list[int]:
    backend = tokenizer.backend_tokenizer
    # A codec switches this on to encode control tokens in user text as plain characters.
    backend.encode_special_tokens = False
    return backend.encode(text, add_special_tokens=False).ids
