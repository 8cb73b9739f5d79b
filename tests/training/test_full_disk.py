"""A disk that is full, and one that cannot be written: one sentence that says how to go on."""

import errno
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console
from safetensors import SafetensorError

from coterie.datatypes import UserError
from coterie.training.run.directory import RunDirectory
from coterie.training.run.log import Logbook

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    run = RunDirectory.create(tmp_path / "run", {"a": 1})
    yield run
    run.close()


def refused(run: RunDirectory, name: str, work: Callable[[], object]) -> None:
    """The kernel's own words, the file, and the way to go on."""
    with pytest.raises(UserError) as caught:
        work()
    assert str(caught.value) == (
        f"{run.path / name} could not be written (No space left on device); free some disk, then "
        f"--resume {run.path}"
    )


@needs_full
def test_logs(run: RunDirectory) -> None:
    (run.path / "metrics.jsonl").symlink_to(FULL)
    refused(run, "metrics.jsonl", lambda: run.append("metrics.jsonl", [{"step": 1}]))


@needs_full
def test_settings_and_results(run: RunDirectory) -> None:
    (run.path / ".summary.json.part").symlink_to(FULL)
    refused(run, "summary.json", lambda: run.write_json("summary.json", {}))


@needs_full
def test_trained_models(run: RunDirectory) -> None:
    def save(folder: Path) -> None:
        (folder / "weights").symlink_to(FULL)
        (folder / "weights").write_text("x")

    refused(run, "final/alice", lambda: run.write_model("alice", save))

    def save_by_rust(folder: Path) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    with pytest.raises(UserError, match=r"alice could not be written \(I/O .* free some disk"):
        run.write_model("alice", save_by_rust)


@needs_full
def test_tensorboard(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.training.run.tensorboard_events._name", lambda folder: "events")
    logbook = Logbook(run, Console(file=io.StringIO()), first=1, last=2, headline=())
    with logbook:
        events = logbook._events
        assert events is not None
        # What is open is turned into a file on a full disk.
        events._file.close()
        events._file = FULL.open("ab")
        events._records._writer = events._file
        refused(run, "tensorboard", lambda: logbook.step(1, {"x": 1.0}))
    # Closing it does not say so once more.


def test_a_disk_that_cannot_be_written(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("coterie.training.run.durable_files._sync_file", closed)
    with pytest.raises(UserError, match=r"\(Read-only file system\); mend that, then --resume"):
        run.write_json("summary.json", {})
