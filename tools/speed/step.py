"""Measure a training step, sampling and update, of this project and of TRL's GRPOTrainer.

Both have the same random weights, prompts, rewards, number of tokens, dtype and threads. They take
turns in one process, so that other load of the machine slows both alike.

    python tools/speed/step.py --sizes 127k 10m --threads 1

A row has the median seconds of a step, sampled tokens per second, and TRL's time over ours. The
end of a sequence is outside the vocabulary, so that every completion is full.
"""

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, TrainerCallback

from coterie.agents.models.handle import ModelHandle
from coterie.agents.sampling import Sampler, SamplingRequest
from coterie.algorithms import Learner, LearnerSettings, assign_credit, get
from coterie.datatypes import Sampling, Trajectory, derive_seed

VOCABULARY, GROUP, PROMPT, NEW = 64, 4, 20, 24
KEY = "problem"
SETTINGS = LearnerSettings()


@dataclass(frozen=True)
class Size:
    """A model, and work for about a minute."""

    hidden: int
    layers: int
    feed_forward: int
    heads: int
    completions: int
    steps: int


SIZES = {
    "127k": Size(64, 2, 256, 4, completions=96, steps=12),
    "10m": Size(320, 8, 960, 4, completions=96, steps=3),
    "100m": Size(768, 14, 2304, 12, completions=16, steps=2),
}


def build(size: Size) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=size.hidden,
        intermediate_size=size.feed_forward,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=max(1, size.heads // 2),
        head_dim=size.hidden // size.heads,
        tie_word_embeddings=True,
        initializer_range=0.1,
        eos_token_id=None,
        bos_token_id=None,
        pad_token_id=0,
    )
    return Qwen3ForCausalLM(config).eval()


