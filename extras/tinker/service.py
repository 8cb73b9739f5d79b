"""The connection to a server: every call ends after a limit, and errors become one sentence."""

import asyncio
import importlib
import logging
import os
import re
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import httpx2

from coterie.agents.team.backend import Died
from coterie.datatypes import UserError
from coterie.extras.tinker.settings import KEY, TinkerSettings

T = TypeVar("T")

_API = "/api/v1"
_LIMIT_OF_CHECK_S = 10.0
_EARLY_S = 0.1
_A_KEY = re.compile(r"(tml-|eyJ)[!-~]+")
"""What the official client takes: a key, or a JSON web token."""
_LONGEST = 200
"""Characters of a server's message that are shown."""


def package() -> Any:
    """The official client, which is imported when it is used."""
    return importlib.import_module("tinker")


class NoAnswer(Died):
    """Raised when a server does not answer, or has lost a session."""


class Lost(NoAnswer):
    """Raised when a server no longer has what a request is about."""


class Unreadable(NoAnswer):
    """Raised when an answer cannot be read."""


class Service:
    """A server and its official client."""

    def __init__(self, settings: TinkerSettings) -> None:
        """Connect.

        Raises:
            UserError: the server does not answer, or refuses the key.
        """
        # It would send the server stack traces of this program.
        os.environ.setdefault("TINKER_TELEMETRY", "0")
        tinker = package()
        self.url, self.limit_s = settings.url.rstrip("/"), settings.limit_s
        self._tinker = tinker
        self._latest = 0.0
        """When the latest answer came."""
        # It reports every retry; this class reports the failures.
        logging.getLogger("tinker").setLevel(logging.CRITICAL)
        self.client: Any = self.run(
            "open a session",
            lambda: tinker.ServiceClient(
                base_url=self.url, api_key=os.environ.get(KEY), user_metadata={"client": "coterie"}
            ),
        )

    def run(self, what: str, call: Callable[[], T]) -> T:
        """Return the result of ``call``, which blocks.

        Args:
            what: what the server is asked to do, for errors.
            call: runs in a thread, which is abandoned after the limit.
        """
        return self.wait(what, in_thread(call))

    async def answer(self, what: str, call: Callable[[], T]) -> T:
        """Return the result of ``call`` while the event loop runs on; arguments as of :meth:`run`.

        It is for requests whose coroutines in the official client block.
        """
        return await self.reply(what, asyncio.wrap_future(in_thread(call)))

    def base(self, name: str) -> Any:
        """Open a sampling session on the base model ``name``."""
        client = self.client
        what = f"open a sampling session on {name!r}"
        try:
            return self.run(what, lambda: client.create_sampling_client(base_model=name))
        except NoAnswer as error:
            if not isinstance(error.__cause__, self._tinker.APIResponseValidationError):
                raise
        # Hatchery 0.3 answers in a form that the client does not read. An adapter that never learns
        # changes nothing.
        return self.run(
            what,
            lambda: client.create_lora_training_client(
                base_model=name, rank=1, train_unembed=False
            ).save_weights_and_get_sampling_client(),
        )

    def delete(self, path: str) -> None:
        """Delete a state, if the server allows it."""
        with suppress(Exception):  # the run goes on with a state too many
            future = self.client.create_rest_client().delete_checkpoint_from_tinker_path(path)
            future.result(timeout=self.limit_s)

    def wait(self, what: str, future: Any) -> Any:
        """Return the result of a future of the client; ``what`` as of :meth:`run`.

        Raises:
            NoAnswer: the server does not answer in time, or has lost a session.
            UserError: it refuses the request.
        """
        started = time.monotonic()
        try:
            while True:
                since, left = time.monotonic(), max(0.0, self._left(started))
                try:
                    answer = future.result(timeout=left)
                except TimeoutError:
                    # An early one is the call's own.
                    if time.monotonic() - since < left - _EARLY_S or self._left(started) <= 0:
                        raise
                else:
                    self._latest = time.monotonic()
                    return answer
        except Exception as error:
            raise self._sentence(what, error) from error

    async def reply(self, what: str, answer: Awaitable[T]) -> T:
        """Return what ``answer`` returns; arguments and errors as of :meth:`wait`."""
        started, task = time.monotonic(), asyncio.ensure_future(answer)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=max(0.0, self._left(started)))
                if not task.done() and self._left(started) <= 0:
                    raise TimeoutError
            self._latest = time.monotonic()
            return task.result()
        except Exception as error:
            raise self._sentence(what, error) from error
        finally:
            task.cancel()

    def _left(self, started: float) -> float:
        """Seconds until a request that was sent at ``started`` has failed: the limit counts from
        the latest answer to any request, because a slow server answers one by one."""
        return max(started, self._latest) + self.limit_s - time.monotonic()

    def close(self) -> None:
        """End the session."""
        self.client.holder.close()

    def broken(self, what: str) -> NoAnswer:
        """The error for an answer that cannot be used."""
        return NoAnswer(f"the server at {self.url} returned {what}")

    def _sentence(self, what: str, error: Exception) -> UserError:
        """The error that a user reads."""
        if isinstance(error, UserError):
            return error
        at = f"the server at {self.url}"
        if isinstance(error, TimeoutError):
            hint = "; perhaps it does not serve that model" if what.startswith("open") else ""
            return NoAnswer(
                f"{at} did not {what}, nor answer anything else, within "
                f"{self.limit_s:g} s (--tinker.limit-s){hint}"
            )
        cause = error if isinstance(error, self._tinker.APIStatusError) else error.__cause__
        status = getattr(cause, "status_code", None)
        message = one_line(getattr(cause, "message", None) or str(error) or type(error).__name__)
        if status in (401, 403):
            return UserError(f"{at} refuses to {what}: {message}; is the key in {KEY} right?")
        if status in (404, 410):
            return Lost(f"{at} has lost what it needs to {what}: {message}")
        if status in (400, 413, 422):
            return UserError(f"{at} refuses to {what}: {message}")
        kind = Unreadable if status is None and isinstance(error, ValueError) else NoAnswer
        return kind(f"{at} failed to {what}: {message}")


