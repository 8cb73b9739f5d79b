"""What one update takes beside the weights, and how long: this repository and TRL's GRPOTrainer.

Random weights of Qwen3 shapes, a vocabulary of 152k; rows of one group, which share a prompt and
have answers of lengths evenly spread, all in one micro-batch; GRPO, AdamW, one gradient clipped.
TRL computes its own loss with activation checkpointing on; here ``--recompute`` is as it is for
users.

    python tools/speed/memory.py --sizes 100m --tunings lora full --threads 1

Each measurement is a process of its own. It takes a short update first, after which the moments are
there, gives back what malloc holds, and then one whole update. *Peak* is the largest resident size
of the process while that runs (VmHWM, reset before), less the resident size before it (weights,
moments, libraries) and less the bytes of the gradients. Seconds are wall and processor time of
that update. The two sides take turns; a table has medians, and ratios of ours to TRL's.
"""

import argparse
import ctypes
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from coterie.algorithms import Learner, LearnerSettings, get
from coterie.datatypes import Trajectory
from coterie.models.handle import ModelHandle
from coterie.models.locate import TINY
from coterie.models.lora import add_adapter
from coterie.models.spec import LoraSpec

SETTINGS = LearnerSettings(micro_batch_tokens=1 << 30, importance_correction="none")
MIB = 2**20
Update = Callable[[list[Trajectory]], None]


@dataclass(frozen=True)
class Size:
    """A Qwen3 shape with a head tied to its embedding."""

    hidden: int
    layers: int
    feed_forward: int
    heads: int
    vocabulary: int = 151_936


SIZES = {
    "1m": Size(64, 2, 192, 4, vocabulary=8192),
    "100m": Size(512, 7, 1536, 8),
    "500m": Size(1024, 22, 3072, 16),
}


def build(size: Size, tuning: str, dtype: str) -> Any:
    """The model, with its adapter where it learns by one."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=size.feed_forward,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads // 2,
        head_dim=max(64, size.hidden // size.heads),
        tie_word_embeddings=True,
    )
    module = Qwen3ForCausalLM(config).to(getattr(torch, dtype)).eval()
    return add_adapter(module, "alice", LoraSpec(), 0) if tuning == "lora" else module


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
    """Of rows, none 0."""
    return np.where(np.arange(count) % 2, 1.0, -1.0)


def ours(module: Any, tuning: str, recompute: Any, dtype: torch.dtype | None = None) -> Update:
    """This repository's learner; ``dtype``: what it computes in, where weights are held in more."""
    adapter = "alice" if tuning == "lora" else None
    held = {"adapter": adapter, "recompute": recompute, "dtype": dtype}
    handle = ModelHandle(module, tokenizer=None, trained=True, context=1 << 20, **held)
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


def resident(field: str) -> int:
    """Bytes of this process: now (VmRSS), or at most since the last reset (VmHWM)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def measure(side: str, options: argparse.Namespace) -> dict[str, float]:
    """One update of one side, in this process."""
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    size, tuning = SIZES[options.sizes[0]], options.tunings[0]
    module = build(size, tuning, options.dtype)
    gradients = sum(p.numel() * p.element_size() for p in module.parameters() if p.requires_grad)
    if side == "ours":
        update = ours(module, tuning, options.recompute)
    else:
        update = trl(module, options.prompt)
    spread = np.linspace(options.answers[0], options.answers[1], options.rows)
    lengths = [int(length) for length in spread]
    update(rows(size.vocabulary, options.prompt, [4, 4]))
    made = rows(size.vocabulary, options.prompt, lengths)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    wall, cpu = time.perf_counter(), time.process_time()
    update(made)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = (resident("VmHWM") - before - gradients) / MIB
    return {"peak": peak, "wall": wall, "cpu": cpu}


def compare(arguments: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """Medians of each side, by what was measured."""
    found: dict[str, list[dict[str, float]]] = {"trl": [], "ours": []}
    for _ in range(rounds):
        for side, seen in found.items():
            command = [sys.executable, __file__, "--side", side, *arguments]
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            seen.append(json.loads(told.splitlines()[-1]))
            print(f"# {side} {seen[-1]}", file=sys.stderr, flush=True)
    return {
        side: {name: statistics.median(one[name] for one in seen) for name in seen[0]}
        for side, seen in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["100m"])
    parser.add_argument("--tunings", nargs="+", choices=("lora", "full"), default=["lora", "full"])
    parser.add_argument("--prompt", type=int, default=512, help="tokens that the rows share")
    parser.add_argument("--answers", type=int, nargs=2, default=[256, 1536], help="from and to")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--recompute", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1, help="measurements of each side, in turn")
    parser.add_argument("--side", choices=("ours", "trl"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure(options.side, options)))
        return
    print(f"threads {options.threads}, torch {torch.__version__}, {options.dtype}")
    heads = (f"{what:>14}: TRL  ours ratio" for what in ("peak MiB", "wall s", "CPU s"))
    print("size tuning", *heads)
    same = ["--prompt", options.prompt, "--answers", *options.answers, "--rows", options.rows]
    same += ["--dtype", options.dtype, "--recompute", options.recompute]
    same += ["--threads", options.threads]
    for name in options.sizes:
        for tuning in options.tunings:
            own = ["--sizes", name, "--tunings", tuning, *map(str, same)]
            found = compare(own, options.rounds)
            cells = [
                f"{found['trl'][n]:>14,.{d}f} {found['ours'][n]:>6,.{d}f}"
                f" {found['ours'][n] / found['trl'][n]:>5.2f}"
                for n, d in (("peak", 0), ("wall", 1), ("cpu", 1))
            ]
            print(f"{name:<5}{tuning:<6}", *cells, flush=True)


if __name__ == "__main__":
    main()
