"""What is measured here for docs/scale.md: the driver's work, Ray's, and a real step beside a
simulated one.

    PYTHONPATH=tools python -m scale.measure driver
    PYTHONPATH=tools python -m scale.measure ray
    PYTHONPATH=tools python -m scale.measure step

``driver``: core-teaching is played, scored, compared and logged by a session whose policies answer
at once; seconds of an episode, of a request and of an answer's token by least squares. ``ray``:
seconds of a call, and bytes a second from node to node, with two nodes on this machine. ``step``:
the sampler of the tiny team is timed alone, and from that the time of whole steps is simulated.
"""

import argparse
import logging
import pickle
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from coterie.datatypes import Completion, Episode, Prompt, Sampling
from coterie.models.sampler import Request
from coterie.training.command_line import parse
from coterie.training.preflight import preflight
from coterie.training.session import Session, open_session
from scale.simulation import Ask, EngineKind, Played, Work, play

_TEXT = "First 7 + 3 # 6 is 10 # 6 , then it follows that the sum is "


class AtOnce:
    """A policy that needs no time: numbers and signs, as long as they may be."""

    def __init__(self, codec: Any) -> None:
        self._tokens = np.array(codec.extend(_TEXT), dtype=np.int64)

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        n = sampling.max_new_tokens
        tokens = np.roll(np.resize(self._tokens, n), prompt.seed % 1009)
        return Completion(tokens, np.zeros(n, dtype=np.float32), "stop")


def opened(folder: str, stack: ExitStack, *flags: str) -> Session:
    """A session on the tiny team, with one thread and without evaluation."""
    said = ["--threads", "1", "--eval.no-enabled", "--run-dir", f"{folder}/run", *flags]
    settings = parse(said)
    return stack.enter_context(open_session(settings, preflight(settings)))


def drive(problems: int, cold: int, tokens: int) -> tuple[float, float, float]:
    """Of an episode: (seconds of playing, seconds after that until a learner has it, requests)."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        session = opened(
            folder, stack, "--rollout.problems-per-step", str(problems), "--env.k-cold", str(cold),
            "--env.max-new-tokens", str(tokens),
        )  # fmt: skip
        players = session.sampler.collector.policies
        players.update({role: AtOnce(session.team.codecs[role]) for role in players})
        logbook = stack.enter_context(session.open_logbook())
        playing, after, requests = [], [], 0
        for step in range(1, 5):  # the first one warms up
            start = time.process_time()
            batch = session.sample(step)
            played = time.process_time()
            credit = session.credit(batch)
            pickle.dumps((batch.rows, credit.advantage_B))
            session.record(step, batch, credit, {}, logbook)
            playing.append(played - start)
            requests = len(batch.rows)
            after.append(time.process_time() - played)
    return min(playing[1:]) / problems, min(after[1:]) / problems, requests / problems


def driver() -> None:
    """Print seconds of an episode, of a request and of a token."""
    rows, seconds = [], []
    for cold in (2, 6):
        for tokens in (32, 512, 2048):
            *took, requests = drive(48, cold, tokens)
            rows.append([1, requests, requests * tokens])
            seconds.append(took)
            ms = " and ".join(f"{1e3 * one:.2f}" for one in took)
            print(f"{requests:g} requests of {tokens:,} tokens: {ms} ms an episode")
    for name, took in zip(("playing", "after"), np.array(seconds).T):
        found = relative_fit(rows, took)
        off = abs(np.array(rows) @ found / took - 1).max()
        numbers = ", ".join(
            f"{what} {value:.2e} s" for what, value in zip(("episode", "request", "token"), found)
        )
        print(f"{name}: {numbers}; at most {100 * off:.0f} % off")


def relative_fit(rows: Sequence[Sequence[float]], seconds: Sequence[float]) -> Any:
    """Weights of the columns, none negative, with least squares of relative errors."""
    from scipy.optimize import nnls

    return nnls(np.array(rows) / np.array(seconds)[:, None], np.ones(len(rows)))[0]


def of_ray() -> None:
    """Print seconds of a call, and bytes a second."""
    import ray
    from ray.cluster_utils import Cluster

    size, calls = 1 << 28, 2000
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1, resources={"other": 1})
    ray.init(address=cluster.address, logging_level=logging.ERROR)

    class Echo:
        def take(self, given: Any) -> int:
            return len(given)

    echo: Any = ray.remote(Echo).options(resources={"other": 0.1}).remote()
    asked = pickle.dumps([("alice_0", Request(np.arange(512), 0, Sampling(64)))])
    ray.get([echo.take.remote(asked) for _ in range(100)])
    start = time.process_time(), time.perf_counter()
    ray.get([echo.take.remote(asked) for _ in range(calls)])
    cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
    print(f"a call: {cpu / calls:.2e} s of the driver's core, {wall / calls:.2e} s in all")
    for _ in range(3):
        start = time.perf_counter()
        put = ray.put(np.ones(size, dtype=np.uint8))
        middle = time.perf_counter()
        ray.get(echo.take.remote(put))
        end = time.perf_counter()
        print(f"object store: {size / (middle - start):.2e} bytes/s, ", end="")
        print(f"node to node: {size / (end - middle):.2e} bytes/s")
        del put
    ray.shutdown()
    cluster.shutdown()


@dataclass(frozen=True)
class Fitted:
    """A sampler's speed as measured: seconds of an iteration, of each row in it, of a prompt's
    token."""

    iteration_s: float
    row_s: float
    prompt_s: float

    def prefill_s(self, tokens: int) -> float:
        return self.prompt_s * tokens

    def decode_s(self, rows: int, context: float) -> float:
        return self.iteration_s + self.row_s * rows


def replayed(
    episodes: Sequence[Episode], kinds: dict[str, EngineKind], work: Work
) -> tuple[Played, int]:
    """What a simulation takes for the requests that a real step had; and their tokens."""
    simulated, tokens = [], 0
    for episode in episodes:
        turns: dict[bool, list[Ask]] = {}
        for row in episode.trajectories:
            prompt, written = row.tokens[~row.mask], int(row.mask.sum())
            hinted = int(row.agent.rpartition("_")[2]) >= 2
            turns.setdefault(hinted, []).append(
                Ask(row.role, row.role, prompt, len(prompt), len(prompt) - 1, written)
            )
            tokens += written
        simulated.append([turns[which] for which in sorted(turns)])
    return play(simulated, {role: [role] for role in kinds}, kinds, work), tokens


def fitted(session: Session, role: str) -> Fitted:
    """The speed of a role's sampler, from batches of few and many rows, short and long."""
    policy: Any = session.team.policies[role]
    words = np.unique(session.team.codecs[role].extend(_TEXT))
    random = np.random.default_rng(0)
    rows, seconds = [], []
    for count in (16, 64, 192):
        for read, written in ((24, 8), (24, 40), (72, 8), (72, 40)):
            found = []
            for again in range(9):
                asked = [
                    (f"{role}_{i}", Request(random.choice(words, read), i, Sampling(written)))
                    for i in range(count * again, count * again + count)
                ]
                start = time.process_time()
                lengths = [len(one.tokens) for one in policy.answer(asked)]
                took = time.process_time() - start
                found.append((took, [max(lengths), sum(lengths), read * count]))
            took, what = sorted(found)[4]
            rows.append(what)
            seconds.append(took)
    return Fitted(*map(float, relative_fit(rows, seconds)))


