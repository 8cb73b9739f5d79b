"""A person who plays a role at the terminal: ``human:``."""

import asyncio
import os
import select
import signal
import sys
from typing import Any
from weakref import WeakKeyDictionary

from coterie.datatypes import Completion, Prompt, Sampling, TokenCodec, UserError
from coterie.datatypes.visible import visible
from coterie.experts.replies import ExpertCounters, cut_at_stop, encode_reply

_BYTES = 1 << 16
"""Most bytes of one read. A terminal gives a line at a time, of at most 4095 bytes on Linux."""
_SIGNAL_S = 0.5
"""Longest wait for a key before signals are handled."""
_ENDED = (
    "human: nobody answers, because standard input has ended; play in a terminal, or give a line "
    "for every question"
)


class HumanPolicy:
    """Answers by what a person types. The person reads the text that a model would get."""

    def __init__(self, codec: TokenCodec, system_prompt: str = "") -> None:
        """``codec``: the role's codec, for replies; ``system_prompt``: shown above the context."""
        self.counters = ExpertCounters()
        self._codec, self._system_prompt = codec, system_prompt

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Show the context, and return the typed answer without log-probabilities.

        Raises:
            UserError: standard input is no terminal and has ended.
        """
        self.counters.calls += 1
        try:
            context = prompt.text or self._codec.decode(prompt.tokens)
            shown = "\n\n".join(filter(None, (self._system_prompt, context)))
            text = await TERMINAL.ask(prompt.agent, shown)
        except asyncio.CancelledError:
            self.counters.failures["cancelled"] += 1
            raise
        text, stopped = cut_at_stop(text, sampling.stop)
        finish = "stop" if stopped else "eos"
        completion = encode_reply(text, self._codec, sampling.max_new_tokens, finish)
        if completion.finish_reason == "length":
            TERMINAL.say(f"(only the first {len(completion.tokens)} tokens of it count)\n")
        self.counters.add(completion)
        return completion


class Terminal:
    """Standard input, for one question at a time; questions go to standard error."""

    def __init__(self) -> None:
        self._pending = b""
        """Read, but not yet a whole line."""
        self._explained = False
        # A lock belongs to the event loop in which it was waited for.
        self._locks: WeakKeyDictionary[Any, asyncio.Lock] = WeakKeyDictionary()

    def check(self) -> None:
        """Refuse a standard input that has ended already.

        Raises:
            UserError: it is no terminal, and nothing can be read.
        """
        descriptor = _descriptor()
        if self._pending or os.isatty(descriptor):
            return
        # What a pipe's writer has yet to send cannot be known without waiting for it.
        if select.select([descriptor], [], [], 0)[0]:
            self._pending = os.read(descriptor, _BYTES)
            if not self._pending:
                raise UserError(_ENDED)

    def say(self, text: str) -> None:
        """Write ``text`` at once."""
        print(text, end="", file=sys.stderr, flush=True)

    async def ask(self, agent: str, text: str) -> str:
        """Show ``text`` and return the answer: a line, and further ones after a line that ends in a
        backslash. After an empty answer the question waits for another one.

        The event loop goes on meanwhile, so that other policies and Ctrl-C are served. Ctrl-D
        interrupts like Ctrl-C.

        Raises:
            UserError: standard input is no terminal and has ended.
        """
        async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            name = visible(agent)
            self.say(f"\n--- {name} reads ---\n{visible(text)}\n---\n")
            if not self._explained:
                self.say("Answer in one line; a line that ends in \\ goes on in the next one.\n")
                self._explained = True
            answer = ""
            while not answer.strip():
                self.say(f"{name}> ")
                answer = await self._line()
                while answer.endswith("\\"):
                    answer = f"{answer[:-1]}\n{await self._line()}"
            return answer

    async def _line(self) -> str:
        """The next line, without its end; the rest where the last line has none."""
        while b"\n" not in self._pending:
            more = await self._read()
            if not more and self._pending:
                self._pending += b"\n"
            elif not more:
                if os.isatty(_descriptor()):
                    signal.raise_signal(signal.SIGINT)
                    # The interruption cancels this.
                    await asyncio.get_running_loop().create_future()
                self.say("\n")
                raise UserError(_ENDED)
            self._pending += more
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    async def _read(self) -> bytes:
        """Wait for input; empty at its end."""
        loop, descriptor = asyncio.get_running_loop(), _descriptor()
        ready = loop.create_future()
        try:
            loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
        except PermissionError:
            # epoll takes no regular files, which never make a reader wait.
            return os.read(descriptor, _BYTES)
        try:
            # The loop handles a signal that came just before it waited only at its next event.
            while not ready.done():
                await asyncio.wait([ready], timeout=_SIGNAL_S)
        finally:
            loop.remove_reader(descriptor)
        try:
            return os.read(descriptor, _BYTES)
        except OSError:  # the terminal has gone
            return b""


def _descriptor() -> int:
    """The number of standard input.

    Raises:
        UserError: it is closed.
    """
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        raise UserError(_ENDED) from None


TERMINAL = Terminal()
"""Standard input of this process, which all people share."""
