"""A run that is killed and taken up again ends as if nothing had happened, bit for bit."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from coterie import train
from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.training.run.directory import RunDirectory

ROOT = Path(__file__).resolve().parents[2]
STEPS = 6
FLAGS = (
    "--steps", str(STEPS), "--rollout.problems-per-step", "6", "--problems.held-out", "24",
    "--learner.epochs", "2", "--learner.schedule", "cosine", "--learner.warmup", "2",
    "--threads", "1", "--eval.resamples", "10",
)  # fmt: skip
PATIENCE_S = 1200
"""On a machine that does other work; what hangs waits longer."""


def start(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "train.py", *argv],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def steps_logged(run: Path) -> int:
    log = run / "metrics.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def wait_for_step(process: subprocess.Popen[str], run: Path, step: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while steps_logged(run) < step:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.005)


def without_timings(run: Path) -> list[dict[str, object]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [
        {name: value for name, value in json.loads(line).items() if not name.startswith("time/")}
        for line in lines
    ]


def assert_equal_runs(first: Path, second: Path) -> None:
    last = f"checkpoints/step-{STEPS:06d}"
    for role in ("alice", "bob"):
        for file in ("model.safetensors", "optimizer.safetensors"):
            a, b = load_file(first / last / role / file), load_file(second / last / role / file)
            assert a.keys() == b.keys()
            assert all(a[name].equal(b[name]) for name in a), f"{role}/{file}"
    assert (first / "episodes.jsonl").read_bytes() == (second / "episodes.jsonl").read_bytes()
    assert without_timings(first) == without_timings(second)
    ends = [json.loads((run / "summary.json").read_text()) for run in (first, second)]
    for key in ("before", "after", "steps", "sampled_tokens"):
        assert ends[0][key] == ends[1][key]


@pytest.mark.slow
def test_killed_runs_resume_bit_for_bit(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert train.main(["--run-dir", str(whole), *FLAGS]) == 0

    moments = random.Random(time.time_ns())
    first, second = sorted(moments.sample(range(1, STEPS), 2))
    starts = (("--run-dir", str(broken), *FLAGS), ("--resume", str(broken)))
    for step, argv in zip((first, second), starts):
        process = start(*argv)
        wait_for_step(process, broken, step)
        # Somewhere within a step: in sampling, updating, logging or saving.
        time.sleep(moments.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert train.main(["--resume", str(broken)]) == 0
    assert_equal_runs(whole, broken)


@pytest.mark.slow
def test_a_run_that_is_interrupted_says_how_to_go_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start("--run-dir", str(run), *FLAGS, "--checkpoint-every", "1000")
    wait_for_step(process, run, 2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert f"python train.py --resume {run}" in out
    done = steps_logged(run)
    assert (run / "checkpoints" / f"step-{done:06d}").is_dir()
    assert train.main(["--resume", str(run), "--steps", str(done + 1)]) == 0
    assert steps_logged(run) == done + 1


@pytest.mark.slow
def test_a_finished_run_has_nothing_left_to_do_and_can_be_made_longer(
    tmp_path: Path, refused: Any
) -> None:
    run = tmp_path / "run"
    flags = ("--steps", "1", "--rollout.problems-per-step", "4", "--eval.no-enabled")
    assert train.main(["--run-dir", str(run), *flags]) == 0
    summary = (run / "summary.json").read_bytes()
    with pytest.raises(SystemExit, match="0"):
        train.main(["--resume", str(run)])
    assert (run / "summary.json").read_bytes() == summary
    assert train.main(["--resume", str(run), "--steps", "2"]) == 0
    assert steps_logged(run) == 2
    shorter = refused(train.main, "--resume", run, "--steps", 1)
    assert "is at step 2; --steps must be at least that" in shorter


@pytest.mark.slow
def test_a_run_that_stopped_before_its_first_checkpoint_begins_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    flags = ("--steps", "2", "--rollout.problems-per-step", "4", "--problems.held-out", "4")
    assert train.main(["--run-dir", str(run), *flags, "--checkpoint-every", "9"]) == 0
    whole = (run / "episodes.jsonl").read_bytes()
    # What is written at its end, of which such a run has nothing.
    for name in ("checkpoints", "final"):
        shutil.rmtree(run / name)
    (run / "summary.json").unlink()
    assert train.main(["--resume", str(run)]) == 0
    assert (run / "episodes.jsonl").read_bytes() == whole


def test_fewer_steps_than_a_run_has_done_are_refused_before_torch_is_imported(
    tmp_path: Path, python: Any
) -> None:
    # As a run that was stopped at step 12 leaves it; nothing else of it is looked at.
    run = RunDirectory.create(tmp_path / "run", parse(["--steps", "20"]).plain())
    run.close()
    for name in ("step-000009", "step-000012", ".step-000015.part"):
        (run.checkpoints / name).mkdir(parents=True)
    assert parse(["--resume", str(run.path), "--steps", "12"]).run.steps == 12
    with pytest.raises(UserError, match="is at step 12; --steps must be at least that"):
        parse(["--resume", str(run.path), "--steps", "3"])
    code = (
        "import sys; from coterie import train; code = train.main(sys.argv[1:]); "
        "sys.exit(99 if 'torch' in sys.modules else code)"
    )
    ended = python("-c", code, "--resume", run.path, "--steps", 3, code=2)
    assert ended.stderr.count("\n") == 1