def prompts(size: Size) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return rng.integers(1, VOCABULARY, (size.completions // GROUP, PROMPT)).tolist()


def reward(tokens: list[int]) -> float:
    """Reward small ids, which a model can learn and costs no time."""
    return -sum(tokens) / len(tokens) / VOCABULARY


def requests(
    prompts: list[np.ndarray], group: int, new: int, seed: int = 0
) -> list[SamplingRequest]:
    """Return ``group`` requests for each prompt, of ``new`` tokens at most."""
    return [
        SamplingRequest(prompt, derive_seed(seed, place, row), Sampling(new))
        for place, prompt in enumerate(prompts)
        for row in range(group)
    ]


class Ours:
    """Sample, assign credit, update."""

    def __init__(
        self,
        handle: ModelHandle,
        sampler: Sampler,
        prompts: list[np.ndarray],
        *,
        group: int,
        new: int,
        settings: LearnerSettings,
    ) -> None:
        self.handle, self.sampler = handle, sampler
        self.learner = Learner(handle, get("grpo"), settings)
        self.prompts, self.group, self.new = prompts, group, new
        self.steps = 0

    def step(self) -> int:
        """Take a training step; return the number of sampled tokens."""
        asked = requests(self.prompts, self.group, self.new, self.steps)
        answers = self.sampler.sample(asked)
        rows = []
        for place, (request, answer) in enumerate(zip(asked, answers, strict=True)):
            prompt = np.zeros(len(request.tokens))
            rows.append(
                Trajectory(
                    agent="alice_0",
                    role="alice",
                    tokens=np.concatenate([request.tokens, answer.tokens]),
                    mask=np.concatenate([prompt, np.ones(len(answer.tokens))]).astype(bool),
                    logprobs=np.concatenate([prompt, answer.logprobs]).astype(np.float32),
                    reward=reward(answer.tokens.tolist()),
                    reward_terms={},
                    groups={KEY: str(place // self.group)},
                    weight_version=answer.weight_version,
                )
            )
        credit = assign_credit(rows, KEY, self.learner.algorithm)
        self.learner.update(rows, credit.advantage_B)
        self.steps += 1
        return sum(len(answer.tokens) for answer in answers)


def our_steps(size: Size) -> Ours:
    handle = ModelHandle(build(size), tokenizer=None, trained=True, context=PROMPT + NEW)
    sampler = Sampler(handle, lambda ids: "", ())
    ids = [np.array(prompt) for prompt in prompts(size)]
    return Ours(handle, sampler, ids, group=GROUP, new=NEW, settings=SETTINGS)


def trl_tokenizer() -> PreTrainedTokenizerFast:
    # The end of a sequence has an id that the model cannot sample.
    words = {"<pad>": 0, **{f"w{i}": i for i in range(1, VOCABULARY)}, "<eos>": VOCABULARY}
    tokenizer = Tokenizer(WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()  # type: ignore[assignment]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<pad>"
    )


def trl_config(
    folder: str, *, steps: int, group: int, new: int, settings: LearnerSettings, **more: Any
) -> Any:
    """The settings of a GRPOTrainer with our optimizer, loss and sampling on a CPU."""
    from trl.trainer.grpo_config import GRPOConfig

    return GRPOConfig(
        output_dir=folder,
        use_cpu=True,
        gradient_checkpointing=False,
        num_generations=group,
        max_completion_length=new,
        max_steps=steps,
        learning_rate=settings.lr,
        lr_scheduler_type="constant",
        adam_beta1=settings.betas[0],
        adam_beta2=settings.betas[1],
        weight_decay=settings.weight_decay,
        loss_type="grpo",
        beta=0.0,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        logging_strategy="no",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        **more,
    )


def rewards(completion_ids: list[list[int]], **_: object) -> list[float | None]:
    """Reward completions as TRL asks for it."""
    return [reward(ids) for ids in completion_ids]


def trl_trainer(size: Size, steps: int, callback: TrainerCallback, folder: str):
    """Build a GRPOTrainer with the same model, prompts, rewards and settings."""
    from datasets import Dataset
    from trl.trainer.grpo_trainer import GRPOTrainer

    text = [" ".join(f"w{i}" for i in ids) for ids in prompts(size)]
    return GRPOTrainer(
        model=build(size),
        reward_funcs=rewards,
        args=trl_config(
            folder,
            steps=steps,
            group=GROUP,
            new=NEW,
            settings=SETTINGS,
            bf16=False,
            per_device_train_batch_size=size.completions,
        ),
        train_dataset=Dataset.from_dict({"prompt": text}),
        processing_class=trl_tokenizer(),
        callbacks=[callback],
    )


class InTurn(TrainerCallback):
    """Time TRL's steps, and take and time one of ours after each."""

    def __init__(self, ours: Ours) -> None:
        self.ours = ours
        self.seconds: dict[str, list[float]] = {"trl": [], "ours": []}
        self.tokens = 0

    def on_step_begin(self, args, state, control, **kwargs):
        self.begun = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        middle = time.perf_counter()
        self.tokens = self.ours.step()
        self.seconds["trl"].append(middle - self.begun)
        self.seconds["ours"].append(time.perf_counter() - middle)
        pair = (f"{who} {taken[-1]:.1f} s" for who, taken in self.seconds.items())
        print(", ".join(pair), file=sys.stderr, flush=True)


def compare(name: str) -> str:
    """Return a row of the table."""
    size = SIZES[name]
    warmup = 2 if size.steps > 3 else 1
    in_turn = InTurn(our_steps(size))
    with tempfile.TemporaryDirectory() as folder:
        trl_trainer(size, size.steps + warmup, in_turn, str(Path(folder))).train()
    trl, ours = (statistics.median(in_turn.seconds[k][warmup:]) for k in ("trl", "ours"))
    parameters = sum(p.numel() for p in in_turn.ours.handle.parameters().values())
    return (
        f"{name:>5} {parameters:>12,} {size.completions:>4} x {NEW}"
        f" {trl:>9.3f} {ours:>9.3f} {in_turn.tokens / trl:>10,.0f}"
        f" {in_turn.tokens / ours:>10,.0f} {trl / ours:>7.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    warnings.simplefilter("ignore")
    print(f"threads {arguments.threads}, torch {torch.__version__}")
    print(" size   parameters  sampled    TRL (s)  ours (s)  TRL tok/s ours tok/s   ratio")
    for name in arguments.sizes:
        print(compare(name), flush=True)


if __name__ == "__main__":
    main()
