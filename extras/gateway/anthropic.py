"""Anthropic's messages (``POST /v1/messages``)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from coterie.extras.gateway import fields
from coterie.extras.gateway.messages import Answer, Message, Refused, Request

_WIRE = fields.Wire(
    read=(
        *("system", "model", "tools", "tool_choice", "stream", "output_config"),
        *("max_tokens", "stop_sequences", "temperature", "top_p"),
        # Accepted, as they concern only accounts and caches.
        *("metadata", "service_tier", "cache_control", "inference_geo"),
    ),
    only={"thinking": ({"type": "disabled"},)},
    ignored=fields.SAMPLING,
)
_CHOICES = {"type": ("auto", "none"), "disable_parallel_tool_use": (True, False)}


def read(body: Mapping[str, Any]) -> Request:
    """Read the request in a body."""
    ignored = fields.check(body, _WIRE)
    ignored |= fields.check_inside(body, "output_config", {}, ignored=("effort",))
    fields.check_inside(body, "tool_choice", _CHOICES)
    choice = body.get("tool_choice") or {}
    messages: list[Message] = []
    if system := fields.text(body.get("system"), "system"):
        messages.append(Message("system", system))
    for message in fields.objects(body.get("messages"), "messages"):
        messages += _messages(message)
    tools = fields.objects(body.get("tools") or [], "tools")
    if any(tool.get("type") not in (None, "custom") for tool in tools):
        raise Refused(400, "tools must be functions of the program")
    return Request(
        messages=tuple(messages),
        model=fields.word(body.get("model"), "model"),
        tools=tuple(
            fields.tool(t.get("name"), t.get("description"), t.get("input_schema"))
            for t in (() if choice.get("type") == "none" else tools)
        ),
        max_tokens=fields.count(body.get("max_tokens"), "max_tokens"),
        stop=fields.words(body.get("stop_sequences"), "stop_sequences"),
        stream=fields.truth(body.get("stream"), "stream", default=False),
        sampling=fields.sampling(body),
        ignored=ignored,
        one_call=bool(choice.get("disable_parallel_tool_use")),
    )


def write(answer: Answer, model: str) -> dict[str, Any]:
    """Build the body of an answer."""
    content: list[dict[str, Any]] = []
    if answer.text or not answer.calls:
        content.append({"type": "text", "text": answer.text})
    for call in answer.calls:
        content.append(_block(call.id, call.name) | {"input": json.loads(call.arguments)})
    return {**_head(answer, model), "content": content, **_stop(answer), "usage": _usage(answer)}


def events(answer: Answer, model: str) -> Iterator[bytes]:
    """Stream an answer as server-sent events."""

    def event(kind: str, **data: Any) -> bytes:
        return fields.event({"type": kind, **data}, kind)

    empty = {"content": [], "stop_reason": None, "stop_sequence": None}
    start = {**_head(answer, model), **empty, "usage": {**_usage(answer), "output_tokens": 0}}
    yield event("message_start", message=start)
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if answer.text or not answer.calls:
        delta = {"type": "text_delta", "text": answer.text}
        blocks.append(({"type": "text", "text": ""}, delta))
    for call in answer.calls:
        delta = {"type": "input_json_delta", "partial_json": call.arguments}
        blocks.append((_block(call.id, call.name), delta))
    for index, (block, delta) in enumerate(blocks):
        yield event("content_block_start", index=index, content_block=block)
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event(
        "message_delta", delta=_stop(answer), usage={"output_tokens": answer.completion_tokens}
    )
    yield event("message_stop")


def _head(answer: Answer, model: str) -> dict[str, Any]:
    return {"id": f"msg_{answer.id}", "type": "message", "role": "assistant", "model": model}


def _block(call_id: str, name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def _stop(answer: Answer) -> dict[str, Any]:
    reason = "tool_use" if answer.calls else "max_tokens" if answer.cut else "end_turn"
    return {"stop_reason": reason, "stop_sequence": None}


def _usage(answer: Answer) -> dict[str, int]:
    return {"input_tokens": answer.prompt_tokens, "output_tokens": answer.completion_tokens}


def _messages(message: Mapping[str, Any]) -> list[Message]:
    """Convert a message. Anthropic puts the results of tools into the messages of the user."""
    speaker = fields.speaker(message.get("role"), ("user", "assistant"))
    content = message.get("content")
    if content is None or isinstance(content, str):
        return [Message(speaker, content or "")]
    parts, calls, results = [], [], []
    for block in fields.objects(content, "content"):
        match block.get("type"):
            case "text":
                parts.append(block)
            case "tool_use" if speaker == "assistant":
                calls.append(fields.call(block.get("id"), block.get("name"), block.get("input")))
            case "tool_result" if speaker == "user":
                text = fields.text(block.get("content"), "the content of a tool_result")
                answers = fields.identity(block.get("tool_use_id"), "tool_use_id")
                results.append(Message("tool", text, answers=answers))
            case other:
                raise Refused(400, f"a block of type {other!r:.40} is not supported here")
    rest = [Message(speaker, fields.text(parts, "content"), tuple(calls))]
    return [*results, *(rest if parts or calls or not results else [])]
