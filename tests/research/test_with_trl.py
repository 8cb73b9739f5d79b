"""A run again by TRL: train.py evaluates its adapter on the same problems."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from coterie import train
from evidence.studies import ROOT

TINY = (
    *("--env", "solo", "--algo", "gspo", "--agents.solver.model", "tiny:gina"),
    *("--agents.solver.tuning", "lora", "--problems.train", "chains", "--problems.held-out", "8"),
    *("--rollout.problems-per-step", "2", "--steps", "2"),
    *("--algo.overlong-limit", "48", "--algo.overlong-buffer", "40", "--threads", "1"),
)


@pytest.mark.slow
def test_a_run_again_by_trl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = tmp_path / "run", tmp_path / "trl"
    assert train.main([*TINY, "--run-dir", str(run)]) == 0
    program = (sys.executable, str(ROOT / "research/with_trl.py"), str(run), "--out", str(out))
    subprocess.run(program, check=True, capture_output=True)
    steps = [json.loads(line) for line in (out / "steps.jsonl").read_text().splitlines()]
    assert [line["step"] for line in steps] == [1, 2]
    answers = 2 * 8  # of a step
    assert answers < steps[0]["tokens"] < steps[1]["tokens"] <= 2 * answers * 48
    moved = load_file(out / "adapter/adapter_model.safetensors")
    # The second matrix of an adapter is 0 before training.
    assert any(torch.any(weight != 0) for name, weight in moved.items() if "lora_B" in name)
    again = ["--evaluate", str(run), "--agents.solver.model", str(out / "adapter")]
    assert train.main(again) == 0
    assert "held out, cold" in capsys.readouterr().out