def sampled(session: Session, number: int) -> tuple[Sequence[Episode], float, float]:
    """(episodes of a step, processor seconds of its sampling, those of the samplers in it)."""
    inside = 0.0

    def timed(sample: Any) -> Any:
        def run(asked: Any) -> Any:
            nonlocal inside
            begun = time.process_time()
            found = sample(asked)
            inside += time.process_time() - begun
            return found

        return run

    with ExitStack() as stack:
        for policy in session.team.policies.values():
            sampler: Any = policy.sampler  # type: ignore[attr-defined]
            stack.enter_context(mock.patch.object(sampler, "sample", timed(sampler.sample)))
        start = time.process_time()
        batch = session.sample(number)
        return batch.episodes, time.process_time() - start, inside


def step() -> None:
    """Print what sampling a step takes in one process, on one thread, and what is simulated: the
    samplers are timed alone, and the driver in steps of 64 problems."""
    kinds, episode_s = {}, 0.0
    for problems in (64, 16, 128):
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            session = opened(folder, stack, "--rollout.problems-per-step", str(problems))
            sampled(session, 1)
            steps = [sampled(session, number) for number in range(2, 13)]
            if not kinds:
                kinds = {
                    role: EngineKind(fitted(session, role), np.inf, rows=4096, together=True)
                    for role in session.team.policies
                }
                episode_s = float(np.median([took - inside for _, took, inside in steps])) / 64
                print(f"driver: {episode_s:.2e} s an episode; {kinds}")
                continue
        simulated = []
        for episodes, *_ in steps:
            played, tokens = replayed(episodes, kinds, Work(episode_s=episode_s))
            assert played.tokens == tokens
            # One thread does one thing after another.
            simulated.append(played.driver_s + sum(played.engine_s.values()))
        there, here = np.median([took for _, took, _ in steps]), np.median(simulated)
        print(f"{problems} problems, {6 * problems} requests: {there:.3f} s, simulated ", end="")
        print(f"{here:.3f} s ({100 * (here / there - 1):+.0f} %)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["driver", "ray", "step"])
    {"driver": driver, "ray": of_ray, "step": step}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
