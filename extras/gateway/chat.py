"""Chat completions (``POST /v1/chat/completions``)."""

from collections.abc import Iterator, Mapping
from typing import Any

from coterie.extras.gateway import fields
from coterie.extras.gateway.messages import Answer, Message, Refused, Request

_WIRE = fields.Wire(
    read=(
        *("model", "tools", "parallel_tool_calls", "stream", "stream_options"),
        *("max_tokens", "max_completion_tokens", "stop", "temperature", "top_p"),
        # Accepted, as they concern only accounts, storage and caches.
        *("metadata", "store", "user", "safety_identifier", "service_tier", "prompt_cache_key"),
        *("prompt_cache_options", "prompt_cache_retention"),
    ),
    only={
        "n": (1,),
        "tool_choice": ("auto", "none"),
        "response_format": ({"type": "text"},),
        "logit_bias": ({},),
        "logprobs": (False,),
        "top_logprobs": (0,),
        "functions": ([],),
        "function_call": ("auto", "none"),
        "modalities": (["text"],),
    },
    ignored={**fields.SAMPLING, "reasoning_effort": (), "verbosity": ("medium",)},
)


def read(body: Mapping[str, Any]) -> Request:
    """Read the request in a body."""
    ignored = fields.check(body, _WIRE)
    messages = tuple(map(_message, fields.objects(body.get("messages"), "messages")))
    limits = [
        limit
        for name in ("max_tokens", "max_completion_tokens")
        if (limit := fields.count(body.get(name), name)) is not None
    ]
    tools = fields.objects(body.get("tools") or [], "tools")
    return Request(
        messages=messages,
        model=fields.word(body.get("model"), "model"),
        tools=() if body.get("tool_choice") == "none" else tuple(map(_tool, tools)),
        max_tokens=min(limits, default=None),
        stop=fields.words(body.get("stop"), "stop"),
        stream=fields.truth(body.get("stream"), "stream", default=False),
        sampling=fields.sampling(body),
        ignored=ignored,
        one_call=not fields.truth(
            body.get("parallel_tool_calls"), "parallel_tool_calls", default=True
        ),
    )


def write(answer: Answer, model: str) -> dict[str, Any]:
    """Build the body of an answer."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.calls:
        message["tool_calls"] = [_call(answer, index) for index in range(len(answer.calls))]
        message["content"] = answer.text or None
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer), "logprobs": None}
    return {**_head(answer, model, "chat.completion"), "choices": [choice], "usage": usage(answer)}


def events(answer: Answer, model: str, *, with_usage: bool) -> Iterator[bytes]:
    """Stream an answer as server-sent events."""
    head = _head(answer, model, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return fields.event({**head, "choices": [choice]})

    yield chunk({"role": "assistant", "content": answer.text})
    for index in range(len(answer.calls)):
        yield chunk({"tool_calls": [{"index": index, **_call(answer, index)}]})
    yield chunk({}, _finish(answer))
    if with_usage:
        yield fields.event({**head, "choices": [], "usage": usage(answer)})
    yield fields.event("[DONE]")


def usage(answer: Answer) -> dict[str, int]:
    """Count tokens of the role's own vocabulary."""
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


def _head(answer: Answer, model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": 0, "model": model}


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "length" if answer.cut else "stop"


def _call(answer: Answer, index: int) -> dict[str, Any]:
    call = answer.calls[index]
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _message(message: Mapping[str, Any]) -> Message:
    speaker = fields.speaker(message.get("role"), ("system", "user", "assistant", "tool"))
    for name in ("audio", "function_call", "refusal"):
        if message.get(name):
            raise Refused(
                400, f"the {name} of a message is not read here: send text and tool_calls"
            )
    calls = []
    for call in fields.objects(message.get("tool_calls") or [], "tool_calls"):
        function = call.get("function")
        if not isinstance(function, dict):
            raise Refused(400, "tool_calls must be calls of functions")
        calls.append(fields.call(call.get("id"), function.get("name"), function.get("arguments")))
    return Message(
        speaker,
        fields.text(message.get("content"), "content"),
        tuple(calls),
        fields.identity(message.get("tool_call_id"), "tool_call_id"),
    )


def _tool(tool: Mapping[str, Any]) -> Any:
    function = tool.get("function")
    if tool.get("type") not in (None, "function") or not isinstance(function, dict):
        raise Refused(400, "tools must be functions")
    return fields.tool(
        function.get("name"), function.get("description"), function.get("parameters")
    )
