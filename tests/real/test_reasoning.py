"""A model that reasons, from an evaluation over a step of reward training to an evaluation."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

TOKENS = 96


def test_a_step_and_an_evaluation(weights: Callable[[str], Path], python, tmp_path: Path) -> None:
    problems, run = tmp_path / "sums.jsonl", tmp_path / "run"
    rows = [{"question": f"What is {n} + 2?", "answer": n + 2} for n in range(2, 10)]
    problems.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    command = ["train.py", "--env", "solo", "--algo", "gspo", "--steps", 1, "--run-dir", run]
    command += ["--agents.solver.model", weights("qwen2.5-coder-0.5b")]
    command += ["--problems.train", problems, "--problems.held-out", 2]
    command += ["--env.eval-answers", 2, "--rollout.problems-per-step", 2]
    command += ["--env.max-new-tokens", TOKENS]
    done = python(*command)

    seen = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    # It knows these sums; answers that break off are wrong.
    for moment in ("before", "after"):
        assert 0 < seen[moment]["pass@1"] <= 1
    assert 2 * 8 <= seen["sampled_tokens"] <= 2 * 8 * TOKENS
    assert (run / "final" / "solver" / "adapter_model.safetensors").is_file()
    for title in ("evaluating before training", "evaluating after training"):
        lines = [line for line in done.stdout.splitlines() if line.startswith(title)]
        assert lines[0] == f"{title}: 4 answers"
