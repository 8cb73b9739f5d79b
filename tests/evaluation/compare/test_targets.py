"""Every comparison tries where it is to write before it asks or reads anything."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark
from coterie.datatypes import UserError
from coterie.evaluation.compare import output, sample_responses
from coterie.training.run import durable_files

COMMANDS = {
    "suite": "--policies a=tiny:bob --suite core",
    "teams": "--teams a=tiny:bob b=tiny:bob --suite core",
    "cross-play": "--cross-play a=tiny:bob b=tiny:alice --suite core",
    "seeds": "seeds --systems a=nowhere",
    "corea": "corea --base tiny:small",
    "eapo": "eapo --base tiny:policy",
    "distill": "distill",
    "sweep": "sweep core-1",
}


@pytest.fixture(autouse=True)
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("work has begun")

    monkeypatch.setattr(sample_responses, "sample", never)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("target", ["file", "file/deep", "link"])
def test_a_target_that_cannot_be_is_refused_in_one_line(
    command: str, target: str, tmp_path: Path, refused: Any
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    said = refused(benchmark.main, *COMMANDS[command].split(), "--out", tmp_path / target)
    assert "--out" in said
    assert "name another" in said
    assert (tmp_path / "file").read_text() == "mine"


def test_results_that_the_disk_does_not_take_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable_files, "write_whole", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(UserError) as refused:
        output.write_json(tmp_path / "out" / "results.json", {"a": 0.5})
    said, _, kept = str(refused.value).partition("; it is kept as ")
    results = tmp_path / "out" / "results.json"
    assert said == f"--out: {results} cannot be written (No space left on device)"
    assert json.loads(Path(kept).read_text()) == {"a": 0.5}
