"""What is waited for before a command says something: ``python tools/speed/start_up.py``.

Each command runs in a process of its own, whose output is read as it comes. A row: seconds and CPU
seconds until the first line and until the end, both with the processes that the command started
and waited for. ``a run's first step`` is a training run of one step without evaluation, so that its
end less its first line is what imports, loading and one step of the tiny team take.

    python tools/speed/start_up.py --repeat 5     # the fastest of five
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "coterie --help": ("-m", "coterie", "--help"),
    "train --help": ("train.py", "--help"),
    "all settings": ("train.py", "--env", "core-teaching", "--help"),
    "a refusal": ("train.py", "--steps", "0"),
    "a run's first step": ("train.py", "--steps", "1", "--eval.no-enabled", "--run-dir", "{new}"),
}


@dataclass(frozen=True)
class Waited:
    """Seconds by the wall's clock and by the processors', nan where the system does not tell."""

    wall_s: float
    cpu_s: float


def measure(argv: Sequence[str]) -> tuple[Waited, Waited]:
    """Run Python with ``argv``; what was waited until the first line of either stream (until the
    end if it says nothing) and until the end."""
    start, used = time.perf_counter(), os.times()
    with subprocess.Popen(
        [sys.executable, *argv], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        first_line = process.stdout.readline()
        first = Waited(time.perf_counter() - start, _cpu_s(process.pid))
        process.stdout.read()
    now = os.times()
    # Hundredths, which a difference of floats misses by a little.
    cpu_s = round(sum(now[2:4]) - sum(used[2:4]), 3)
    end = Waited(time.perf_counter() - start, cpu_s)
    return (first if first_line else end), end


def _cpu_s(pid: int) -> float:
    """What a process has used so far, by Linux's account."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return sum(int(ticks) for ticks in fields[11:13]) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print one row for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the fastest counts")
    repeat = parser.parse_args().repeat
    print(f"{'':<20}{'first line':>12}{'CPU s':>8}{'end':>8}{'CPU s':>8}")
    for name, argv in COMMANDS.items():
        found = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as folder:
                found.append(measure([word.format(new=f"{folder}/run") for word in argv]))
        first, end = min(found, key=lambda pair: pair[1].cpu_s)
        row = (first.wall_s, first.cpu_s, end.wall_s, end.cpu_s)
        print(f"{name:<20}{row[0]:>12.2f}{row[1]:>8.2f}{row[2]:>8.2f}{row[3]:>8.2f}")


if __name__ == "__main__":
    main()
