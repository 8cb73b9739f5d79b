"""Whole runs on real engines."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
GPU = torch.cuda.is_available()
# Models are in bfloat16 on a GPU.
BOUND = 5e-2 if GPU else 1e-4


def train(*flags: str, folder: Path) -> list[dict[str, float]]:
    """The metrics of a run in a process of its own."""
    command = [sys.executable, "train.py", "--engine", "vllm", "--eval.no-enabled", *flags]
    done = subprocess.run(
        [*command, "--run-dir", str(folder)], cwd=ROOT, env={**os.environ}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_team_learns_with_the_next_batch_sampled_beside_the_update(tmp_path: Path) -> None:
    flags = ("--rollout.overlap", "--steps", "3", "--rollout.problems-per-step", "4")
    first, second, third = train(*flags, folder=tmp_path / "run")
    for role in ("alice", "bob"):
        assert first[f"learner/{role}/mismatch/mean"] < BOUND
        assert [m[f"learner/{role}/staleness"] for m in (first, second, third)] == [0, 1, 1]
        if not GPU:  # rounding hides one update there
            assert third[f"learner/{role}/mismatch/mean"] > BOUND
    assert all(m["rollout/failed"] == 0 for m in (first, second, third))
    memory = Path("/dev/shm")
    assert not memory.is_dir() or not list(memory.glob(f"coterie-{os.getpid()}-*"))


@pytest.mark.gpu
@pytest.mark.parametrize("level", ["1", "2"])
def test_two_models_share_one_gpu_by_turns(tmp_path: Path, level: str) -> None:
    flags = ("--vllm.time-share", "--vllm.sleep-level", level, "--vllm.gpu-memory", "0.3")
    for metrics in train(*flags, "--steps", "2", folder=tmp_path / "run"):
        assert metrics["learner/alice/mismatch/mean"] < BOUND


@pytest.mark.gpu
def test_two_adapters_share_an_engine_on_a_gpu(tmp_path: Path) -> None:
    flags = ["--vllm.gpu-memory", "0.3", "--vllm.eager", "--vllm.sleep-level", "2"]
    for role in ("alice", "bob"):
        flags += [f"--agents.{role}.model", "tiny:alice", f"--agents.{role}.tuning", "lora"]
    for metrics in train(*flags, "--steps", "3", folder=tmp_path / "run"):
        for role in ("alice", "bob"):
            assert metrics[f"learner/{role}/mismatch/mean"] < BOUND


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="not run: there is one GPU at most")
def test_engines_on_separate_gpus(tmp_path: Path) -> None:
    flags = ("--agents.bob.engine-device", "cuda:1", "--vllm.gpu-memory", "0.3", "--vllm.eager")
    for metrics in train(*flags, "--steps", "3", folder=tmp_path / "run"):
        assert metrics["learner/bob/mismatch/mean"] < BOUND


@pytest.mark.gpu
@pytest.mark.parametrize("weights", ["transfer", "reload"])
def test_full_weights_reach_an_engine_on_a_gpu(tmp_path: Path, weights: str) -> None:
    flags = ("--vllm.weights", weights, "--vllm.gpu-memory", "0.3", "--vllm.eager")
    for metrics in train(*flags, "--steps", "3", folder=tmp_path / "run"):
        assert metrics["learner/bob/mismatch/mean"] < BOUND
