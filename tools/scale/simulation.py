"""Discrete events of one training step's sampling: episodes, the driver, engines.

An episode is a list of turns; what a turn asks is known once the driver has worked on the answers
of the turn before. The driver does one thing after another. An engine decodes all that it runs side
by side (continuous batching) and lets requests wait for whose keys and values it has no room.
Who is asked is decided by the program's own :func:`coterie.cluster.routing.choose`, or by whatever
stands in its place. Time is in seconds, and only simulated.
"""

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from coterie.cluster.routing import PREFIX, choose

QUANTUM = 16
"""Tokens that an engine decodes before it looks for new requests."""
Route = Callable[[npt.NDArray[Any], Sequence[str], Mapping[str, int]], str]


@dataclass(frozen=True)
class Ask:
    """One request, and what will be answered."""

    base: str
    role: str
    prompt: npt.NDArray[np.int64]
    """Its beginning, as far as routing and the prefix cache look; as long as ``read`` at most."""
    read: int
    """Tokens of the whole prompt."""
    known: int
    """Of these, what an engine need not read of which this role asked the beginning before."""
    written: int


class Speed(Protocol):
    """How fast an engine is."""

    def prefill_s(self, tokens: int) -> float: ...

    def decode_s(self, rows: int, context: float) -> float:
        """One token for each of so many rows, whose contexts have so many tokens together."""
        ...


@dataclass(frozen=True)
class EngineKind:
    """Engines that are alike."""

    speed: Speed
    room: float
    """Tokens whose keys and values it can hold."""
    rows: int = 256
    """Requests that it decodes side by side."""
    together: bool = False
    """Whether a batch is closed until all of it is answered, as the sampler of this program has
    it."""


@dataclass
class _Engine:
    kind: EngineKind
    waiting: deque[tuple[Ask, Callable[[], None]]] = field(default_factory=deque)
    running: list[tuple[int, int, Ask, Callable[[], None]]] = field(default_factory=list)
    """A heap by what :attr:`clock` will show when the last token is written."""
    clock: int = 0
    """Tokens written by a row that runs from the beginning on."""
    context: int = 0
    """Tokens of all that runs, now."""
    reserved: int = 0
    known: set[tuple[str, bytes]] = field(default_factory=set)
    done: list[Callable[[], None]] = field(default_factory=list)
    busy_s: float = 0.0
    awake: bool = False

    def admit(self, number: Callable[[], int]) -> float:
        """Begin what there is room for; seconds of reading it."""
        kind, fresh = self.kind, 0
        while self.waiting and len(self.running) < kind.rows:
            ask, done = self.waiting[0]
            need = ask.read + ask.written // 2  # what it holds on average
            if self.running and self.reserved + need > kind.room:
                break
            self.waiting.popleft()
            beginning = (ask.role, ask.prompt[:PREFIX].tobytes())
            fresh += ask.read - (ask.known if beginning in self.known else 0)
            self.known.add(beginning)
            heapq.heappush(self.running, (self.clock + ask.written, number(), ask, done))
            self.context += ask.read
            self.reserved += need
        return kind.speed.prefill_s(fresh) if fresh else 0.0

    def decode(self) -> tuple[float, int]:
        """Write a few tokens of every row; (seconds, tokens)."""
        rows = len(self.running)
        count = max(1, min(QUANTUM, self.running[0][0] - self.clock))
        # Contexts grow by one token a row and iteration: the mean over `count` iterations.
        seconds = count * self.kind.speed.decode_s(rows, self.context + rows * (count - 1) / 2)
        self.clock += count
        self.context += rows * count
        while self.running and self.running[0][0] <= self.clock:
            _, _, ask, done = heapq.heappop(self.running)
            self.context -= ask.read + ask.written
            self.reserved -= ask.read + ask.written // 2
            self.done.append(done)
        return seconds, rows * count


@dataclass(frozen=True)
class Work:
    """Seconds of the driver's one core."""

    episode_s: float = 0.0
    """To begin an episode and to end it, its rows and logs included."""
    request_s: float = 0.0
    """To ask, and to take the answer in."""
    token_s: float = 0.0
    """For each token that was written: texts, scores, rows."""


NO_WORK = Work()


@dataclass(frozen=True)
class Played:
    """What happened."""

    seconds: float
    tokens: int
    tail_s: float
    """Seconds in which the last twentieth of all answers was written."""
    engine_s: Mapping[str, float]
    """Seconds in which each engine computed."""
    driver_s: float
    asked: Mapping[str, int]
    """Requests by engine."""


def play(
    episodes: Sequence[Sequence[Sequence[Ask]]],
    engines: Mapping[str, Sequence[str]],
    kinds: Mapping[str, EngineKind],
    work: Work = NO_WORK,
    route: Route = choose,
) -> Played:
    """Play ``episodes`` to their ends.

    Args:
        episodes: of each its turns, of each turn what is asked at once.
        engines: base -> names of those that answer for it.
        kinds: base -> what they are.
        work: what the driver has to do.
        route: who is asked.
    """
    numbers = itertools.count()
    events: list[tuple[float, int, Callable[[], None]]] = []
    fleet = {name: _Engine(kinds[base]) for base, names in engines.items() for name in names}
    load: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    ends: list[float] = []
    now = free = driver_s = 0.0
    tokens = 0

    def at(time: float, what: Callable[[], None]) -> None:
        heapq.heappush(events, (time, next(numbers), what))

    def drive(seconds: float, then: Callable[[], None]) -> None:
        nonlocal free, driver_s
        free = max(free, now) + seconds
        driver_s += seconds
        at(free, then)

    def advance(engine: _Engine) -> None:
        nonlocal tokens
        for done in engine.done if not (engine.kind.together and engine.running) else ():
            done()
        if not (engine.kind.together and engine.running):
            engine.done = []
        closed = engine.kind.together and (engine.running or engine.done)
        seconds = 0.0 if closed else engine.admit(lambda: next(numbers))
        engine.awake = bool(engine.running)
        if engine.running:
            more, written = engine.decode()
            tokens += written
            engine.busy_s += seconds + more
            at(now + seconds + more, lambda: advance(engine))

    def begin(episode: Sequence[Sequence[Ask]], turn: int) -> None:
        left = len(episode[turn])
        written = sum(ask.written for ask in episode[turn])

        def answered() -> None:
            nonlocal left
            left -= 1
            if left:
                return
            last = turn + 1 == len(episode)
            after = (lambda: ends.append(now)) if last else (lambda: begin(episode, turn + 1))
            drive(work.token_s * written + work.episode_s / 2 * last, after)

        for ask in episode[turn]:
            drive(work.request_s, lambda ask=ask: send(ask, answered))

    def send(ask: Ask, answered: Callable[[], None]) -> None:
        name = route(ask.prompt, engines[ask.base], load)
        load[name] += 1
        asked[name] += 1

        def done() -> None:
            load[name] -= 1
            finished.append(now)
            answered()

        engine = fleet[name]
        engine.waiting.append((ask, done))
        if not engine.awake:
            engine.awake = True
            at(now, lambda: advance(engine))

    finished: list[float] = []
    for episode in episodes:
        drive(work.episode_s / 2, lambda episode=episode: begin(episode, 0))
    while events:
        now, _, what = heapq.heappop(events)
        what()
    finished.sort()
    tail = finished[-1] - finished[len(finished) * 19 // 20 - 1] if len(finished) > 19 else 0.0
    busy = {name: one.busy_s for name, one in fleet.items()}
    return Played(now, tokens, tail, busy, driver_s, asked)
