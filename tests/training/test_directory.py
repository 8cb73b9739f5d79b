"""A run's directory: refused where it must be, cut back where it was cut off."""

import json
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.agents.models import checksums
from coterie.datatypes import UserError
from coterie.training.run.directory import RunDirectory, check_new


def test_a_directory_with_something_in_it_is_refused_and_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"is not empty; name another with --run-dir"):
        RunDirectory.create(tmp_path, {})
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    # Only what --resume takes is sent there.
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"is not empty; continue that run with --resume"):
        RunDirectory.create(tmp_path, {})


def test_one_process_at_a_time_writes_a_run(tmp_path: Path, python: Any) -> None:
    """Two would write over each other's logs and checkpoints."""
    run = RunDirectory.create(tmp_path / "run", {"a": 1})
    resume = (
        "import sys; from pathlib import Path\n"
        "from coterie.training.run.directory import RunDirectory\n"
        "try: RunDirectory.reopen(Path(sys.argv[1])).lock(); print('open')\n"
        "except Exception as error: print(error)"
    )

    def another() -> str:
        return python("-c", resume, run.path).stdout

    assert "another process uses the run" in another()
    # Whoever only reads is not kept out.
    assert RunDirectory.reopen(run.path).config() == {"a": 1}
    run.close()
    assert another() == "open\n"
    # The lock of a process that ended is nobody's.
    run.lock()
    run.close()


def test_a_file_and_a_full_disk_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        check_new(tmp_path / "file")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 3 * 2**20))
    with pytest.raises(UserError, match="only 3 MiB of disk are free"):
        check_new(tmp_path / "new" / "deep")


def test_a_log_holds_half_a_surrogate_and_refuses_what_is_no_plain_data(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "x", {})
    run.append("episodes.jsonl", [{"texts": ["\ud800!"], "tokens": np.array([1, 2]), "\udfff": 1}])
    assert run.read_log("episodes.jsonl") == [{"texts": ["?!"], "tokens": [1, 2], "?": 1}]
    for info in ({"visits": {3: 1}}, {"hash": 2**70}, {"object": object()}):
        with pytest.raises(UserError, match=r"episodes.jsonl cannot hold .*`coterie check"):
            run.append("episodes.jsonl", [{"fine": 1}, info])
    assert len(run.read_log("episodes.jsonl")) == 1


def test_logs_are_cut_back_to_what_a_checkpoint_knew(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "x", {"a": 1})
    run.append("metrics.jsonl", [{"step": 1}])
    sizes = run.log_sizes()
    run.append("metrics.jsonl", [{"step": 2}, {"step": 3}])
    run.cut_logs(sizes)
    run.append("metrics.jsonl", [{"step": 2, "again": True}])
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"step": 1}, {"step": 2, "again": True}]
    assert run.log_sizes()["episodes.jsonl"] == 0


def test_a_log_that_lost_lines_is_refused_and_one_that_is_gone_begins_anew(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "x", {"a": 1})
    run.append("metrics.jsonl", [{"step": 1}])
    sizes = run.log_sizes()
    (run.path / "metrics.jsonl").write_text("[]")
    with pytest.raises(UserError, match=r"metrics.jsonl is shorter .* delete it to continue"):
        run.cut_logs(sizes)
    (run.path / "metrics.jsonl").unlink()
    run.cut_logs(sizes)
    assert run.log_sizes()["metrics.jsonl"] == 0


def test_reopening_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run"):
        RunDirectory.reopen(tmp_path / "nothing")
    (tmp_path / "config.json").write_text("{broken")
    with pytest.raises(UserError, match="cannot be read as JSON"):
        RunDirectory.reopen(tmp_path).config()


@pytest.mark.parametrize("left", [[], [".lock"], [".lock", ".config.json.part"]])
def test_a_run_that_was_killed_before_it_had_settings_is_begun_anew(
    tmp_path: Path, left: list[str]
) -> None:
    path = tmp_path / "run"
    path.mkdir()
    for name in left:
        (path / name).write_text("{")
    # Whoever resumes it is told to begin anew, and beginning anew works.
    with pytest.raises(UserError, match="nothing is lost, start it again with --run-dir"):
        RunDirectory.reopen(path)
    run = RunDirectory.create(path, {"a": 1})
    assert run.config() == {"a": 1}
    run.close()


def test_a_run_that_lost_its_settings_alone_is_not_begun_over_its_checkpoints(
    tmp_path: Path,
) -> None:
    (tmp_path / "checkpoints" / "step-000001").mkdir(parents=True)
    with pytest.raises(UserError, match=r"is not empty; name another"):
        RunDirectory.create(tmp_path, {})


@pytest.mark.parametrize("then", ["nothing", "another"])
def test_a_directory_that_moves_or_vanishes_is_told(tmp_path: Path, then: str) -> None:
    run = RunDirectory.create(tmp_path / "run", {"a": 1})
    run.append("metrics.jsonl", [{"step": 1}])
    run.path.rename(tmp_path / "moved")
    if then == "another":
        RunDirectory.create(tmp_path / "run", {"a": 2}).close()
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for work in (
        lambda: run.append("metrics.jsonl", [{"step": 2}]),
        lambda: run.write_json("summary.json", {}),
        lambda: run.write_model("alice", lambda folder: None),
        run.log_sizes,
    ):
        with pytest.raises(
            UserError, match=r"run was moved or deleted during .* --resume continues"
        ):
            work()
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    run.close()
    again = RunDirectory.reopen(tmp_path / "moved")
    again.lock()
    again.append("metrics.jsonl", [{"step": 2}])
    assert len(again.read_log("metrics.jsonl")) == 2
    again.close()


def test_a_trained_model_carries_checksums_of_what_was_written_last(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {"a": 1})
    folder = run.path / "final" / "alice"
    for content in ("one", "two"):
        run.write_model("alice", lambda path, content=content: (path / "x").write_text(content))
        assert checksums.changed_files(folder) == []

    def struck(path: Path) -> None:
        (path / "x").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.write_model("alice", struck)
    # What was not finished claims nothing.
    assert checksums.changed_files(folder) is None
    run.close()
