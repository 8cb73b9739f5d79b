"""Routes a request to its wire by its path, and does what all wires have in common."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from coterie.extras.gateway import anthropic, chat, fields, responses
from coterie.extras.gateway.http import HttpRequest, Reply
from coterie.extras.gateway.messages import Answer, Message, Refused, Request
from coterie.extras.gateway.rendering import refuse_too_long
from coterie.extras.gateway.session import Call, Session

_KEEPALIVE_S = 10.0


@dataclass(frozen=True)
class Key:
    """What a key gives access to."""

    session: Session
    role: str
    """The role that answers; ``""``: the model of a request names it."""


async def respond(http_request: HttpRequest, key: Key) -> Reply:
    """Answer a request.

    Raises:
        Refused: the request gets no answer.
    """
    path = http_request.path.rstrip("/").removeprefix("/v1")
    if http_request.method == "GET" and path == "/models":
        return _models(key)
    if path not in _WIRES:
        known = ", ".join(f"/v1{name}" for name in ("/models", *_WIRES))
        raise Refused(404, f"there is no {http_request.path[:80]}; known: {known}")
    if http_request.method != "POST":
        raise Refused(405, f"{http_request.path} takes POST")
    return await _WIRES[path](http_request, key)


def _models(key: Key) -> Reply:
    models = [
        {"id": role, "object": "model", "created": 0, "owned_by": "coterie"}
        for role in key.session.roles
    ]
    return _reply({"object": "list", "data": models, "has_more": False})


async def _chat(http_request: HttpRequest, key: Key) -> Reply:
    body = fields.read_body(http_request.body)
    options = body.get("stream_options")
    with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    events = partial(chat.events, with_usage=with_usage)
    return await _sample(http_request, key, chat.read(body), chat.write, events)


async def _anthropic(http_request: HttpRequest, key: Key) -> Reply:
    request = anthropic.read(fields.read_body(http_request.body))
    return await _sample(http_request, key, request, anthropic.write, anthropic.events)


async def _responses(http_request: HttpRequest, key: Key) -> Reply:
    body, known = fields.read_body(http_request.body), key.session.responses
    earlier: tuple[Message, ...] = ()
    if (name := body.get("previous_response_id")) is not None:
        role, earlier = known.get(str(name), ("", ()))
        if not earlier or (key.role and key.role != role):
            raise Refused(404, "previous_response_id names no response that this key may read")
    request = responses.read(body, earlier)

    def remember(answer: Answer) -> None:
        if body.get("store") is not False:
            conversation = responses.conversation(body, request, answer)
            known[f"resp_{answer.id}"] = _role(key, request), conversation

    return await _sample(http_request, key, request, responses.write, responses.events, remember)


_WIRES: Mapping[str, Callable[[HttpRequest, Key], Awaitable[Reply]]] = {
    "/chat/completions": _chat,
    "/messages": _anthropic,
    "/responses": _responses,
}


async def _sample(
    http_request: HttpRequest,
    key: Key,
    request: Request,
    write: Callable[[Answer, str], dict[str, Any]],
    events: Callable[[Answer, str], Iterator[bytes]],
    remember: Callable[[Answer], None] = lambda answer: None,
) -> Reply:
    """Have a role answer. ``write`` and ``events`` turn (answer, model) into a body or a stream;
    ``remember`` is called with the answer before it is sent."""
    role = _role(key, request)
    if not request.messages:
        raise Refused(400, "there is no message: send at least one")
    if request.messages[-1].speaker == "assistant":
        raise Refused(
            400,
            "the last message is the assistant's, and answers cannot be begun for it here: end "
            "with a message of somebody else",
        )
    key.session.check(role)
    try:
        await refuse_too_long(key.session.codecs.get(role), role, request)
    except Refused:
        key.session.count_refusal(role)
        raise
    digest = hashlib.blake2b(http_request.path.encode() + b"\0" + http_request.body).digest()
    retry = http_request.headers.get("x-stainless-retry-count", "0") != "0"
    call = key.session.ask(role, request, digest, http_request.is_connected, retry=retry)

    def sent() -> None:
        call.delivered |= call.answer.done() and not call.answer.exception()

    if request.stream:
        stream = _stream(call, request.model, events, remember)
        return Reply(200, stream=stream, kind="text/event-stream", sent=sent)
    answer = await asyncio.shield(call.answer)
    remember(answer)
    reply = _reply(write(answer, request.model))
    reply.sent = sent
    return reply


def _role(key: Key, request: Request) -> str:
    roles = key.session.roles
    if key.role:
        return key.role
    if len(roles) == 1:
        return roles[0]
    if request.model not in roles:
        raise Refused(
            404,
            f"the model {request.model[:80]!r} is none of the roles {', '.join(roles)}; name one, "
            "or use the key of one role",
        )
    return request.model


async def _stream(
    call: Call,
    model: str,
    events: Callable[[Answer, str], Iterator[bytes]],
    remember: Callable[[Answer], None],
) -> AsyncIterator[bytes]:
    while not call.answer.done():
        await asyncio.wait({call.answer}, timeout=_KEEPALIVE_S)
        if not call.answer.done():
            yield b": waiting\n\n"
    if (refused := call.answer.exception()) is not None:
        known = refused if isinstance(refused, Refused) else Refused(500, "it failed")
        yield fields.event(_error(known.status, known.sentence), "error")
        return
    remember(call.answer.result())
    for event in events(call.answer.result(), model):
        yield event


def _reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, json.dumps(value).encode(), headers=headers or {})


def refusal(status: int, sentence: str) -> Reply:
    """The reply that refuses a request."""
    # OpenAI's and Anthropic's clients read this header; a retry would be refused again.
    return _reply(_error(status, sentence), status, {"x-should-retry": "false"})


def _error(status: int, sentence: str) -> dict[str, Any]:
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "api_error")
    error = {"type": kind, "message": f"{sentence}.", "code": None, "param": None}
    return {"type": "error", "error": error}
