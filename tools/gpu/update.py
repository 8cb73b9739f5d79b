"""One update of the same rows by this project's learner and by TRL's GRPOTrainer.

Rows of one group share a prompt and fill one micro-batch; GRPO, AdamW, a clipped gradient. Both
sides compute in bfloat16 from the same random weights: full weights are held in float32 (TRL's
within ``torch.autocast``), an adapter in float32 on a base in bfloat16. TRL computes activations
twice, here ``auto`` decides.
"""

import gc
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer

from coterie.agents.models.blocks import compute_in
from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.locate import TINY
from coterie.agents.models.lora import add_adapter
from coterie.agents.models.spec import LoraSpec
from coterie.algorithms import Learner, LearnerSettings, get
from coterie.datatypes import Trajectory
from gpu.peak import most_taken
from gpu.shapes import ceiling, device, make, settle

SETTINGS = LearnerSettings(micro_batch_tokens=1 << 30, importance_correction="none")
Update = Callable[[list[Trajectory]], None]
_ROWS = {"small": (8, 16, 8), "0.5b": (32, 256, 512), "3b": (16, 256, 512)}
"""Shape -> rows of one group, tokens of their prompt, and of the longest answer."""


def measure(shape: str, tuning: str) -> dict[str, Any]:
    """Measure the faster of two updates of each side, in seconds and in GiB.

    Memory is what an update adds to weights and moments.
    """
    warnings.simplefilter("ignore")
    count, prompt, longest = _ROWS[shape]
    answers = [int(length) for length in np.linspace(longest / 4, longest, count)]
    figures: dict[str, Any] = {"rows": count, "ceiling_tflops": ceiling() / 1e12}
    for side in ("ours", "trl"):
        module: Any = make(shape, torch.float32 if tuning == "full" else torch.bfloat16)
        vocabulary = module.config.vocab_size
        made = rows(vocabulary, prompt, answers)
        figures["tokens"] = sum(len(row.tokens) for row in made)
        if tuning == "lora":
            module = add_adapter(module, "alice", LoraSpec(), 0)
        if side == "ours":
            if tuning == "full":
                compute_in(module, torch.bfloat16)
            update = ours(module, tuning, "auto", torch.bfloat16)
        else:
            update = trl(module, prompt, torch.bfloat16)
        # The first update allocates the moments.
        update(rows(vocabulary, prompt, [4, 4]))
        seconds = []
        with most_taken(device()) as taken:
            for _ in range(2):
                settle()
                start = time.perf_counter()
                update(made)
                settle()
                seconds.append(time.perf_counter() - start)
        figures[f"{side}_s"] = min(seconds)
        figures[f"{side}_gib"] = sum(taken) / 2**30
        del module, update
        gc.collect()
        torch.cuda.empty_cache()
    figures["times_as_fast"] = figures["trl_s"] / figures["ours_s"]
    return figures


def rows(vocabulary: int, prompt: int, answers: list[int]) -> list[Trajectory]:
    """Make rows of one prompt with ``prompt`` tokens, and an answer of each length."""
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


def _advantages(count: int) -> np.ndarray:
    return np.where(np.arange(count) % 2, 1.0, -1.0)


def ours(module: Any, tuning: str, recompute: Any, dtype: torch.dtype | None = None) -> Update:
    """Return an update by this project's learner.

    Args:
        module: the model, with its adapter.
        tuning: ``lora`` or ``full``.
        recompute: whether activations are computed twice, or ``auto``.
        dtype: what products are computed in; None for the weights' own.
    """
    adapter = "alice" if tuning == "lora" else None
    options = {"adapter": adapter, "recompute": recompute, "dtype": dtype}
    handle = ModelHandle(module, tokenizer=None, trained=True, context=1 << 20, **options)
    learner = Learner(handle, get("grpo"), SETTINGS)

    def update(made: list[Trajectory]) -> None:
        learner.update(made, _advantages(len(made)))

    return update


def trl(module: Any, prompt: int, dtype: torch.dtype | None = None) -> Update:
    """Return an update by TRL's loss and AdamW; ``dtype`` is that of :func:`ours`."""
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
        advantage_B = torch.from_numpy(_advantages(len(made))).float().to(device)
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
