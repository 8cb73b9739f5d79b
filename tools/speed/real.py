"""A real checkpoint on this processor, beside what others do with it and what its matrices allow.

    python tools/speed/real.py --model FOLDER --threads 2 --vllm-python VENV/bin/python

Sampling: 12 prompts of about 70 tokens, eight rows each, 64 tokens a row, no end of sequence; this
project's sampler in float32 and bfloat16, vLLM's CPU build (a process of its own, where a Python
that has it is named), transformers' ``generate`` (fewer tokens a row). ``products`` is the
processor's rate of matrix products in the shapes of one decoding step, as tokens a second: what a
sampler without any other work would reach. Then a whole GRPO step with LoRA beside TRL's, and
sampling beside 0, 1 and 3 busy processes. One table; ``--json FILE`` keeps the numbers.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# As train.py has it; before torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "4000")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import torch

from coterie.algorithms import Learner, LearnerSettings, assign_credit, get
from coterie.datatypes import Sampling, Trajectory, derive_seed
from coterie.models.loading import LoadedRole, load_team
from coterie.models.sampler import Request, Sampler
from coterie.models.spec import LoraSpec, ModelSpec
from coterie.models.threads import fix_threads

_OURS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "PYTHONPATH")
PROMPTS, GROUP, NEW, FEW, STEP_NEW = 12, 8, 64, 16, 32
PARTS = ("products", "sampler", "vllm", "generate", "step", "busy")
_WORDS = "a farmer sells eggs and buys red apples for his seven friends on market day".split()  # noqa: SIM905
_VLLM = """
import json, sys, time
from vllm import LLM, SamplingParams
given = json.load(open(sys.argv[1]))
llm = LLM(given["model"], dtype="bfloat16", max_model_len=512, enable_prefix_caching=True)
def run(new):
    how = SamplingParams(n=given["group"], temperature=1.0, max_tokens=new, ignore_eos=True)
    start = time.perf_counter()
    out = llm.generate([{"prompt_token_ids": p} for p in given["prompts"]], how, use_tqdm=False)
    return sum(len(o.token_ids) for r in out for o in r.outputs) / (time.perf_counter() - start)
run(2)
llm.reset_prefix_cache()
print("RATE", run(given["new"]), flush=True)
"""


def texts() -> list[str]:
    """Return prompts of 60 to 80 words."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(_WORDS, int(rng.integers(58, 78)))) for _ in range(PROMPTS)]


def load(model: str, dtype: str, *, lora: bool = False) -> LoadedRole:
    spec = ModelSpec(model, device="cpu", dtype=dtype, lora=LoraSpec() if lora else None)  # type: ignore[arg-type]
    return load_team({"a": spec}, {"a"} if lora else set())["a"]


def prompts_of(role: LoadedRole) -> list[np.ndarray]:
    return [np.array(role.tokenizer(text)["input_ids"], np.int64) for text in texts()]


def timed(work: Callable[[], int]) -> float:
    """Return the count of ``work`` per second."""
    start = time.perf_counter()
    return work() / (time.perf_counter() - start)


def requests(prompts: list[np.ndarray], new: int, seed: int = 0) -> list[Request]:
    return [
        Request(prompt, derive_seed(seed, i, j), Sampling(new))
        for i, prompt in enumerate(prompts)
        for j in range(GROUP)
    ]


def sampling(role: LoadedRole, new: int) -> float:
    """Measure the sampler in tokens per second."""
    sampler, prompts = Sampler(role.handle, role.codec.decode, ()), prompts_of(role)
    sampler.sample(requests(prompts, 2))
    return timed(lambda: sum(len(c.tokens) for c in sampler.sample(requests(prompts, new))))


@torch.inference_mode()
def products(role: LoadedRole) -> float:
    """Return the tokens per second that the matrix products of decoding alone would allow."""
    rows, model = PROMPTS * GROUP, role.handle.causal_lm
    block = model.model.layers[0]
    linears = [m for m in block.modules() if isinstance(m, torch.nn.Linear)]
    x = {m: torch.randn(rows, m.in_features).to(m.weight.dtype) for m in [*linears, model.lm_head]}

    def once(parts: list[Any], repeat: int) -> float:
        torch.nn.functional.linear(x[parts[0]], parts[0].weight)
        start = time.perf_counter()
        for _ in range(repeat):
            for part in parts:
                torch.nn.functional.linear(x[part], part.weight)
        return (time.perf_counter() - start) / repeat

    seconds = len(model.model.layers) * once(linears, 40) + once([model.lm_head], 10)
    return rows / seconds


@torch.inference_mode()
def generate(role: LoadedRole, new: int) -> float:
    prompts = [p.tolist() for p in prompts_of(role) for _ in range(GROUP)]
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    options = {"do_sample": True, "max_new_tokens": new, "min_new_tokens": new, "pad_token_id": 0}

    def work() -> int:
        out = role.handle.causal_lm.generate(input_ids=ids, attention_mask=mask, top_k=0, **options)
        return out[:, width:].numel()

    return timed(work)


