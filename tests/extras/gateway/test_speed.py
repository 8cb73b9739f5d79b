"""The script that measures the gateway plays both ways, and watches the memory."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def speed(*flags: str) -> str:
    script = [sys.executable, str(ROOT / "tools" / "speed" / "gateway.py")]
    small = ["--player", "scripted:useless", "--no-learn", "--tokens", "4", "--concurrency", "8"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*script, *small, *flags], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_both_ways_are_compared() -> None:
    rows = [line.split() for line in speed("--episodes", "16", "--rounds", "1").splitlines()]
    assert [row[0] for row in rows[1:]] == ["in", "gateway", "ratio"]


def test_memory_is_watched() -> None:
    lines = speed("--episodes", "80", "--memory").splitlines()
    assert [line.split()[0] for line in lines] == ["8", "40", "80"]
    assert all(line.endswith(" MB") for line in lines)
