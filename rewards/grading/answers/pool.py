"""Worker processes that are killed when they miss their deadline, and replaced.

Plain subprocesses on pipes: they need neither signals nor a main thread, they do not import the
caller's main module, and killing one ends whatever it is computing. A worker writes ``ready``, or
one line that says why it cannot start; then it answers each line of JSON with one line.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from coterie.datatypes import UserError

Outcome = str
"""What a worker replies (``equal``, ``different`` or ``error`` for formulas), or ``timeout``;
``error`` also where it died."""

_WORKER = Path(__file__).with_name("worker.py")
START_S = 120.0
"""Seconds that a worker may take to start."""
PAIRS_PER_WORKER = 8
"""Questions for each worker before the pool starts another one."""


@dataclass(frozen=True)
class Program:
    """What a worker process runs."""

    title: str
    """Its name in messages."""
    arguments: tuple[str, ...]
    """What Python is started with; the deadline in seconds is added."""
    is_reply: Callable[[str, Any], bool]
    """Whether a line is a reply to a question; other lines are passed over."""
    shows_errors: bool = False
    """Whether its standard error is that of this process."""
    way_out: str = ""
    """What to try where it does not start."""


def is_object(line: str, question: Any) -> bool:
    """Whether a line is one JSON object."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def has_number(line: str, question: Any) -> bool:
    """Whether a line is a JSON object with the number of the question, which is its first item."""
    return is_object(line, question) and json.loads(line).get("number") == question[0]


FORMULAS = Program(
    "the worker for formulas",
    # -P keeps the modules beside the file, such as `values`, off its import path.
    ("-P", "-W", "ignore", str(_WORKER)),
    lambda line, question: line in ("equal", "different", "error"),
    way_out="try `python -c 'import mpmath'`",
)


class _Worker:
    """One process and its current question."""

    def __init__(self, program: Program, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.ready = False
        self.job: int | None = None
        self.due = time.monotonic() + START_S
        self.process = subprocess.Popen(
            [sys.executable, *program.arguments, str(deadline_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if program.shows_errors else subprocess.DEVNULL,
            # Ctrl-C is for the parent, which then ends the worker.
            start_new_session=True,
        )
        self.questions = cast(IO[bytes], self.process.stdin)
        self.replies = cast(IO[bytes], self.process.stdout)
        self.read = b""

    def ask(self, job: int, question: Any) -> None:
        """Send a question; a worker that has died is noticed when its reply is read."""
        self.job = job
        self.due = time.monotonic() + self.deadline_s
        with contextlib.suppress(OSError):
            self.questions.write(json.dumps(question, default=str).encode() + b"\n")
            self.questions.flush()

    def receive(self) -> list[str]:
        """The whole lines that have come; an empty one at the end of the process."""
        chunk = os.read(self.replies.fileno(), 1 << 16)
        if not chunk:
            return [""]
        *lines, self.read = (self.read + chunk).split(b"\n")
        return [line.decode("ascii", "replace").strip() for line in lines]

    def kill(self) -> None:
        """End the process, and what it has started, now; collect it."""
        if self.process.returncode is None:  # else its number may be another's by now
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for pipe in (self.questions, self.replies):
            with contextlib.suppress(OSError):
                pipe.close()


def _end(workers: list[_Worker], owner: int) -> None:
    """Kill what this process has started (a forked child owns none of it)."""
    if os.getpid() == owner:
        while workers:
            workers.pop().kill()


class WorkerPool:
    """Answers questions in at most ``workers`` processes, each question under a deadline.

    Nothing is started before the first question. May be called from any thread (calls take
    turns) and inside a running event loop (which waits).
    """

    def __init__(
        self, workers: int = 1, deadline_s: float = 5.0, program: Program = FORMULAS
    ) -> None:
        if workers < 1:
            raise UserError(f"answer checking needs at least 1 worker, not {workers}")
        if not deadline_s > 0:
            raise UserError(f"the deadline of an answer must be above 0 s, not {deadline_s}")
        self.size = workers
        self.deadline_s = deadline_s
        self.program = program
        self.timeouts = 0
        """Workers that were killed at their deadline."""
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, _end, self._workers, self._owner)

    @property
    def alive(self) -> int:
        """Worker processes that are running now."""
        return len(self._workers)

    def run(self, questions: Sequence[Any]) -> list[Outcome]:
        """The outcome of each question, in their order.

        Raises:
            UserError: no worker starts.
        """
        if not questions:
            return []
        with self._lock:
            if os.getpid() != self._owner:
                # After a fork the pipes belong to the parent's conversation.
                self._workers, self._owner = [], os.getpid()
                self._finalizer.detach()
                self._finalizer = weakref.finalize(self, _end, self._workers, self._owner)
            try:
                return self._run(questions)
            except BaseException:
                # Interrupted: a reply that is still to come must not answer a later question.
                _end(self._workers, self._owner)
                raise

    def _run(self, questions: Sequence[Any]) -> list[Outcome]:
        outcomes: list[Outcome] = ["error"] * len(questions)
        todo = deque(range(len(questions)))
        title = self.program.title
        failed_starts = 0
        with selectors.DefaultSelector() as selector:
            for worker in list(self._workers):
                if worker.process.poll() is None:
                    selector.register(worker.replies, selectors.EVENT_READ, worker)
                else:  # died while idle, so no answer is to blame
                    self._workers.remove(worker)
                    worker.kill()

            def replace(worker: _Worker) -> None:
                selector.unregister(worker.replies)
                self._workers.remove(worker)
                worker.kill()

            while todo or any(worker.job is not None for worker in self._workers):
                # A start costs as much as many comparisons: share the work only if there is enough.
                wanted = min(self.size, 1 + (len(todo) - 1) // PAIRS_PER_WORKER)
                while todo and len(self._workers) < wanted:
                    worker = _Worker(self.program, self.deadline_s)
                    self._workers.append(worker)
                    selector.register(worker.replies, selectors.EVENT_READ, worker)
                for worker in self._workers:
                    if todo and worker.ready and worker.job is None:
                        job = todo.popleft()
                        worker.ask(job, questions[job])
                waiting = [w for w in self._workers if w.job is not None or not w.ready]
                pause = max(0.0, min(w.due for w in waiting) - time.monotonic())
                for selected, _ in selector.select(pause):
                    worker = cast(_Worker, selected.data)
                    for line in worker.receive():
                        if not worker.ready:
                            worker.ready = line == "ready"
                            if not worker.ready:
                                replace(worker)
                                failed_starts += 1
                                if line:
                                    raise UserError(f"{title} {line}")
                                if failed_starts > self.size:
                                    way_out = self.program.way_out
                                    raise UserError(
                                        f"{title} does not start{'; ' if way_out else ''}{way_out}"
                                    )
                                break
                        elif worker.job is not None and self.program.is_reply(
                            line, questions[worker.job]
                        ):
                            outcomes[worker.job] = line
                            worker.job = None
                        elif not line:
                            # It died: the question stays an error.
                            worker.job = None
                            replace(worker)
                            break
                now = time.monotonic()
                for worker in list(self._workers):
                    if worker.job is not None and now >= worker.due:
                        outcomes[worker.job] = "timeout"
                        worker.job = None
                        self.timeouts += 1
                        replace(worker)
                    elif not worker.ready and now >= worker.due:
                        raise UserError(f"{title} takes over {START_S:.0f} s to start")
        return outcomes

    def close(self) -> None:
        """End every worker; the pool starts new ones when it is used again."""
        with self._lock:
            _end(self._workers, self._owner)
