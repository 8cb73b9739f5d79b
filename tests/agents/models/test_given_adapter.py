"""What a role was before training, where it started from an adapter of before."""

from pathlib import Path

import numpy as np
import pytest
import torch

from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.algorithms import Algorithm, Learner, LearnerSettings
from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import Trajectory

START = Algorithm(kl_coefficient=0.1, distillation=Distillation(1.0, reader="start"))
AVERAGE = Algorithm(kl_coefficient=0.1, distillation=Distillation(1.0, reader="average"))
ADVANTAGES = np.linspace(-1, 1, 4)
CHANCE = np.random.default_rng(0)


def row() -> Trajectory:
    tokens, mask = CHANCE.integers(3, 99, 20), np.arange(20) >= 8
    logprobs = np.where(mask, -4.6, 0).astype(np.float32)
    hint = CHANCE.integers(3, 99, 10)
    return Trajectory("a_0", "a", tokens, mask, logprobs, 0.0, {}, {}, reread_after=hint)


ROWS = [row() for _ in range(4)]


@pytest.fixture
def pair(checkpoint, shake, tmp_path: Path):
    """Two roles on one base, each from an adapter of its own, or from new ones; anew each time."""

    def team(lora: dict[str, LoraSpec]) -> list[ModelHandle]:
        base = str(checkpoint("qwen3"))
        specs = {
            role: ModelSpec(base, device="cpu", lora=adapter) for role, adapter in lora.items()
        }
        return [role.handle for role in load_team(specs, set(specs)).values()]

    for role, handle in zip("ab", team({role: LoraSpec(rank=4) for role in "ab"})):
        shake(handle, ord(role))
        handle.save(tmp_path / role)

    def load(*, given: bool = True) -> list[ModelHandle]:
        rank = LoraSpec(rank=4)
        return team({r: LoraSpec(adapter=str(tmp_path / r)) if given else rank for r in "ab"})

    return load


def learner(handle: ModelHandle, algorithm: Algorithm = START) -> Learner:
    return Learner(handle, algorithm, LearnerSettings(lr=3e-3, importance_correction="none"))


def same(ones: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return all(torch.equal(first, other) for first, other in zip(ones, others, strict=True))


def test_it_is_the_adapter_and_not_the_base(pair) -> None:
    """For two roles on one base, of which each learns."""
    mine, others = map(learner, pair())
    start, theirs = mine._snapshot(ROWS), others._snapshot(ROWS)
    assert not same(start, theirs)
    for each in (mine, others):
        assert each.update(ROWS, ADVANTAGES)["kl"] == pytest.approx(0, abs=1e-9)
    assert same(mine._reference(ROWS), start)
    assert same(others._reference(ROWS), theirs)
    assert not same(mine._snapshot(ROWS), start)
    assert mine.update(ROWS, ADVANTAGES)["kl"] > 1e-6


def test_in_a_first_step_the_average_and_the_start_read_alike(pair) -> None:
    means = [
        learner(pair()[0], settings).update(ROWS, ADVANTAGES)["distillation/mean"]
        for settings in (START, AVERAGE)
    ]
    assert means[0] == means[1] != 0


def test_a_checkpoint_holds_it(pair) -> None:
    first = learner(pair()[0])
    start = first._snapshot(ROWS)
    first.update(ROWS, ADVANTAGES)
    tensors, plain = first.state_dict()
    # A model elsewhere: nothing but the checkpoint says what this one was.
    other = learner(pair()[1])
    other.load_state_dict(tensors, plain)
    assert same(other._reference(ROWS), start)
    assert not any("reference/" in name for name in learner(pair(given=False)[0]).state_dict()[0])
