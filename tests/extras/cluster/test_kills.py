"""Kills at random moments of a run, which ends as if there had been none.

For more: ``COTERIE_KILLS=20 COTERIE_SEED=1 pytest -n 0 -m slow -s`` with this file.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from coterie.cli.arguments import overlay

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).resolve().parents[3]
KILLS, SEED = (int(os.environ.get(f"COTERIE_{name}", least)) for name, least in
               (("KILLS", "2"), ("SEED", "0")))  # fmt: skip
KINDS = ("worker", "node", "command")
STEPS = str(3 * KILLS)


def workers() -> list[int]:
    """Process ids of learners and engines, all of which are this test's."""
    processes = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "".join(process.cmdline()[:1]).startswith("ray::Worker"):
                processes.append(process.pid)
    return processes


def steps_done(path: Path) -> int:
    log = path / "metrics.jsonl"
    return len(log.read_text().splitlines()) if log.exists() else 0


def files(path: Path) -> dict[str, bytes]:
    paths = [path / "episodes.jsonl", *path.glob("final/*/*.safetensors")]
    return {f"{file.relative_to(path)}": file.read_bytes() for file in paths}


def test_a_run_that_is_killed_at_random_ends_as_it_should(
    nodes: Any,
    play: Callable[..., dict[str, bytes]], flags: tuple[str, ...],
    apart: tuple[str, ...], tmp_path: Path,
) -> None:  # fmt: skip
    play(tmp_path / "here", "--steps", STEPS)
    chance, path = random.Random(SEED), tmp_path / "there"

    def begin() -> subprocess.Popen[bytes]:
        said = ("--resume", str(path)) if path.exists() else (*flags, "--run-dir", str(path))
        more = (*nodes.flags, *apart, "--cluster.restarts", "100", "--steps", STEPS)
        return subprocess.Popen([sys.executable, "train.py", *overlay([*said, *more])], cwd=ROOT)

    run, killed, seen = begin(), list[str](), 0
    while (code := run.poll()) is None:
        if len(killed) < KILLS and steps_done(path) > seen:
            time.sleep(chance.uniform(0, 1))
            seen, what = steps_done(path), KINDS[(SEED + len(killed)) % len(KINDS)]
            if what == "command":
                run.kill()
                run.wait()
                run = begin()
            elif what == "node":
                nodes.remove(chance.choice(nodes.more).node_id)
                nodes.fill()
            else:
                os.kill(chance.choice(workers()), signal.SIGKILL)
            killed.append(what)
        time.sleep(0.05)
    print(f"seed {SEED}: {killed}")
    assert code == 0
    assert len(killed) == KILLS
    assert files(path) == files(tmp_path / "here")
