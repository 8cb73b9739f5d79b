"""A single exchange with a server: a request, and its reply or the reason for the failure."""

import asyncio
import json
import ssl
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2

from coterie.experts.retries import retry_after_s

# uvicorn, which runs most of these servers, closes idle connections after 5 s. Closing them earlier
# on this side avoids requests on a connection that is about to close.
_IDLE_S = 4.0
_EXCERPT = 160
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(eq=False)
class AttemptFailure(Exception):
    """Raised when an attempt gets no reply."""

    kind: str
    """One word for the counters."""
    reason: str
    """A short sentence for the trajectory's status, without text of the server."""
    retry: bool = False
    """Whether the same request may succeed later."""
    healthy: bool = False
    """Whether the server works and only refused this request."""
    retry_after_s: float = 0.0
    """The pause that the server requests."""
    example: str = ""
    """The server's text, shortened, for the user."""


@dataclass(frozen=True)
class Content:
    """The content of a response with status 200."""

    content_type: str
    body: bytes


def open_client(
    url: str, *, connections: int, connect_s: float, read_s: float, api_key: str
) -> httpx2.AsyncClient:
    """Return a client that keeps connections open between requests.

    Proxies of the environment are used, except for servers on this machine.

    Args:
        url: the server's address.
        connections: most concurrent connections.
        connect_s: seconds for opening a connection.
        read_s: seconds of silence after which a request fails.
        api_key: sent with each request; empty: none.
    """
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    if api_key:
        headers["authorization"] = f"Bearer {api_key}"
    parts = urlsplit(url)
    local = parts.hostname in _LOCAL
    # Loading certificates takes longer than a call, and plain HTTP needs none.
    bare = local and parts.scheme == "http"
    return httpx2.AsyncClient(
        headers=headers,
        limits=httpx2.Limits(
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=_IDLE_S,
        ),
        timeout=httpx2.Timeout(read_s, connect=connect_s),
        trust_env=not local,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if bare else True,
    )


async def send(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    *,
    content: bytes = b"",
    deadline: float,
    max_bytes: int,
) -> Content:
    """Send one request and read its response.

    Args:
        content: a JSON body.
        deadline: the event loop's time at which the request fails, even if a part has arrived.
        max_bytes: largest body; a larger one is dropped with its connection.

    Raises:
        AttemptFailure: no response with status 200.
    """
    try:
        async with (
            asyncio.timeout_at(deadline),
            client.stream(
                method, url, content=content, headers={"content-type": "application/json"}
            ) as response,
        ):
            body = await _read(response, max_bytes)
    except (TimeoutError, httpx2.TimeoutException):
        raise AttemptFailure("timeout", "server did not answer in time", retry=True) from None
    except httpx2.ConnectError:
        raise AttemptFailure("connect", "server cannot be reached", retry=True) from None
    except httpx2.HTTPError as error:
        raise AttemptFailure(
            "broken", "connection broke", retry=True, example=type(error).__name__
        ) from None
    _check_status(response, body)
    if body is None:
        raise AttemptFailure("too_large", f"reply is longer than {max_bytes} bytes")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise AttemptFailure("schema", "server compressed its reply unasked")
    return Content(response.headers.get("content-type", ""), body)


async def _read(response: httpx2.Response, max_bytes: int) -> bytes | None:
    """The raw body, or None if it is longer than ``max_bytes``."""
    declared = response.headers.get("content-length", "")
    if declared.isdigit() and (len(declared) > 18 or int(declared) > max_bytes):
        return None
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_bytes:
            return None
    return bytes(body)


def _check_status(response: httpx2.Response, body: bytes | None) -> None:
    if response.status_code != 200:
        wait = retry_after_s(response.headers.get("retry-after"), now=time.time())
        raise _failure_of(response.status_code, body or b"", wait)


def _failure_of(status: int, body: bytes, wait: float = 0.0) -> AttemptFailure:
    """The failure that a status says."""
    example = "" if status in (401, 403) else excerpt(body)  # may repeat parts of the key
    if status == 429:
        return AttemptFailure(
            "rate_limited", "server is overloaded (429)",
            retry=True, healthy=True, retry_after_s=wait, example=example,
        )  # fmt: skip
    if status >= 500 or status == 408:
        return AttemptFailure(
            f"http_{status}", f"server failed ({status})",
            retry=True, retry_after_s=wait, example=example,
        )  # fmt: skip
    return AttemptFailure(
        f"http_{status}", f"server refused the request ({status})", healthy=True, example=example
    )


@dataclass(frozen=True)
class Choice:
    """A choice of a chat or text completion."""

    text: str
    thinking: str
    """Thinking that the server has separated from the text."""
    ended: bool
    """False: the server cut the reply at its token limit."""
    stopped_by: str
    """The stop string that ended the text, which does not include it; empty if unknown."""
    prompt_tokens: int
    completion_tokens: int


def read_reply(body: bytes, content_type: str) -> Choice:
    """Return the first choice of an OpenAI-compatible completion.

    Raises:
        AttemptFailure: the body is not JSON (``html``, ``bad_json``), or JSON of another shape
            (``schema``), or an error in place of a reply.
    """
    start = body[:512].lstrip()
    if "html" in content_type.lower() or start.startswith(b"<"):
        raise AttemptFailure("html", "server sent a web page", retry=True, example=excerpt(body))
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        raise AttemptFailure(
            "bad_json", "server sent incomplete JSON", retry=True, example=excerpt(body)
        ) from None
    data = data if isinstance(data, dict) else {}
    choice = _first(data.get("choices"))
    # OpenRouter sends the errors of the servers behind it with status 200, also after a part of
    # the text.
    broke_off = isinstance(choice, dict) and choice.get("finish_reason") == "error"
    error = (choice.get("error") if broke_off else None) or data.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500 if broke_off else 0
    if status and (choice is None or broke_off):
        raise _failure_of(status, body)
    if not isinstance(choice, dict):
        raise AttemptFailure("schema", "server's JSON has no choices", example=excerpt(body))
    message = choice.get("message")
    if isinstance(message, dict):
        text = message.get("content")
        thinking = message.get("reasoning_content") or message.get("reasoning")
        # The content is null if the reply was cut during thinking.
        text = "" if text is None and isinstance(thinking, str) else text
    else:
        text, thinking = choice.get("text"), None
    if not isinstance(text, str):
        raise AttemptFailure("schema", "server's choice has no text", example=excerpt(body))
    # vLLM's name, and SGLang's; both may be the id of a token.
    stop = choice.get("stop_reason") or choice.get("matched_stop")
    usage = data.get("usage")
    return Choice(
        text=text,
        thinking=thinking if isinstance(thinking, str) else "",
        ended=choice.get("finish_reason") != "length",
        stopped_by=stop if isinstance(stop, str) else "",
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
    )


def excerpt(body: bytes) -> str:
    """Return the beginning of ``body`` as one printable line."""
    text = body[: 4 * _EXCERPT].decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_EXCERPT]


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and 0 <= value < 2**40 else 0
