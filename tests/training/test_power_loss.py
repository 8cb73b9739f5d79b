"""The power goes at any moment of a run's writing: what a checkpoint said is there afterwards."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from coterie.agents.models.saving import store
from coterie.datatypes import UserError
from coterie.training.run import checkpoint, checkpoint_paths
from coterie.training.run.checkpoint import Progress
from coterie.training.run.directory import RunDirectory

from .power import ForgetfulDisk

CONFIG = {"seed": 7}
_MOMENTS = "optimizer.safetensors"
CUTS = 4
"""Of each moment, so many of the states that may be found."""


class Role:
    """Its weight, its moment and its counter are the step."""

    def __init__(self, step: int = 0) -> None:
        self.step = step

    def save(self, directory: Path) -> dict[str, Any]:
        (directory / "weight.json").write_text(json.dumps([self.step] * 50))
        store({"moment": torch.full((9,), float(self.step))}, directory / _MOMENTS)
        return {"count": self.step}

    def load(self, directory: Path, plain: dict[str, Any]) -> None:
        (self.step,) = set(json.loads((directory / "weight.json").read_text()))
        assert (load_file(directory / _MOMENTS)["moment"] == self.step).all()
        assert plain["count"] == self.step


class Run:
    """Steps that are logged and saved as a session does it, and cut off at every moment."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs" / "x"
        self.began, self.saved, self.ended = False, 0, False
        self._after = folder / "after"
        self._cuts = 0
        self._random = random.Random(5)
        (folder / "runs").mkdir()
        self.disk = ForgetfulDisk(folder / "runs", self.cut)

    def live(self, *, keep: int, steps: int) -> None:
        run = RunDirectory.create(self.path, CONFIG)
        self.began = True
        run.write_json("evaluation/before.json", {"a": 1})
        for step in range(1, steps + 1):
            run.append("metrics.jsonl", [{"step": step}])
            progress = Progress(step, 2 * step, run.log_sizes(), {"wall_s": 1.0})
            checkpoint.save(run.checkpoints, progress, {"a": Role(step)}, keep=keep)
            self.saved = step
        run.write_model("a", Role(steps).save)
        run.write_json("summary.json", {"steps": steps})
        self.ended = True
        run.close()

    def cut(self) -> None:
        for _ in range(CUTS):
            self._cuts += 1
            self.disk.after_a_cut(self._after / f"{self._cuts}", self._random)
            self.note(self._after / f"{self._cuts}" / "x")

    def note(self, path: Path) -> None:
        """Whoever resumes finds at least what was saved."""
        if not self.began:
            return
        run = RunDirectory.reopen(path)
        assert run.config() == CONFIG
        newest = checkpoint_paths.latest(run.checkpoints)
        if newest is None:
            assert not self.saved
            return
        role = Role()
        progress = checkpoint.load(newest, {"a": role})
        assert progress.step == role.step >= self.saved
        run.cut_logs(progress.logs)
        steps = [line["step"] for line in run.read_log("metrics.jsonl")]
        assert steps == list(range(1, progress.step + 1))
        assert run.read_json("evaluation/before.json") == {"a": 1}
        if self.ended or (path / "summary.json").exists():
            assert run.read_json("summary.json") == {"steps": progress.step}
            Role().load(path / "final" / "a", {"count": progress.step})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "after").mkdir()
    return Run(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("keep", [1, 2, 3])
def test_nothing_that_was_saved_is_lost(
    run: Run, keep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run.disk.watching(monkeypatch):
        run.live(keep=keep, steps=4)
    assert run.ended


@pytest.mark.parametrize(
    "forgotten",
    [
        "checkpoint.sync_tree",
        "checkpoint.sync",
        "directory.sync",
        "durable_files.sync",
        "directory.sync_tree",
    ],
)
def test_no_request_to_the_disk_is_one_too_many(
    run: Run, forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: without any of them something is lost."""
    monkeypatch.setattr(f"coterie.training.run.{forgotten}", lambda *_: None)
    lost = (AssertionError, OSError, UserError, ValueError)
    with pytest.raises(lost), run.disk.watching(monkeypatch):  # noqa: PT012
        run.live(keep=2, steps=4)
        pytest.fail("nothing was lost")
