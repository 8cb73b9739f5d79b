"""Tests whether the codec appends turns exactly as a chat template renders them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coterie.agents.models.codec import HFCodec
from coterie.agents.models.rendering import render

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
                "writes other tokens", "ends a call of its own otherwise",
                "ends the answer twice", "loses the next speaker's mark"]  # fmt: skip


@dataclass(frozen=True)
class Boundary:
    """The boundary between one speaker and the next ones."""

    name: str
    fault: Fault = ""
    """How the template differs from appending; empty: it appends, token by token."""


def boundaries(codec: HFCodec, tokenizer: Any) -> list[Boundary]:
    """Compare the codec's appended turns with the template's rendering of whole conversations.

    Appending is exact if the rendering of the whole conversation consists of the same tokens as
    its beginning, the answer, and the codec's turns. If the model ends its answer with any end
    mark, the rest must be the template's too, without a second end mark and with the mark of the
    next speaker. Tool results must look the same after a call that the template itself renders.

    Args:
        codec: the codec of the template.
        tokenizer: the tokenizer with the template.
    """
    codec = codec.without_system()  # which the conversations below do not have
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
    for mark in codec.eos_ids:
        if fault := _ended(codec, tokenizer, [_ASKED, answer], after, mark):
            return Boundary(name, fault)
    if after[0]["role"] == "tool":
        called = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
        (with_call,) = render(tokenizer, [[_ASKED, called, *after]], [_TOOL])
        if _ids(tokenizer, with_call.text or "")[-len(appended) :] != appended:
            return Boundary(name, "ends a call of its own otherwise")
    return Boundary(name)


def _ended(
    codec: HFCodec,
    tokenizer: Any,
    begun: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    mark: int,
) -> Fault:
    """The fault of the turns that follow an answer with the end mark ``mark``."""
    said = begun[-1]["content"]
    (whole,) = render(tokenizer, [[*begun, *after]], goes_on=True)
    (alone,) = render(tokenizer, [begun], goes_on=False)
    tail = (whole.text or "").rpartition(said)[2]
    closing = (alone.text or "").rpartition(said)[2].strip()
    decode = tokenizer.backend_tokenizer.decode
    end = decode([mark], skip_special_tokens=False).strip()
    ids = codec.follow_chat(after, ended=True, mark=mark) or []
    behind = decode(ids, skip_special_tokens=False)
    if behind.lstrip().startswith(end) and tail.lstrip().startswith(end):
        return "ends the answer twice"
    if closing and behind.lstrip().startswith(closing.split("\n")[0]):
        return "ends the answer twice"
    # The codec may leave out the end mark, which the model has written, and what precedes it.
    surplus = len(_squeezed(tail)) - len(_squeezed(behind))
    left_out = _squeezed(tail)[: max(0, surplus)]
    if closing or not left_out or left_out.endswith(_squeezed(end)):
        return ""
    return "loses the next speaker's mark"


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _ids(tokenizer: Any, text: str) -> list[int]:
    backend = tokenizer.backend_tokenizer
    # A codec switches this on to encode control tokens in user text as plain characters.
    backend.encode_special_tokens = False
    return backend.encode(text, add_special_tokens=False).ids
