"""Whole rollouts beside what samples in them: what environments, scoring and bookkeeping cost.

A training step's episodes are played, and every request to a policy is noted. Then the same
requests, wave by wave (one wave a turn), go straight to the policies. Both take turns, so that
whatever else the machine does hits both alike.

    python benchmarks/rollout.py --repeat 5
    python benchmarks/rollout.py --engine vllm --env eapo-consultation --algo dapo

All flags of train.py may follow. The table: tokens per second of the rollout and of the bare
engine, their ratio (medians), and the share of a rollout in which nobody is sampling.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from launch.command_line import parse
from launch.preflight import preflight
from launch.session import Session, open_session
from vocabulary import Completion, Policy, Prompt, Sampling


@dataclass(frozen=True)
class Request:
    """One call of a policy."""

    role: str
    wave: int
    prompt: Prompt
    sampling: Sampling


class Watch:
    """Notes requests, and how long at least one of them is under way."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.busy_s = 0.0
        self.tokens = 0
        self._under_way = 0
        self._since = 0.0
        self._wave = 0
        """Requests between two silences belong together."""

    def over(self, role: str, policy: Policy) -> Policy:
        """``policy``, watched."""

        async def asked(prompt: Prompt, sampling: Sampling) -> Completion:
            self.requests.append(Request(role, self._wave, prompt, sampling))
            if self._under_way == 0:
                self._since = time.perf_counter()
            self._under_way += 1
            try:
                answer = await policy(prompt, sampling)
            finally:
                self._under_way -= 1
                if self._under_way == 0:
                    self.busy_s += time.perf_counter() - self._since
                    self._wave += 1
            self.tokens += len(answer.tokens)
            return answer

        return asked


@dataclass(frozen=True)
class Measured:
    """One rollout, and the same requests without it."""

    rollout_s: float
    busy_s: float
    bare_s: float
    tokens: int
    bare_tokens: int

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
    # Weights are handed over outside of what is timed.
    session.run_async(session.team.refresh())
    start = time.perf_counter()
    session.sample(step)
    rollout_s = time.perf_counter() - start
    collector.policies = plain

    async def repeat() -> int:
        tokens = 0
        for wave in sorted({request.wave for request in watch.requests}):
            answers = await asyncio.gather(
                *(
                    plain[request.role](request.prompt, request.sampling)
                    for request in watch.requests
                    if request.wave == wave
                )
            )
            tokens += sum(len(answer.tokens) for answer in answers)
        return tokens

    start = time.perf_counter()
    bare_tokens = session.run_async(repeat())
    bare_s = time.perf_counter() - start
    return Measured(rollout_s, watch.busy_s, bare_s, watch.tokens, bare_tokens)


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
    for name in ("rollout tok/s", "bare tok/s", "ratio", "sampling", "all else"):
        table.add_column(name, justify="right")
    idle = statistics.median(1 - m.busy_s / m.rollout_s for m in found)
    table.add_row(
        f"{statistics.median(m.tokens / m.rollout_s for m in found):,.0f}",
        f"{statistics.median(m.bare_tokens / m.bare_s for m in found):,.0f}",
        f"{statistics.median(m.ratio for m in found):.2f}",
        f"{1 - idle:.0%}",
        f"{idle:.0%}",
    )
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
