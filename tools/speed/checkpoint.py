"""What a checkpoint costs, as a share of a training step of the tiny team.

``python tools/speed/checkpoint.py``: one short run that saves after every step; median seconds of
each phase of a step, and the checkpoint's share of all of them.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from coterie import train

PHASES = ("sample", "update", "record", "checkpoint")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30, help="training steps to look at")
    steps: int = parser.parse_args().steps
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        flags = ["--steps", str(steps + 1), "--eval.no-enabled", "--run-dir", str(run)]
        if train.main([*flags, "--checkpoint-every", "1"]):
            raise SystemExit(1)
        lines = (run / "metrics.jsonl").read_text().splitlines()
        newest = max((run / "checkpoints").iterdir())
        size = sum(path.stat().st_size for path in newest.rglob("*") if path.is_file())
    # A step logs the phases before it: the first one has saved nothing yet.
    logged = [json.loads(line) for line in lines][1:]
    seconds = {
        phase: statistics.median(step[f"time/{phase}_s"] for step in logged) for phase in PHASES
    }
    for phase, value in seconds.items():
        print(f"{phase:<12}{value * 1e3:8.1f} ms")
    print(
        f"a checkpoint of {size / 2**20:.1f} MiB is "
        f"{seconds['checkpoint'] / sum(seconds.values()):.1%} of a step"
    )


if __name__ == "__main__":
    main()