def vllm(python: str, model: str, prompts: list[np.ndarray], threads: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        given, script = Path(folder) / "given.json", Path(folder) / "run.py"
        said = {
            "model": model,
            "group": GROUP,
            "new": NEW,
            "prompts": [p.tolist() for p in prompts],
        }
        given.write_text(json.dumps(said))
        script.write_text(_VLLM)
        env = {k: v for k, v in os.environ.items() if k not in _OURS}
        env |= {
            "VLLM_CPU_KVCACHE_SPACE": "2",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(threads),
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        }
        done = subprocess.run(
            [python, str(script), str(given)], env=env, capture_output=True, text=True
        )
    for line in done.stdout.splitlines():
        if line.startswith("RATE "):
            return float(line.split()[1])
    raise SystemExit(f"vLLM gave no rate:\n{done.stderr[-2000:]}")


def reward(tokens: list[int]) -> float:
    """A learnable reward that costs nothing to compute: small ids."""
    return -sum(tokens) / len(tokens) / 50_000


def our_step(model: str) -> float:
    """Seconds of a step: sample, assign credit, update."""
    role = load(model, "auto", lora=True)
    sampler = Sampler(role.handle, role.codec.decode, ())
    learner, prompts = Learner(role.handle, get("grpo"), LearnerSettings(lr=1e-5)), prompts_of(role)

    def step(new: int, seed: int) -> int:
        rows = []
        asked = requests(prompts, new, seed)
        for place, (row, answer) in enumerate(zip(asked, sampler.sample(asked), strict=True)):
            empty = np.zeros(len(row.tokens))
            rows.append(
                Trajectory(
                    agent="a_0",
                    role="a",
                    tokens=np.concatenate([row.tokens, answer.tokens]),
                    mask=np.concatenate([empty, np.ones(len(answer.tokens))]).astype(bool),
                    logprobs=np.concatenate([empty, answer.logprobs]).astype(np.float32),
                    reward=reward(answer.tokens.tolist()),
                    reward_terms={},
                    groups={"problem": str(place // GROUP)},
                    weight_version=answer.weight_version,
                )
            )
        learner.update(rows, assign_credit(rows, "problem", learner.algorithm).advantage_B)
        return 1

    step(2, 0)
    return 1 / timed(lambda: step(STEP_NEW, 1))


def trl_step(model: str) -> float:
    """Seconds of a step of TRL's GRPOTrainer: the same checkpoint in bfloat16, LoRA and lengths."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    seconds: list[float] = []

    class Clock(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.begun = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            seconds.append(time.perf_counter() - self.begun)

    def rewards(completion_ids: list[list[int]], **_: object) -> list[float | None]:
        return [reward(ids) for ids in completion_ids]

    spec = LoraSpec()
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=True,
            gradient_checkpointing=False,
            per_device_train_batch_size=PROMPTS * GROUP,
            num_generations=GROUP,
            max_completion_length=STEP_NEW,
            generation_kwargs={"min_new_tokens": STEP_NEW},
            max_steps=2,
            learning_rate=1e-5,
            loss_type="grpo",
            beta=0.0,
            temperature=1.0,
            top_p=1.0,
            top_k=0,
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16),
            reward_funcs=rewards,
            args=config,
            train_dataset=Dataset.from_dict({"prompt": texts()}),
            processing_class=AutoTokenizer.from_pretrained(model),
            peft_config=LoraConfig(r=spec.rank, lora_alpha=int(spec.alpha), target_modules=targets),
            callbacks=[Clock()],
        ).train()
    return seconds[-1]


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run this many busy processes, as a load by other programs."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in others:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, help="folder of a checkpoint")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vllm-python", help="a Python whose environment has vLLM's CPU build")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    fix_threads(options.threads)
    figures: dict[str, float] = {}

    def note(name: str, value: float, unit: str) -> None:
        figures[name] = value
        print(f"{name:<44} {value:>8.1f} {unit}", flush=True)

    print(f"threads {options.threads}, torch {torch.__version__}")
    narrow = load(options.model, "bfloat16")
    if "products" in options.parts:
        note("products, bfloat16", products(narrow), "tokens/s")
    if "sampler" in options.parts:
        note("sampler, bfloat16", sampling(narrow, NEW), "tokens/s")
    if "vllm" in options.parts and options.vllm_python:
        rate = vllm(options.vllm_python, options.model, prompts_of(narrow), options.threads)
        note("vLLM's CPU build, bfloat16", rate, "tokens/s")
    if "generate" in options.parts:
        note(f"generate, bfloat16, {FEW} tokens a row", generate(narrow, FEW), "tokens/s")
    if "busy" in options.parts:
        for count in (0, 1, 3):
            with busy(count):
                seconds = PROMPTS * GROUP * FEW / sampling(narrow, FEW)
            note(f"sampling {FEW} tokens a row beside {count} busy", seconds, "s")
    if "sampler" in options.parts:
        note("sampler, float32", sampling(load(options.model, "float32"), NEW), "tokens/s")
    if "step" in options.parts:
        note(f"a whole step, {STEP_NEW} tokens a row: ours", our_step(options.model), "s")
        note(f"a whole step, {STEP_NEW} tokens a row: TRL", trl_step(options.model), "s")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