def in_thread(call: Callable[[], T]) -> Future[T]:
    """Begin ``call`` in a thread that neither an interruption nor the end of the process waits
    for, as it would for those of a pool; a server may take long."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # it cannot be cancelled, only left alone

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, name="tinker", daemon=True).start()
    return future


def one_line(message: str) -> str:
    """A server's message in one line of printable characters."""
    words = " ".join(message.split())
    return "".join(c for c in words if c.isprintable())[:_LONGEST]


def capabilities(settings: TinkerSettings) -> dict[str, Any]:
    """What the server says that it can do; empty if it does not say.

    Raises:
        UserError: there is no server, it refuses the key, or speaks another protocol.
    """
    url, key = settings.url.rstrip("/"), os.environ.get(KEY, "")
    if not key:
        raise UserError(f"--engine tinker reads the server's key from {KEY}, which is not set")
    if not _A_KEY.fullmatch(key):
        raise UserError(f"the key in {KEY} must begin with tml- and have no spaces or accents")
    headers = {"X-API-Key": key, "Authorization": f"Bearer {key}"}
    try:
        with httpx2.Client(timeout=_LIMIT_OF_CHECK_S, headers=headers) as client:
            answer = client.get(f"{url}{_API}/get_server_capabilities")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        reason = one_line(str(error)) or type(error).__name__
        raise UserError(
            f"--tinker.url {url}: no server answers ({reason}); start it, or correct the address"
        ) from None
    if answer.status_code in (401, 403):
        raise UserError(f"--tinker.url {url} refuses the key in {KEY} ({answer.status_code})")
    try:
        said = answer.json() if answer.status_code == 200 else None
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise UserError(
            f"--tinker.url {url} does not speak Tinker's API: {_API}/get_server_capabilities "
            f"answers with {answer.status_code}"
        )
    return said
