"""Whole rollouts beside what samples in them: what environments, scoring and bookkeeping cost.

A training step's episodes are played, and every request to a policy is noted. Then the same
requests go straight to the policies: all episodes at once, an episode's second turn after its
first, as in the rollout, because a hint cannot be read before it is written. Both take turns, so
that whatever else the machine does hits both alike; both begin with new weights and empty caches.

    python tools/speed/rollout.py --repeat 5
    python tools/speed/rollout.py --engine vllm --env eapo-consultation --algo dapo

All flags of train.py may follow. The table: tokens per second of the rollout and of the bare
engine, their ratio (medians), and where a rollout's time goes: the share in which somebody is
sampling, and the shares that this process spends on environments and on scoring, mostly beside it.
"""

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from rich.console import Console
from rich.table import Table

from coterie.datatypes import Completion, Policy, Prompt, Sampling
from coterie.envs.token_view import TokenView
from coterie.rewards.grading.scorer import AnswerScorer
from coterie.rollouts import play
from coterie.training.command_line import parse
from coterie.training.preflight import preflight
from coterie.training.session import Session, open_session

_EPISODE: ContextVar[int] = ContextVar("episode")


@dataclass(frozen=True)
class Request:
    """One call of a policy."""

    role: str
    prompt: Prompt
    sampling: Sampling


class Watch:
    """Notes requests, and how long at least one of them is under way."""

    def __init__(self) -> None:
        self.turns: dict[int, list[list[Request]]] = defaultdict(list)
        """By episode: the requests of each of its turns."""
        self.busy_s = 0.0
        self.tokens = 0
        self.spent_s: dict[str, float] = defaultdict(float)
        """Seconds of this process by what they went into."""
        self._under_way = 0
        self._of_episode: dict[int, int] = defaultdict(int)
        self._since = 0.0
        self._episodes = itertools.count()

    async def play(self, *args: Any, **settings: Any) -> Any:
        """Stands in for :func:`coterie.rollouts.play`: tells episodes apart."""
        _EPISODE.set(next(self._episodes))
        return await play(*args, **settings)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Environments and the scorer are timed inside."""

        def time_calls(phase: str, work: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                start = time.perf_counter()
                try:
                    return work(*args, **kwargs)
                finally:
                    self.spent_s[phase] += time.perf_counter() - start

            return call

        with (
            mock.patch("coterie.rollouts.collect.play", self.play),
            mock.patch.object(TokenView, "reset", time_calls("environments", TokenView.reset)),
            mock.patch.object(TokenView, "step", time_calls("environments", TokenView.step)),
            mock.patch.object(
                AnswerScorer, "prefetch", time_calls("scoring", AnswerScorer.prefetch)
            ),
        ):
            yield

    def over(self, role: str, policy: Policy) -> Policy:
        """``policy``, watched."""

        async def ask(prompt: Prompt, sampling: Sampling) -> Completion:
            episode = _EPISODE.get()
            if self._of_episode[episode] == 0:
                self.turns[episode].append([])
            self.turns[episode][-1].append(Request(role, prompt, sampling))
            if self._under_way == 0:
                self._since = time.perf_counter()
            self._of_episode[episode] += 1
            self._under_way += 1
            try:
                answer = await policy(prompt, sampling)
            finally:
                self._of_episode[episode] -= 1
                self._under_way -= 1
                if self._under_way == 0:
                    self.busy_s += time.perf_counter() - self._since
            self.tokens += len(answer.tokens)
            return answer

        return ask


@dataclass(frozen=True)
class Measured:
    """One rollout, and the same requests without it."""

    rollout_s: float
    busy_s: float
    bare_s: float
    tokens: int
    bare_tokens: int
    spent_s: Mapping[str, float]

    def share(self, phase: str) -> float:
        """Share of the rollout that this process spends on it."""
        return self.spent_s.get(phase, 0.0) / self.rollout_s

    @property
    def ratio(self) -> float:
        """Tokens per second of the rollout over those of the bare engine."""
        return (self.tokens / self.rollout_s) / (self.bare_tokens / self.bare_s)


def measure(session: Session, step: int) -> Measured:
    """Play one step's episodes, then repeat their requests."""
    collector = session.sampler.collector
    plain = dict(collector.policies)
    watch = Watch()
    collector.policies = {role: watch.over(role, policy) for role, policy in plain.items()}
    _new_weights(session)
    start = time.perf_counter()
    with watch.watching():
        session.sample(step)
    rollout_s = time.perf_counter() - start
    collector.policies = plain

    async def repeat(turns: list[list[Request]]) -> int:
        tokens = 0
        for turn in turns:
            answers = await asyncio.gather(*(plain[r.role](r.prompt, r.sampling) for r in turn))
            tokens += sum(len(answer.tokens) for answer in answers)
        return tokens

    async def repeat_all() -> int:
        return sum(await asyncio.gather(*map(repeat, watch.turns.values())))

    _new_weights(session)
    start = time.perf_counter()
    bare_tokens = session.run_async(repeat_all())
    bare_s = time.perf_counter() - start
    return Measured(rollout_s, watch.busy_s, bare_s, watch.tokens, bare_tokens, watch.spent_s)


def _new_weights(session: Session) -> None:
    """As after an update; handing weights over is outside of what is timed."""
    for role in session.team.trained:
        session.team.loaded[role].handle.version += 1
    session.run_async(session.team.refresh())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=5, help="rollouts, after one to warm up")
    own, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = parse(["--eval.no-enabled", *flags, "--run-dir", str(Path(folder) / "run")])
        with open_session(settings, preflight(settings)) as session:
            measure(session, 1)
            found = [measure(session, step) for step in range(2, own.repeat + 2)]
    table = Table(title=f"{settings.choice.env}, {settings.run.engine} engine")
    columns = ("rollout tok/s", "bare tok/s", "ratio", "sampling", "environments", "scoring")
    for name in columns:
        table.add_column(name, justify="right")
    table.add_row(
        f"{statistics.median(m.tokens / m.rollout_s for m in found):,.0f}",
        f"{statistics.median(m.bare_tokens / m.bare_s for m in found):,.0f}",
        f"{statistics.median(m.ratio for m in found):.2f}",
        f"{statistics.median(m.busy_s / m.rollout_s for m in found):.0%}",
        *(f"{statistics.median(m.share(phase) for m in found):.0%}" for phase in columns[4:]),
    )
    Console().print(table)
    return 0


if __name__ == "__mp_main__":  # what engines' processes call this module
    from coterie.agents.engine.processes import end_with_parent

    end_with_parent()
if __name__ == "__main__":
    sys.exit(main())
