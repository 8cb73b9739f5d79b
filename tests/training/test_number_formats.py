"""Full weights at the papers' learning rates: how far they go, in which number format."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from coterie import train
from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import ModelSpec
from coterie.agents.team.trained_role import TrainedRole
from coterie.algorithms import LearnerSettings, get
from coterie.algorithms.learner import Learner
from coterie.datatypes import Trajectory, UserError
from coterie.training.run import checkpoint
from coterie.training.run.checkpoint import Progress

UPDATES = 20
VOCABULARY = 320
Weights = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def folder(checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen3 shape with matrices as large as they begin: a deviation of .02."""
    path = tmp_path_factory.mktemp("begin")
    shutil.copytree(checkpoint("qwen3"), path, dirs_exist_ok=True)
    weights = load_file(path / "model.safetensors")
    small = {name: t * (0.02 / 0.3 if t.ndim > 1 else 1) for name, t in weights.items()}
    save_file(small, path / "model.safetensors", {"format": "pt"})
    return path


def steps(count: int = UPDATES) -> Iterator[tuple[list[Trajectory], np.ndarray]]:
    """Rows and advantages of each training step."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        rows = []
        for i in range(8):
            mask = np.arange(int(rng.integers(16, 32))) >= 6
            logprobs = np.where(mask, -np.log(VOCABULARY), 0).astype(np.float32)
            tokens = rng.integers(0, VOCABULARY, len(mask))
            rows.append(
                Trajectory(f"a_{i}", "a", tokens, mask, logprobs, 0.0, {}, {"problem": "p"})
            )
        yield rows, rng.normal(size=8)


def role(folder: Path, dtype: str, lr: float) -> TrainedRole:
    spec = ModelSpec(str(folder), device="cpu", dtype=dtype)  # type: ignore[arg-type]
    loaded = load_team({"a": spec}, {"a"})["a"]
    settings = LearnerSettings(lr=lr)
    return TrainedRole(loaded, Learner(loaded.handle, get("grpo"), settings))


def weights(trained: TrainedRole) -> Weights:
    return {n: p.detach().float().clone() for n, p in trained.loaded.handle.parameters().items()}


def travelled(start: Weights, end: Weights) -> tuple[float, float]:
    """How far, and the share of the weights that moved."""
    gaps = torch.cat([(end[name] - start[name]).flatten() for name in start])
    return float(gaps.norm()), float((gaps != 0).float().mean())


@pytest.fixture(scope="module")
def in_float32(folder: Path) -> dict[float, float]:
    """Learning rate -> how far 20 updates go in float32."""
    ways = {}
    for lr in (5e-7, 1e-6):
        trained = role(folder, "float32", lr)
        start = weights(trained)
        for rows, advantages in steps():
            trained.learner.update(rows, advantages)
        ways[lr] = travelled(start, weights(trained))[0]
    return ways


@pytest.mark.parametrize("lr", [5e-7, 1e-6])  # COREA's, EAPO's
def test_computed_in_bfloat16_they_go_as_far_as_in_float32(folder, in_float32, lr, tmp_path):
    trained = role(folder, "bfloat16", lr)
    start = weights(trained)
    for done, (rows, advantages) in enumerate(steps(), start=1):
        trained.learner.update(rows, advantages)
        if done == UPDATES // 2:
            path = checkpoint.save(tmp_path, Progress(done, 0, {}, {}), {"a": trained}, keep=1)
    way, share = travelled(start, weights(trained))
    assert way == pytest.approx(in_float32[lr], rel=0.05)
    assert share > 0.95
    # The second half once more, from the checkpoint between them.
    again = role(folder, "bfloat16", lr)
    checkpoint.load(path, {"a": again})
    for rows, advantages in list(steps())[UPDATES // 2 :]:
        again.learner.update(rows, advantages)
    ends = [weights(trained), weights(again)]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in start)
    state, resumed = trained.state_dict()[0], again.state_dict()[0]
    assert {tensor.dtype for tensor in state.values()} == {torch.float32}
    assert all(torch.equal(state[name], resumed[name]) for name in state)


def test_a_checkpoint_of_another_number_format_is_refused(folder, tmp_path):
    trained = role(folder, "bfloat16", 1e-6)
    path = checkpoint.save(tmp_path, Progress(1, 0, {}, {}), {"a": trained}, keep=1)
    with pytest.raises(
        UserError, match="trained in bfloat16 and would continue in float32"
    ) as refusal:
        checkpoint.load(path, {"a": role(folder, "float32", 1e-6)})
    assert "damaged" not in str(refusal.value)


def test_a_run_in_bfloat16_resumes_bit_for_bit_and_leaves_16_bits(tmp_path: Path) -> None:
    flags = ["--agents.alice.dtype", "bfloat16", "--rollout.problems-per-step", "4"]
    flags += ["--eval.no-enabled", "--checkpoint-every", "1", "--learner.lr", "1e-6"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert train.main([*flags, "--steps", "2", "--run-dir", str(whole)]) == 0
    assert train.main([*flags, "--steps", "1", "--run-dir", str(broken)]) == 0
    assert train.main(["--resume", str(broken), "--steps", "2"]) == 0
    file = "checkpoints/step-000002/alice/model.safetensors"
    last = [load_file(run / file) for run in (whole, broken)]
    assert all(torch.equal(last[0][name], last[1][name]) for name in last[0])
    assert {tensor.dtype for tensor in last[0].values()} == {torch.float32}
    final = load_file(broken / "final/alice/model.safetensors")
    assert all(torch.equal(final[name], tensor.bfloat16()) for name, tensor in last[1].items())
    assert json.loads((broken / "final/alice/config.json").read_text())["dtype"] == "bfloat16"
    for line in (broken / "metrics.jsonl").read_text().splitlines():
        metrics = json.loads(line)
        # Sampled with the weights as they compute: apart by two orders of rounding, and no more.
        assert 1e-6 < metrics["learner/alice/mismatch/mean"] < 2e-2
        assert metrics["learner/bob/mismatch/mean"] < 1e-5
    other = load_file(broken / "final/bob/model.safetensors")
    assert {tensor.dtype for tensor in other.values()} == {torch.float32}
