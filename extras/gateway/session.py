"""One episode as its program sees it: calls that wait for their answers, until it ends."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coterie.datatypes import TokenCodec
from coterie.extras.gateway.messages import Answer, Message, Refused, Request
from coterie.extras.gateway.settings import GatewaySettings

_MOST_WAITING = 256
"""Calls of one role at the same time."""


@dataclass(eq=False)
class Call:
    """One call of a program, and who waits for its answer: retries of it wait with it."""

    request: Request
    answer: "asyncio.Future[Answer]"
    waiting: list[Callable[[], bool]] = field(default_factory=list)
    """Whether each who waits is still there."""
    delivered: bool = False
    """Whether the answer was sent to somebody who was there."""
    turn: int = -1
    """Which turn of its role it is; -1 where it was not sampled."""

    @property
    def wanted(self) -> bool:
        """Whether anybody waits for it."""
        return any(here() for here in self.waiting)


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    result: Any = None
    failure: str = ""
    """Why it has none."""


@dataclass(frozen=True)
class Situation:
    """What an episode waits for."""

    calls: Mapping[str, Call]
    """Role -> the first of its calls that is to be answered."""
    ended: Ended | None


class Session:
    """Lives in the gateway's event loop, and is touched nowhere else."""

    def __init__(
        self,
        roles: Sequence[str],
        settings: GatewaySettings,
        codecs: Mapping[str, TokenCodec] | None = None,
    ) -> None:
        """``codecs``: of the roles, which say how much their contexts hold."""
        self.roles, self.codecs = tuple(roles), dict(codecs or {})
        self.counts: Counter[str] = Counter()
        """Calls that were ``replayed``, ``abandoned`` (nobody waits for the answer) or
        ``refused`` (a budget is used up)."""
        self.ended: Ended | None = None
        self.stop: Callable[[], None] = lambda: None
        """Ends the program."""
        self.calls: dict[str, list[Call]] = {role: [] for role in roles}
        """All that were sampled, by turn."""
        self.responses: dict[str, tuple[str, tuple[Message, ...]]] = {}
        """(role, conversation) that ``previous_response_id`` can name."""
        self._settings = settings
        self._queues: dict[str, deque[Call]] = {role: deque() for role in roles}
        self._recent: dict[tuple[str, bytes], Call] = {}
        self._asked: Counter[str] = Counter()
        self._sampled: Counter[str] = Counter()
        self._changed = asyncio.Event()

    def ask(
        self, role: str, request: Request, name: bytes, here: Callable[[], bool], *, retry: bool
    ) -> Call:
        """A call, in its role's queue.

        Args:
            role: who is asked.
            request: what.
            name: the same for a request that is sent again.
            here: whether who asks still waits.
            retry: whether it says itself that it is sent again.

        Raises:
            Refused: the episode has ended, or a budget is used up.
        """
        self._check_alive()
        known = self._recent.get((role, name))
        if retry and known is not None:
            self.counts["replayed"] += 1
            known.waiting.append(here)
            return known
        self.check(role)
        self._asked[role] += 1
        call = Call(request, asyncio.get_running_loop().create_future(), [here])
        # Nobody may be left to look at an answer that is a refusal.
        call.answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._recent[role, name] = call
        self._queues[role].append(call)
        self._changed.set()
        return call

    def check(self, role: str) -> None:
        """Refuse a further call of the role where it may have none.

        Raises:
            Refused: the episode has ended, or a budget is used up.
        """
        self._check_alive()
        self._check_budget(role)

    def refuse(self, role: str) -> None:
        """Count a call that is refused: it is one of those that the role may have."""
        self._asked[role] += 1
        self.counts["refused"] += 1

    def answer(self, answers: Sequence[tuple[str, Call, Answer | Refused]]) -> None:
        """Hand the program the answers of roles to calls; one that has ended meanwhile gets
        none."""
        for role, call, answer in answers:
            if call in self._queues[role]:
                self._queues[role].remove(call)
            if isinstance(answer, Answer):
                call.turn = len(self.calls[role])
                self.calls[role].append(call)
                self._sampled[role] += answer.completion_tokens
            _settle(call, answer)

    async def asked(self) -> None:
        """Wait until the program asks, or ends."""
        try:
            async with asyncio.timeout(self._settings.patience_s):
                while not self._waits():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            seconds = self._settings.patience_s
            self.finish(Ended(failure=f"the program did nothing for {seconds:g} s"))

    def situation(self) -> Situation:
        """What is to be answered now."""
        waiting = {role: queue[0] for role, queue in self._queues.items() if queue}
        return Situation({} if self.ended else waiting, self.ended)

    def finish(self, ended: Ended) -> None:
        """The program has ended, or is ended; what it still waits for is refused."""
        if self.ended is not None:
            return
        self.ended = ended
        self.stop()
        for queue in self._queues.values():
            while queue:
                self.counts["abandoned"] += 1
                _settle(queue.popleft(), Refused(409, "this episode has ended"))
        self._recent.clear()
        self._changed.set()

    def undelivered(self, role: str) -> set[int]:
        """Turns whose answers reached nobody."""
        return {call.turn for call in self.calls[role] if not call.delivered}

    def _waits(self) -> bool:
        """Whether somebody waits for an answer, or nobody ever will."""
        for queue in self._queues.values():
            while queue and not queue[0].wanted:
                self.counts["abandoned"] += 1
                _settle(queue.popleft(), Refused(409, "nobody waits for this"))
        return self.ended is not None or any(self._queues.values())

    def _check_alive(self) -> None:
        if self.ended is not None:
            raise Refused(409, "this episode has ended")

    def _check_budget(self, role: str) -> None:
        most, tokens = self._settings.max_calls, self._settings.max_tokens
        why = ""
        if self._asked[role] >= most:
            why = f"{role} has used up its {most} calls of this episode (--env.max-calls)"
        elif tokens and self._sampled[role] >= tokens:
            why = f"{role} has used up its {tokens} tokens of this episode (--env.max-tokens)"
        elif len(self._queues[role]) >= _MOST_WAITING:
            why = f"{role} has {_MOST_WAITING} calls waiting already"
        if why:
            self.counts["refused"] += 1
            raise Refused(429, why)


def _settle(call: Call, answer: Answer | Refused) -> None:
    if call.answer.done():
        return
    if isinstance(answer, Refused):
        call.answer.set_exception(answer)
    else:
        call.answer.set_result(answer)
