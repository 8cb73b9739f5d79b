"""Responses (``POST /v1/responses``)."""

from collections.abc import Iterator, Mapping
from typing import Any

from coterie.extras.gateway import fields
from coterie.extras.gateway.messages import Answer, Message, Refused, Request

_WIRE = fields.Wire(
    read=(
        *("instructions", "previous_response_id", "store", "model", "tools", "text"),
        *("parallel_tool_calls", "stream", "stream_options", "max_output_tokens"),
        *("temperature", "top_p", "reasoning", "include"),
        # Accepted, as they concern only accounts, caches, and tools that are refused.
        *("metadata", "user", "safety_identifier", "service_tier", "prompt_cache_key"),
        *("prompt_cache_options", "prompt_cache_retention", "max_tool_calls"),
    ),
    only={
        "tool_choice": ("auto", "none"),
        "background": (False,),
        "top_logprobs": (0,),
        "truncation": ("disabled",),
    },
    ignored=fields.SAMPLING,
)
_LOGPROBS = "message.output_text.logprobs"


def read(body: Mapping[str, Any], earlier: tuple[Message, ...] = ()) -> Request:
    """Read the request in a body; ``earlier`` is the conversation that ``previous_response_id``
    names, as :func:`conversation` returned it."""
    ignored = fields.check(body, _WIRE)
    ignored |= fields.check_inside(
        body, "text", {"format": ({"type": "text"},)}, ignored=("verbosity",)
    )
    ignored |= fields.check_inside(
        body, "reasoning", {}, ignored=("effort", "summary", "generate_summary")
    )
    if _LOGPROBS in fields.words(body.get("include"), "include"):
        raise Refused(400, f"include is not supported here with {_LOGPROBS}: leave it out")
    items = body.get("input") or []
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    messages = [*_instructions(body), *earlier]
    for item in fields.objects(items, "input"):
        _add(messages, item)
    tools = fields.objects(body.get("tools") or [], "tools")
    if any(tool.get("type") not in (None, "function") for tool in tools):
        raise Refused(400, "tools must be functions")
    return Request(
        messages=tuple(messages),
        model=fields.word(body.get("model"), "model"),
        tools=tuple(
            fields.tool(t.get("name"), t.get("description"), t.get("parameters"))
            for t in (() if body.get("tool_choice") == "none" else tools)
        ),
        max_tokens=fields.count(body.get("max_output_tokens"), "max_output_tokens"),
        stream=fields.truth(body.get("stream"), "stream", default=False),
        sampling=fields.sampling(body),
        ignored=ignored,
        one_call=not fields.truth(
            body.get("parallel_tool_calls"), "parallel_tool_calls", default=True
        ),
    )


def conversation(body: Mapping[str, Any], request: Request, answer: Answer) -> tuple[Message, ...]:
    """Return what a later response may go on with: without instructions, which hold for one
    response."""
    return (*request.messages[len(_instructions(body)) :], answer.message())


def write(answer: Answer, model: str) -> dict[str, Any]:
    """Build the body of an answer."""
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if answer.cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if answer.cut else None,
        "error": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": _items(answer),
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": {
            "input_tokens": answer.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": answer.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.prompt_tokens + answer.completion_tokens,
        },
    }


def events(answer: Answer, model: str) -> Iterator[bytes]:
    """Stream an answer as server-sent events."""
    whole, number = write(answer, model), 0

    def event(kind: str, **data: Any) -> bytes:
        nonlocal number
        number += 1
        return fields.event({"type": kind, "sequence_number": number - 1, **data}, kind)

    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=begun)
    for index, item in enumerate(whole["output"]):
        at = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            part = item["content"][0]
            empty, inside = {**part, "text": ""}, {**at, "content_index": 0}
            opened = {**item, "status": "in_progress", "content": []}
            yield event("response.output_item.added", output_index=index, item=opened)
            yield event("response.content_part.added", **inside, part=empty)
            text = {"logprobs": []}
            yield event("response.output_text.delta", **inside, **text, delta=part["text"])
            yield event("response.output_text.done", **inside, **text, text=part["text"])
            yield event("response.content_part.done", **inside, part=part)
        else:
            opened, arguments = {**item, "arguments": ""}, item["arguments"]
            yield event("response.output_item.added", output_index=index, item=opened)
            yield event("response.function_call_arguments.delta", **at, delta=arguments)
            yield event(
                "response.function_call_arguments.done",
                **at,
                name=item["name"],
                arguments=arguments,
            )
        yield event("response.output_item.done", output_index=index, item=item)
    yield event(f"response.{whole['status']}", response=whole)


def _items(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.text or not answer.calls:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        head = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant"}
        items.append({**head, "status": "completed", "content": [part]})
    for index, call in enumerate(answer.calls):
        head = {"id": f"fc_{answer.id}_{index}", "type": "function_call", "call_id": call.id}
        items.append(
            {**head, "name": call.name, "arguments": call.arguments, "status": "completed"}
        )
    return items


def _instructions(body: Mapping[str, Any]) -> list[Message]:
    text = fields.text(body.get("instructions"), "instructions")
    return [Message("system", text)] if text else []


def _add(messages: list[Message], item: Mapping[str, Any]) -> None:
    """Append an item; the parts of one assistant's turn become one message."""
    match "message" if item.get("type") is None else item["type"]:
        case "message":
            speaker = fields.speaker(item.get("role"), ("system", "user", "assistant"))
            messages.append(Message(speaker, fields.text(item.get("content"), "content")))
        case "function_call":
            call = fields.call(item.get("call_id"), item.get("name"), item.get("arguments"))
            last = messages[-1] if messages else None
            if last is not None and last.speaker == "assistant":
                messages[-1] = Message("assistant", last.text, (*last.calls, call))
            else:
                messages.append(Message("assistant", calls=(call,)))
        case "function_call_output":
            text = fields.text(item.get("output"), "output")
            answers = fields.identity(item.get("call_id"), "call_id")
            messages.append(Message("tool", text, answers=answers))
        case "reasoning":
            pass
        case other:
            raise Refused(400, f"an item of type {other!r:.40} is not supported here")
