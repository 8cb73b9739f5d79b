"""One episode as its program sees it: calls that wait for their answers, until the program ends."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coterie.datatypes import TokenCodec
from coterie.extras.gateway.messages import Answer, Message, Refused, Request
from coterie.extras.gateway.settings import GatewaySettings


@dataclass(eq=False)
class Call:
    """One call of a program. Retries of the same request share it."""

    request: Request
    answer: "asyncio.Future[Answer]"
    clients: list[Callable[[], bool]] = field(default_factory=list)
    """For each client that waits: whether it is still connected."""
    delivered: bool = False
    """Whether a connected client received the answer."""
    turn: int = -1
    """Index of the role's turn that answered it; -1 before, and for a refusal."""

    @property
    def awaited(self) -> bool:
        """Whether any client still waits for the answer."""
        return any(is_connected() for is_connected in self.clients)


@dataclass(frozen=True)
class ProgramResult:
    """How a program ended."""

    value: Any = None
    failure: str = ""
    """Why there is no value; empty if there is one."""


@dataclass(frozen=True)
class SessionState:
    """What an episode does next: answer calls, or end."""

    calls: Mapping[str, Call]
    """Role -> the oldest of its calls without an answer."""
    result: ProgramResult | None


class Session:
    """The calls of one program. Only the gateway's event loop may touch it."""

    def __init__(
        self,
        roles: Sequence[str],
        settings: GatewaySettings,
        codecs: Mapping[str, TokenCodec] | None = None,
    ) -> None:
        """``codecs``: role -> codec, whose context limits the length of requests."""
        self.roles, self.codecs = tuple(roles), dict(codecs or {})
        self.counts: Counter[str] = Counter()
        """Calls that were ``replayed``, ``abandoned`` (no client waits for the answer) or
        ``refused`` (a budget is used up, or the context is full)."""
        self.result: ProgramResult | None = None
        self.stop: Callable[[], None] = lambda: None
        """Ends the program."""
        self.calls: dict[str, list[Call]] = {role: [] for role in roles}
        """Role -> its answered calls, by turn."""
        self.responses: dict[str, tuple[str, tuple[Message, ...]]] = {}
        """``previous_response_id`` -> (role, conversation)."""
        self._settings = settings
        self._queues: dict[str, deque[Call]] = {role: deque() for role in roles}
        self._by_digest: dict[tuple[str, bytes], Call] = {}
        self._call_counts: Counter[str] = Counter()
        self._token_counts: Counter[str] = Counter()
        self._changed = asyncio.Event()

    def ask(
        self,
        role: str,
        request: Request,
        digest: bytes,
        is_connected: Callable[[], bool],
        *,
        retry: bool,
    ) -> Call:
        """Put a call into the queue of its role.

        Args:
            role: the role that answers.
            request: the request.
            digest: identifies the request; the same when it is sent again.
            is_connected: whether the client still waits.
            retry: whether the client says that it sends the request again.

        Raises:
            Refused: the episode has ended, or a budget is used up.
        """
        self._check_running()
        first = self._by_digest.get((role, digest))
        refused = first is not None and first.answer.done() and first.answer.exception()
        if retry and first is not None and not refused:
            self.counts["replayed"] += 1
            first.clients.append(is_connected)
            return first
        self.check(role)
        self._call_counts[role] += 1
        call = Call(request, asyncio.get_running_loop().create_future(), [is_connected])
        # Retrieve a refusal that nobody reads, or asyncio logs it as an error.
        call.answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._by_digest[role, digest] = call
        self._queues[role].append(call)
        self._changed.set()
        return call

    def check(self, role: str) -> None:
        """Check that the role may have a further call.

        Raises:
            Refused: the episode has ended, or a budget is used up.
        """
        self._check_running()
        most, why = self._settings.max_calls, self._why_no_tokens(role)
        if self._call_counts[role] >= most:
            why = f"{role} has used up its {most} calls of this episode (--env.max-calls)"
        if why:
            self.counts["refused"] += 1
            raise Refused(429, why)

    def count_refusal(self, role: str) -> None:
        """Count a refused call: it uses up one of the role's calls."""
        self._call_counts[role] += 1
        self.counts["refused"] += 1

    def answer(self, answers: Sequence[tuple[str, Call, Answer | Refused]]) -> None:
        """Send (role, call, answer) to the program, unless it has ended in the meantime."""
        for role, call, answer in answers:
            if call in self._queues[role]:
                self._queues[role].remove(call)
            if isinstance(answer, Answer):
                call.turn = len(self.calls[role])
                self.calls[role].append(call)
                self._token_counts[role] += answer.completion_tokens
            elif answer.status == 400:
                self.counts["refused"] += 1
            _settle(call, answer)

    async def next_calls(self) -> None:
        """Wait until the program makes a call, or ends."""
        try:
            async with asyncio.timeout(self._settings.patience_s):
                while not self._is_ready():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            seconds = f"{self._settings.patience_s:g} s (--env.patience-s)"
            self.finish(ProgramResult(failure=f"the program did nothing for {seconds}"))

    def state(self) -> SessionState:
        """The calls to answer now, or the result."""
        oldest = {role: queue[0] for role, queue in self._queues.items() if queue}
        return SessionState({} if self.result else oldest, self.result)

    def finish(self, result: ProgramResult) -> None:
        """End the episode, and refuse the calls that still wait."""
        if self.result is not None:
            return
        self.result = result
        self.stop()
        for queue in self._queues.values():
            while queue:
                self.counts["abandoned"] += 1
                _settle(queue.popleft(), Refused(409, "this episode has ended"))
        self._by_digest.clear()
        self._changed.set()

    def undelivered(self, role: str) -> set[int]:
        """Turns whose answers no client received."""
        return {call.turn for call in self.calls[role] if not call.delivered}

    def _is_ready(self) -> bool:
        """Drop calls whose clients have gone, or whose role has no tokens left; say whether a call
        is left, or the program ended."""
        for role, queue in self._queues.items():
            while queue and not queue[0].awaited:
                self.counts["abandoned"] += 1
                _settle(queue.popleft(), Refused(409, "nobody waits for this"))
            while queue and (why := self._why_no_tokens(role)):
                self.counts["refused"] += 1
                _settle(queue.popleft(), Refused(429, why))
        return self.result is not None or any(self._queues.values())

    def _check_running(self) -> None:
        if self.result is not None:
            raise Refused(409, "this episode has ended")

    def _why_no_tokens(self, role: str) -> str:
        """Why the role may sample no more; empty if it may."""
        tokens = self._settings.max_tokens
        if not tokens or self._token_counts[role] < tokens:
            return ""
        return f"{role} has used up its {tokens} tokens of this episode (--env.max-tokens)"


def _settle(call: Call, answer: Answer | Refused) -> None:
    if call.answer.done():
        return
    if isinstance(answer, Refused):
        call.answer.set_exception(answer)
    else:
        call.answer.set_result(answer)
