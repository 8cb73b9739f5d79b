"""Models in codes of 4 or 8 bits, and what they learn from."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.algorithms import Learner, LearnerSettings, get
from coterie.datatypes import Trajectory

LORA = LoraSpec(rank=4)


def load(folder: Path, dtype: str, **settings: Any) -> ModelHandle:
    spec = ModelSpec(str(folder), **{"lora": LORA, "device": "cpu", "dtype": dtype} | settings)
    return load_team({"a": spec}, {"a"})["a"].handle


def write_values(handle: ModelHandle, source: Path, target: Path) -> Path:
    """A checkpoint with the values for which the codes stand."""
    handle.save_base(target)
    for file in source.glob("tokenizer*"):
        shutil.copy(file, target)
    return target


def row(handle: ModelHandle, seed: int) -> Trajectory:
    random = np.random.default_rng(seed)
    tokens = random.integers(3, handle.vocab_size, 20)
    mask, logprobs = np.arange(20) >= 8, np.full(20, -4.0, np.float32)
    return Trajectory("a_0", "a", tokens, mask, logprobs, 0.0, {}, {})


def learn(learner: Learner, steps: range) -> dict[str, float]:
    for step in steps:
        rows = [row(learner.model, 10 * step + i) for i in range(4)]
        metrics = learner.update(rows, np.linspace(-1, 1, 4))
    return metrics


def learner(handle: ModelHandle) -> Learner:
    return Learner(handle, get("grpo"), LearnerSettings(lr=3e-3, importance_correction="none"))


def exact(a_NK: torch.Tensor, b_KM: torch.Tensor) -> torch.Tensor:
    """The product of integers on any processor: float64 holds each sum."""
    return (a_NK.double() @ b_KM.double()).to(torch.int32)
