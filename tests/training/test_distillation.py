"""Peer distillation in a run: full weights and adapters, interrupted and resumed."""

import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from coterie.envs import EnvSpec
from coterie.train import main
from coterie.training.config.train_settings import TrainSettings

from .cut_runs import cut_run

FLAGS = (
    *("--rollout.problems-per-step", "4", "--eval.no-enabled", "--env.k-hinted", "0"),
    *("--problems.train", "chains?mix=0.5,0.5,0&min_length=3&max_length=3"),
    *("--env.reread", "wrong", "--env.reread-least", "0"),
)


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_a_run_that_is_resumed_is_the_run_that_was_not(tuning: str, tmp_path: Path) -> None:
    flags = (*FLAGS, "--agents.alice.tuning", tuning, "--agents.bob.tuning", tuning)
    whole = tmp_path / "whole"
    assert main([*flags, "--steps", "3", "--run-dir", str(whole)]) == 0
    # As it stood after two of its three steps, over which beta fades.
    parts = cut_run(whole, tmp_path / "parts", after=2)
    assert main(["--resume", str(parts)]) == 0
    files = sorted(path.relative_to(whole) for path in whole.glob("final/*/*.safetensors"))
    assert len(files) == 2
    for file in files:
        first, second = load_file(whole / file), load_file(parts / file)
        assert first.keys() == second.keys()
        assert all((first[name] == second[name]).all() for name in first)
    steps = [json.loads(line) for line in (parts / "metrics.jsonl").read_text().splitlines()]
    faded = [step["learner/alice/distillation/beta"] for step in steps]
    assert faded == pytest.approx([1, 2 / 3, 1 / 3])
    rows = [
        row
        for line in (whole / "episodes.jsonl").read_text().splitlines()
        for row in json.loads(line)["trajectories"]
    ]
    assert any("reread_after" in row for row in rows)
    assert all(("token_bonus" in row) == ("reread_after" in row) for row in rows)
    assert not any("reread_after" in row for row in rows if row["info"]["correct"])


def test_an_environment_from_elsewhere_refuses_what_cannot_be(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def check(settings: object, run: TrainSettings) -> Iterator[tuple[bool, str]]:
        yield run.run.steps > 2, f"{run.choice.env} is learned in two steps: --steps 2"

    module = types.ModuleType("short_ones")
    spec = EnvSpec("solo", 0, "coterie.envs.solo:SoloEnv", roles=("solver",), check=check)
    monkeypatch.setattr(module, "SPEC", spec, raising=False)
    monkeypatch.setitem(sys.modules, "short_ones", module)
    flags = ["--env", "short_ones:SPEC", "--agents.solver.model", "tiny:alice", "--steps"]
    assert main([*flags, "3"]) == 2
    assert "short_ones:SPEC is learned in two steps: --steps 2" in capfd.readouterr().err
