"""The runs behind docs/first-real-model.md: its command, and the figures that are stored."""

import json
import re
import shlex
from pathlib import Path

import pytest

import first_model
from coterie import train
from coterie.cli.arguments import overlay
from coterie.cli.command_line import parse

PAGE = first_model.ROOT / "docs/first-real-model.md"
TINY = (
    *("--agents.solver.model", "tiny:alice", "--env.max-new-tokens", "16", "--steps", "2"),
    *("--problems.held-out", "8", "--warmup.steps", "2", "--rollout.problems-per-step", "4"),
    *("--problems.train", "chains", "--seed", "5", "--threads", "1"),
)


def test_the_page_has_the_command_that_was_run() -> None:
    text = PAGE.read_text("utf-8")
    command, *_ = re.findall(r"```console\n(python train\.py --env solo.*?)```", text, re.DOTALL)
    words = shlex.split(command.replace("\\\n", " "))
    model = words.index("--agents.solver.model")
    assert words[:2] == ["python", "train.py"]
    shown = parse([*words[2:model], "--agents.solver.model", "tiny:alice", *words[model + 2 :]])
    source = ["--problems.train", shown.problems.train, "--agents.solver.model", "tiny:alice"]
    assert shown == parse([*first_model.FLAGS, *source])


def test_the_figures_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "seed5"
    assert train.main(overlay([*first_model.FLAGS, *TINY, "--run-dir", str(run)])) == 0
    monkeypatch.setattr(first_model, "RESULTS", tmp_path / "results.json")
    flags = ["tiny:alice", "chains", "--seeds", "5", "--out", str(tmp_path)]
    assert first_model.main(flags) == 0  # the run is there already
    [row] = json.loads((tmp_path / "results.json").read_text())
    summary = json.loads((run / "summary.json").read_text())
    for name, key in (("before", "before"), ("warmed-up", "warmed_up"), ("after", "after")):
        assert row[name][0] == pytest.approx(summary[key]["pass@1"], abs=1e-4)
        assert row[name][1:] == pytest.approx(summary["intervals"][key]["pass@1"], abs=1e-4)
    assert row["change"][0] == pytest.approx(row["after"][0] - row["warmed-up"][0], abs=2e-4)
    assert len(row["losses"]) == 2
    assert len(row["right"]) == 2
    assert row["seed"] == 5
