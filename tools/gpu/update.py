"""One update of the same rows, made ready: by this project's learner, and by TRL's GRPOTrainer.

Rows of one group, which share a prompt, all in one micro-batch; GRPO, AdamW, one gradient clipped.
TRL computes its own loss with activation checkpointing on.
"""

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer

from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.locate import TINY
from coterie.algorithms import Learner, LearnerSettings, get
from coterie.datatypes import Trajectory

SETTINGS = LearnerSettings(micro_batch_tokens=1 << 30, importance_correction="none")
Update = Callable[[list[Trajectory]], None]


def rows(vocabulary: int, prompt: int, answers: list[int]) -> list[Trajectory]:
    """A prompt that all rows share, and an answer of each length."""
    rng = np.random.default_rng(0)
    start, made = rng.integers(1, vocabulary, prompt), []
    for i, length in enumerate(answers):
        mask = np.arange(prompt + length) >= prompt
        made.append(
            Trajectory(
                agent=f"a_{i}",
                role="a",
                tokens=np.concatenate([start, rng.integers(1, vocabulary, length)]),
                mask=mask,
                logprobs=np.where(mask, -np.log(vocabulary), 0).astype(np.float32),
                reward=0.0,
                reward_terms={},
                groups={"problem": "p"},
            )
        )
    return made


def advantages(count: int) -> np.ndarray:
    """Return advantages of ``count`` rows, alternating -1 and 1."""
    return np.where(np.arange(count) % 2, 1.0, -1.0)


def ours(module: Any, tuning: str, recompute: Any, dtype: torch.dtype | None = None) -> Update:
    """This repository's learner; ``dtype``: what it computes in, where weights are held in more."""
    adapter = "alice" if tuning == "lora" else None
    options = {"adapter": adapter, "recompute": recompute, "dtype": dtype}
    handle = ModelHandle(module, tokenizer=None, trained=True, context=1 << 20, **options)
    learner = Learner(handle, get("grpo"), SETTINGS)

    def update(made: list[Trajectory]) -> None:
        learner.update(made, advantages(len(made)))

    return update


def trl(module: Any, prompt: int, dtype: torch.dtype | None = None) -> Update:
    """TRL's loss on a trainer of its own, its AdamW behind it; ``dtype`` as for :func:`ours`."""
    from datasets import Dataset
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    device = next(module.parameters()).device
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=device.type == "cpu",
        bf16=dtype is not None,
        gradient_checkpointing=True,
        num_generations=2,
        per_device_train_batch_size=2,
        learning_rate=SETTINGS.lr,
        adam_beta1=SETTINGS.betas[0],
        adam_beta2=SETTINGS.betas[1],
        weight_decay=SETTINGS.weight_decay,
        loss_type="grpo",
        beta=0.0,
        report_to=[],
    )
    trainer: Any = GRPOTrainer(
        model=module,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=config,
        train_dataset=Dataset.from_dict({"prompt": ["w1", "w2"]}),
        processing_class=AutoTokenizer.from_pretrained(TINY / "alice"),
    )
    model, optimizer = trainer.model.train(), trainer.create_optimizer()
    trainer.current_gradient_accumulation_steps = 1
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def update(made: list[Trajectory]) -> None:
        longest = max(len(row.tokens) for row in made) - prompt
        ids = torch.zeros(len(made), prompt + longest, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for i, row in enumerate(made):
            ids[i, : len(row.tokens)] = torch.from_numpy(row.tokens)
            mask[i, : len(row.tokens)] = 1
        advantage_B = torch.from_numpy(advantages(len(made))).float().to(device)
        ids, mask = ids.to(device), mask.to(device)
        inputs = {
            "prompt_ids": ids[:, :prompt],
            "prompt_mask": mask[:, :prompt],
            "completion_ids": ids[:, prompt:],
            "completion_mask": mask[:, prompt:],
            "advantages": advantage_B,
            "num_items_in_batch": mask[:, prompt:].sum(),
        }
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            loss = trainer.compute_loss(model, inputs)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), SETTINGS.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad()

    return update
