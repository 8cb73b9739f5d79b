"""Whole runs on real weights: trained, killed, resumed, reported, compared, exported.

CI runs one; COTERIE_REAL_MATRIX=1 every environment with each model alone, with both as one team,
with adapters and with full weights.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from peft import AutoPeftModelForCausalLM
from transformers import AutoModelForCausalLM, AutoTokenizer

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 1500
STEPS = 2
ROLES = {
    "core-teaching": ("alice", "bob"),
    "corea-deferral": ("small", "large"),
    "eapo-consultation": ("policy", "expert"),
}
TEAMS = {
    "smollm2": ("smollm2", "smollm2"),
    "gemma3": ("gemma3", "gemma3"),
    "both": ("smollm2", "gemma3"),
}
IN_CI = ("core-teaching", "smollm2", "lora")


def command(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *argv],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def done(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, out[-3000:]
    return out


def steps_of(run: Path) -> list[dict[str, float]]:
    log = run / "metrics.jsonl"
    # A line that is being written has no end yet.
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in lines]


def kill_after_a_checkpoint(process: subprocess.Popen[str], run: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not list(run.glob("checkpoints/step-*")):
        assert process.poll() is None, process.communicate()[0][-3000:]
        assert time.monotonic() < until
        time.sleep(0.02)
    process.kill()
    process.communicate()


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    path = tmp_path / "problems.jsonl"
    sums = [{"question": f"What is {n} + 2?", "answer": str(n + 2)} for n in range(12)]
    path.write_text("".join(json.dumps(one) + "\n" for one in sums))
    return path


@pytest.mark.parametrize("tuning", ["lora", "full"])
@pytest.mark.parametrize("team", TEAMS)
@pytest.mark.parametrize("env", ROLES)
def test_a_run(
    weights: Callable[[str], Path], problems: Path, tmp_path: Path, env: str, team: str, tuning: str
) -> None:
    if (env, team, tuning) != IN_CI and not os.environ.get("COTERIE_REAL_MATRIX"):
        pytest.skip("COTERIE_REAL_MATRIX=1 runs the whole matrix")
    run, flags = tmp_path / "run", ["--env", env, "--algo", "grpo", "--steps", str(STEPS)]
    for role, name in zip(ROLES[env], TEAMS[team]):
        flags += [f"--agents.{role}.model", str(weights(name)), f"--agents.{role}.dtype", "float32"]
        flags += [f"--agents.{role}.tuning", tuning]
    flags += ["--rollout.problems-per-step", "2", "--problems.train", str(problems)]
    flags += ["--problems.held-out", "2", "--env.max-new-tokens", "12", "--checkpoint-every", "1"]
    flags += ["--threads", "1", "--run-dir", str(run)]
    kill_after_a_checkpoint(command("train.py", *flags), run)
    done(command("train.py", "--resume", str(run)))

    assert [line["step"] for line in steps_of(run)] == list(range(1, STEPS + 1))
    for when in ("before", "after"):
        assert json.loads((run / f"evaluation/{when}.json").read_text())
    done(command("-m", "coterie", "report", str(run)))
    trained = sorted(path.name for path in run.glob("final/*"))
    assert trained
    for role in trained:
        final = run / "final" / role
        if (final / "adapter_config.json").is_file():
            model = AutoPeftModelForCausalLM.from_pretrained(final)
        else:
            model = AutoModelForCausalLM.from_pretrained(final)
            assert "quantization_config" not in (final / "config.json").read_text()
            tokenizer = AutoTokenizer.from_pretrained(final)
            ids = tokenizer("7 + 8 =", return_tensors="pt")
            assert bool(tokenizer.chat_template) is (tokenizer.bos_token != "<bos>")
            assert model(**ids).logits.isfinite().all()
        del model
    asked = ["--policies", f"it={run / 'final' / trained[0]}", "--suite", "core", "--samples", "1"]
    asked += ["--problems", str(problems), "--questions", "2", "--max-new-tokens", "12"]
    done(command("benchmark.py", *asked, "--out", str(tmp_path / "compared")))
    assert (tmp_path / "compared/results.json").is_file()
