"""``coterie serve`` for real: it answers, a run trains with it, and it may die."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import ModelSpec
from coterie.agents.sampling.policy import LocalPolicy
from coterie.cli.command_line import parse
from coterie.datatypes import Prompt, Sampling
from coterie.experts import ServerPolicy
from coterie.experts.naming import read_player
from coterie.training.config.preflight import preflight
from coterie.training.session import open_session

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed"),
]

READY_S = 600
IMPATIENT = "&retries=0&breaker_cooldown_s=1&timeout_s=60"


@dataclass
class Serving:
    """A server in a process of its own, and what it said of how to name it."""

    process: subprocess.Popen[str]
    name: str


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with served(port) as server:
        yield server


@contextmanager
def served(port: int) -> Iterator[Serving]:
    """A server that answers, on this port."""
    command = [sys.executable, "-m", "coterie", "serve", "tiny:expert", "--port", str(port)]
    with subprocess.Popen(
        [*command, "--context", "512"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    ) as process:
        assert process.stdout is not None
        late = threading.Timer(READY_S, process.kill)
        late.start()
        said = ""
        try:
            for line in process.stdout:
                said += line
                if match := re.search(r'--agents.ROLE.model "(.+)"', line):
                    late.cancel()
                    yield Serving(process, match[1])
                    break
        finally:
            late.cancel()
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, -signal.SIGKILL), said


async def test_a_widened_model_says_what_it_says_in_this_process(serving: Serving) -> None:
    role = load_team({"expert": ModelSpec("tiny:expert")}, trained=set())["expert"]
    question = "7 + 8 - 3 ="
    prompt = Prompt(np.array(role.codec.open(question)), question, "expert_0", 0)
    greedy = Sampling(12, temperature=0.0)
    here = await LocalPolicy(role.handle, role.codec)(prompt, greedy)
    async with ServerPolicy(read_player(serving.name), role.codec) as policy:  # type: ignore[arg-type]
        assert await policy.models() == ["tiny:expert"]
        there = await policy(prompt, greedy)
    # A server's text begins without the space that a token begins with.
    assert role.codec.decode(there.tokens).strip() == role.codec.decode(here.tokens).strip()


async def test_many_seeded_prompts_at_once(serving: Serving) -> None:
    """Together they are longer than what is read in one go; none of them is read in parts."""
    role = load_team({"expert": ModelSpec("tiny:expert")}, trained=set())["expert"]
    text = "7 + 8 - 3 = " * 60
    ids = np.array(role.codec.open(text))
    async with ServerPolicy(read_player(serving.name), role.codec) as policy:  # type: ignore[arg-type]
        asked = [policy(Prompt(ids, text, f"e_{i}", i), Sampling(8)) for i in range(64)]
        said = await asyncio.gather(*asked)
    assert all(len(answer.tokens) for answer in said)


def test_a_run_trains_beside_it_outlives_it_and_takes_it_back(
    serving: Serving, tmp_path: Path
) -> None:
    flags = ["--steps", "6", "--rollout.problems-per-step", "4", "--eval.no-enabled"]
    flags += ["--agents.bob.no-trained", "--agents.bob.model", serving.name + IMPATIENT]
    settings = parse([*flags, "--run-dir", str(tmp_path / "run")])
    lines: list[dict[str, Any]] = []
    asked: list[int] = []
    with ExitStack() as stack:
        session = stack.enter_context(open_session(settings, preflight(settings)))
        logbook = stack.enter_context(session.open_logbook())
        for step in session.steps_left():
            if step == 3:
                os.kill(serving.process.pid, signal.SIGKILL)
                serving.process.wait()
            if step == 5:
                address = re.search(r":(\d+)/", serving.name)
                assert address is not None
                stack.enter_context(served(int(address[1])))
            batch = session.sample(step)
            credit = session.credit(batch)
            session.record(step, batch, credit, session.update(batch, credit), logbook)
            rows = [row for e in batch.episodes for row in e.trajectories]
            asked.append(sum(row.role == "bob" for row in rows))
        metrics = (session.run.path / "metrics.jsonl").read_text().splitlines()
        lines = [json.loads(line) for line in metrics]
    # None of its failures is lost. Once it is back it is tried with one call, then with all.
    failed = [line["rollout/failed"] for line in lines]
    assert failed[:4] == [0, 0, *asked[2:4]]
    assert failed[4] < asked[4]
    assert failed[5] == 0
    assert all("learner/alice/grad_norm" in line for line in lines)
