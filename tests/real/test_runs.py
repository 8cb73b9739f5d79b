"""A whole run on real weights: trained, killed, resumed, evaluated, compared, reported, exported.

All eighteen cases take about an hour and a half, so CI leaves them out.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import AutoPeftModelForCausalLM
from transformers import AutoModelForCausalLM, AutoTokenizer

from coterie.agents.models.gguf import converted

pytestmark = pytest.mark.real
ROOT = Path(__file__).resolve().parents[2]

# Environment -> its roles, and the flags that keep its episodes short.
ENVIRONMENTS = {
    "core-teaching": (("alice", "bob"), "--env.k-cold 2"),
    "corea-deferral": (("small", "large"), "--env.traces 2 --env.eval-traces 1"),
    "eapo-consultation": (
        ("policy", "expert"),
        "--env.experts 1 --env.group-size 2 --env.eval-samples 1 "
        "--env.expert-max-new-tokens 12 --env.reply-tokens 12",
    ),
}
TEAMS = (("smollm2", "smollm2"), ("gemma3", "gemma3"), ("smollm2", "gemma3"))
SHORT = (
    "--algo grpo --steps 2 --rollout.problems-per-step 2 --problems.held-out 2 "
    "--env.max-new-tokens 12 --warmup.steps 1 --warmup.problems-per-step 2 "
    "--checkpoint-every 1 --keep-checkpoints 1 --threads 1"
)


@pytest.mark.parametrize(
    ("env", "team", "tuning"),
    list(product(ENVIRONMENTS, TEAMS, ("lora", "full"))),
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_a_run(
    env: str,
    team: tuple[str, str],
    tuning: str,
    weights: Callable[[str], Path],
    python: Callable[..., Any],
    tmp_path: Path,
) -> None:
    roles, few = ENVIRONMENTS[env]
    names, run, sums = dict(zip(roles, team)), tmp_path / "run", tmp_path / "sums.jsonl"
    flags = ["--env", env, *few.split(), *SHORT.split()]
    flags += ["--problems.train", str(sums), "--run-dir", str(run)]
    for role, name in names.items():
        flags += [f"--agents.{role}.model", str(weights(name)), f"--agents.{role}.tuning", tuning]
    write_sums(sums)

    kill_when_saved(flags, run)
    python("train.py", "--resume", run)
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert steps == [1, 2]
    for moment in ("before", "warmed-up", "after"):
        assert read(run / f"evaluation/{moment}.json")

    # The exported models answer as the trained ones did.
    python("train.py", "--evaluate", run)
    again = read(run / "evaluation/again.json")
    assert again["outcomes"] == [read(run / "evaluation/after.json")]

    suite = ["--suite", env, "--problems", sums, "--questions", 2, "--samples", 1]
    python("benchmark.py", "--teams", f"it={run}", *suite, "--out", tmp_path / "compared")
    assert read(tmp_path / "compared/results.json")

    python("-m", "coterie", "report", run)
    assert (run / "report.html").stat().st_size > 10_000

    exported = sorted((run / "final").iterdir())
    assert exported
    for folder in exported:
        check_export(folder, names[folder.name], weights)


def write_sums(path: Path) -> None:
    rows = [
        {"question": f"What is {n} + 2?", "answer": str(n + 2), "solution": f"{n} + 2 = {n + 2}"}
        for n in range(12)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def kill_when_saved(flags: list[str], run: Path) -> None:
    """Train until the first checkpoint is there."""
    log = run.with_name("training.log")
    with log.open("wb") as output:
        training = subprocess.Popen(
            [sys.executable, "train.py", *flags], cwd=ROOT, stdout=output, stderr=output
        )
        try:
            while not any(run.glob("checkpoints/step-*")):
                assert training.poll() is None, log.read_text(errors="replace")[-4000:]
                time.sleep(0.02)
        finally:
            training.kill()
    assert training.wait() < 0, "it ended before it was killed"


def check_export(folder: Path, name: str, weights: Callable[[str], Path]) -> None:
    """Load an export with transformers and peft alone; it differs from the base model."""
    base = converted(weights(name))
    adapter = (folder / "adapter_config.json").is_file()
    tokenizer = AutoTokenizer.from_pretrained(base if adapter else folder)
    assert bool(tokenizer.chat_template) is (name == "smollm2")  # Gemma 3 is a base model
    if not adapter:
        assert "quantization_config" not in (folder / "config.json").read_text()
    ids = tokenizer("7 + 8 =", return_tensors="pt").input_ids
    kind = AutoPeftModelForCausalLM if adapter else AutoModelForCausalLM
    with torch.no_grad():
        trained = kind.from_pretrained(folder, dtype=torch.float32)(input_ids=ids).logits
        first = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        untrained = first(input_ids=ids).logits
    assert trained.isfinite().all()
    assert not torch.equal(trained, untrained)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
