"""The policy of a role whose model is behind an OpenAI-compatible server."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import httpx2

from coterie.datatypes import (
    Completion,
    FinishReason,
    PolicyFailure,
    Prompt,
    Sampling,
    TokenCodec,
    UserError,
    ids_per_token,
)
from coterie.datatypes.thinking import split_thinking
from coterie.experts.replies import ExpertCounters, as_unicode, cut_at_stop, encode_reply
from coterie.experts.retries import CircuitBreaker, backoff_s
from coterie.experts.settings import ServerSettings
from coterie.experts.transport import AttemptFailure, Choice, open_client, read_reply, send


class ServerPolicy:
    """Answers by a server; without an answer it raises PolicyFailure.

    Whatever the server does, no other exception is raised, and a call takes at most
    ``settings.timeout_s``. Connections belong to the event loop that opened them: close the policy
    (or leave its ``async with``) in each loop before that loop ends.
    """

    def __init__(self, settings: ServerSettings, codec: TokenCodec) -> None:
        """
        Args:
            settings: address and limits of the server.
            codec: the role's codec, for replies.

        Raises:
            UserError: the API key's variable is not set or is no key.
        """
        self.settings = settings
        self.counters = ExpertCounters()
        self.breaker = CircuitBreaker(settings.breaker_failures, settings.breaker_cooldown_s)
        self._codec, self._ids_per_token = codec, ids_per_token(codec)
        self._key = read_key(settings)
        self._sessions: dict[asyncio.AbstractEventLoop, _Session] = {}

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Return the server's reply in the role's vocabulary, without log-probabilities."""
        self.counters.calls += 1
        session = self._open()
        content = json.dumps(self.request(prompt, sampling), allow_nan=False).encode()
        try:
            async with session.slots:
                reply = await self._ask(session.client, content, prompt.seed)
            completion = self._completion(reply, sampling)
        except AttemptFailure as failure:
            self.counters.failures[failure.kind] += 1
            raise PolicyFailure(failure.reason) from None
        except asyncio.CancelledError:
            self.counters.failures["cancelled"] += 1
            raise
        self.counters.add(completion)
        return completion

    def request(self, prompt: Prompt, sampling: Sampling) -> dict[str, Any]:
        """Return the JSON body of the request for ``prompt``."""
        settings = self.settings
        text = as_unicode(prompt.text or self._codec.decode(prompt.tokens))
        body: dict[str, Any] = {"model": settings.model, "stream": False}
        if settings.api == "chat":
            system = [{"role": "system", "content": settings.system_prompt}]
            user = [{"role": "user", "content": text}]
            body["messages"] = (system if settings.system_prompt else []) + user
        else:
            body["prompt"] = text
        limit = -(-self._limit(sampling) // self._ids_per_token)
        body["max_tokens"] = settings.max_tokens or limit
        body["temperature"] = sampling.temperature
        body["top_p"] = sampling.top_p
        if sampling.top_k:
            body["top_k"] = sampling.top_k
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if settings.send_seed:
            body["seed"] = prompt.seed % 2**31
        body |= settings.extra()
        return {name: value for name, value in body.items() if value is not None}

    def identity(self) -> dict[str, Any]:
        """Return everything that determines the answers, for caches."""
        names = (
            "endpoint", "model", "system_prompt", "max_tokens", "max_reply_tokens",
            "strip_thinking", "send_seed",
        )  # fmt: skip
        settings = {name: getattr(self.settings, name) for name in names}
        return {"policy": "server", **settings, "extra_body": self.settings.extra()}

    async def aclose(self) -> None:
        """Close the running loop's connections; the next call opens new ones."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def models(self) -> list[str]:
        """Return the names of the server's models, which also checks that it can be reached.

        Raises:
            PolicyFailure: the server cannot be reached or does not list its models.
        """
        loop = asyncio.get_running_loop()
        try:
            answer = await send(
                self._open().client,
                "GET",
                f"{self.settings.api_root}/models",
                deadline=loop.time() + min(10.0, self.settings.timeout_s),
                max_bytes=self.settings.max_body_bytes,
            )
            return [str(entry["id"]) for entry in json.loads(answer.body)["data"]]
        except AttemptFailure as failure:
            raise PolicyFailure(failure.reason) from None
        except (ValueError, LookupError, TypeError, RecursionError):
            raise PolicyFailure("server does not list its models") from None

    async def _ask(self, client: httpx2.AsyncClient, content: bytes, seed: int) -> Choice:
        """Send requests until there is a reply, attempts or time run out, or the breaker opens."""
        settings, counters = self.settings, self.counters
        loop = asyncio.get_running_loop()
        deadline = loop.time() + settings.timeout_s
        last = AttemptFailure("circuit_open", "server keeps failing and is left alone for a while")
        for attempt in range(settings.retries + 1):
            if not (request := self.breaker.allow()):
                break
            counters.attempts += 1
            counters.retries += attempt > 0
            started = loop.time()
            try:
                answer = await send(
                    client,
                    "POST",
                    settings.endpoint,
                    content=content,
                    deadline=deadline,
                    max_bytes=settings.max_body_bytes,
                )
                reply = read_reply(answer.body, answer.content_type)
            except AttemptFailure as failure:
                if failure.healthy:
                    self.breaker.success()
                else:
                    self.breaker.failure(request)
                counters.failed_attempts[failure.kind] += 1
                if failure.example:
                    counters.examples[failure.kind] = self._without_key(failure.example)
                last = failure
            except BaseException:
                self.breaker.abandon(request)
                raise
            else:
                self.breaker.success()
                return reply
            finally:
                counters.seconds += loop.time() - started
            pause = backoff_s(
                attempt, base_s=settings.backoff_s, limit_s=settings.max_backoff_s, seed=seed
            )
            pause = max(pause, last.retry_after_s)
            final = attempt == settings.retries or not last.retry or self.breaker.is_open
            if final or loop.time() + pause >= deadline:
                break
            await asyncio.sleep(pause)
        raise last

    def _completion(self, reply: Choice, sampling: Sampling) -> Completion:
        """Remove the reply's thinking, cut it at stop strings and limits, and encode it."""
        self.counters.server_prompt_tokens += reply.prompt_tokens
        self.counters.server_completion_tokens += reply.completion_tokens
        text = reply.text
        if self.settings.strip_thinking:
            inline, answer = split_thinking(text)
            if answer is None or (not answer and (inline or reply.thinking)):
                raise AttemptFailure("thinking_only", "server's model only thought")
            text = answer
        elif reply.thinking:
            text = f"<think>{reply.thinking}</think>\n{text}"
        if not text.strip():
            raise AttemptFailure("empty", "server sent an empty reply")
        ending = reply.stopped_by
        if reply.ended and not ending:
            ending = _left_out(text, sampling.stop)
        text, stopped = cut_at_stop(text + ending, sampling.stop)
        finish: FinishReason = "stop" if stopped else "eos" if reply.ended else "length"
        completion = encode_reply(text, self._codec, self._limit(sampling), finish)
        return replace(completion, usage=(reply.prompt_tokens, reply.completion_tokens))

    def _limit(self, sampling: Sampling) -> int:
        """Most ids of the role's codec that are kept."""
        most = self.settings.max_reply_tokens
        if most is None:
            return sampling.max_new_tokens
        return min(most * self._ids_per_token, sampling.max_new_tokens)

    def _open(self) -> "_Session":
        """The session of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            settings = self.settings
            client = open_client(
                settings.base_url,
                connections=settings.concurrency,
                connect_s=settings.connect_timeout_s,
                read_s=settings.read_timeout_s,
                api_key=self._key,
            )
            # Forget sessions of closed loops, whose connections are gone.
            alive = {at: each for at, each in self._sessions.items() if not at.is_closed()}
            session = _Session(client, asyncio.Semaphore(settings.concurrency))
            self._sessions = alive | {loop: session}
        return self._sessions[loop]

    def _without_key(self, text: str) -> str:
        """Hide ``text`` if it contains the beginning of the API key."""
        return "(not shown)" if self._key and self._key[:8] in text else text


def _left_out(text: str, stops: Sequence[str]) -> str:
    """The stop string that a server left out of ``text`` without saying so: the only one that
    closes a tag which is open there. Empty if there is none."""
    open_tags = [
        stop
        for stop in stops
        if stop.startswith("</") and text.rfind(f"<{stop[2:]}") > text.rfind(stop)
    ]
    return open_tags[0] if len(open_tags) == 1 else ""


@dataclass(frozen=True)
class _Session:
    """Connections of one event loop."""

    client: httpx2.AsyncClient
    slots: asyncio.Semaphore


def read_key(settings: ServerSettings) -> str:
    """Return the API key of a server; empty if it has none.

    Raises:
        UserError: the API key's variable is not set or is no key.
    """
    variable = settings.api_key_env
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(f"api_key_env names {variable}, which is not set: export it first")
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"{variable} does not hold an API key: it has unprintable characters")
    return key
