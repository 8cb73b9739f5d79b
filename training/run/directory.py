"""A run's directory: its files, and how the run is opened again.

::

    runs/x/
        config.json          every setting, resolved
        environment.json     command, commit, packages; checksums of problems, models, plug-ins
        episodes.jsonl       every training episode
        metrics.jsonl        every scalar of every step
        evaluations.jsonl    what was measured between steps (--eval.every)
        warmup.jsonl         every scalar of every step of the warm-up (--warmup.steps)
        not-finite.jsonl     the row whose loss or gradient was not finite, which ended the run
        evaluation/          before.json, warmed-up.json, after.json: outcomes problem by problem
        trackers.json        the run's name in other trackers (--track); wandb/ has its files
        tensorboard/         scalars and sample transcripts
        checkpoints/         step-000150/ ...
        final/alice/ ...     the trained models, in the format of the models they began as
        summary.json         the result
        report.html          what `coterie report` writes
        hub/                 what `coterie push` sends
        .lock                locked by the process that writes here
"""

import json
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout
from safetensors import SafetensorError

from coterie.agents.models import checksums
from coterie.cli.output_paths import check_folder
from coterie.datatypes import UserError, user_path
from coterie.envs.contract import as_unicode
from coterie.training.run.durable_files import (
    make_folder,
    not_written,
    sync,
    sync_tree,
    write_whole,
)

METRICS, EVALUATIONS, WARMUP = "metrics.jsonl", "evaluations.jsonl", "warmup.jsonl"
LOGS = ("episodes.jsonl", METRICS, EVALUATIONS, WARMUP)
_SPARE_BYTES = 64 * 2**20
# Files that a run leaves if it is killed before it has written its settings.
_BEFORE_CONFIG = (".lock", ".config.json.part")
_WORK = (*LOGS, "evaluation/*", "checkpoints/*")


class RunDirectory:
    """The paths of a run, and its append-only logs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # The system releases the lock when this process ends, even if it is killed.
        self._lock = FileLock(path / ".lock", timeout=0)
        self._is_new = False
        self._locked_folder: tuple[int, int] | None = None
        """Device and inode of the folder that :meth:`lock` found at ``path``."""

    @classmethod
    def create(cls, path: Path, config: Mapping[str, Any]) -> "RunDirectory":
        """Start a new run.

        Raises:
            UserError: the directory holds something, cannot be written, or has no room left.
        """
        check_new(path)
        run = cls(path)
        try:
            make_folder(path)
            run.lock()
            run._is_new = True
            write_whole(path / "config.json", _json(config))
        except OSError as error:
            raise UserError(f"cannot write to the run directory {path}: {error.strerror}") from None
        return run

    @classmethod
    def reopen(cls, path: Path) -> "RunDirectory":
        """Open an existing run for reading; call :meth:`lock` to continue it.

        Raises:
            UserError: there is no run at ``path``.
        """
        run = cls(user_path(path))
        if not (run.path / "config.json").is_file():
            if run.path.is_dir() and not _content(run.path):
                raise UserError(
                    f"the run {path} has not written its settings yet: nothing is lost, start it "
                    f"again with --run-dir {path} and its flags"
                )
            raise UserError(
                f"{path} is not a run (it has no config.json); give the directory of --run-dir"
            )
        return run

    def lock(self) -> None:
        """Lock the directory for this process, until it ends or calls :meth:`close`.

        Raises:
            UserError: another process has the lock.
        """
        try:
            self._lock.acquire()
            self._locked_folder = _identity(self.path)
        except Timeout:
            raise UserError(
                f"another process uses the run {self.path}; wait for it, or stop it first"
            ) from None

    def discard(self) -> None:
        """Delete the run, so that its name is free again."""
        self.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def discard_unbegun(self) -> None:
        """:meth:`discard` a new run that has not done any work yet."""
        if self._is_new and not any(any(self.path.glob(name)) for name in _WORK):
            self.discard()

    def close(self) -> None:
        """Release the directory for other processes."""
        self._lock.release()

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    def config(self) -> dict[str, Any]:
        """The settings that the run was started with."""
        try:
            return json.loads((self.path / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise UserError(f"{self.path / 'config.json'} cannot be read as JSON") from None

    def append(self, log: str, records: list[Any]) -> None:
        """Append each record as a JSON line.

        Raises:
            UserError: a record is not plain data (then nothing is written), or writing fails.
        """
        lines = b"".join(_line(record, log) for record in records)
        with self.writing(log), (self.path / log).open("ab") as file:
            file.write(lines)

    def read_log(self, log: str) -> list[Any]:
        """The records of a log; empty if nothing was logged."""
        path = self.path / log
        return (
            [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        )

    def goes_on(self) -> bool:
        """Whether a run that had ended was resumed with more steps, so that its results are old."""
        steps, summary = self.read_log(METRICS), self.read_json("summary.json") or {}
        return bool(steps) and summary.get("steps", math.inf) < steps[-1]["step"]

    def log_sizes(self) -> dict[str, int]:
        """Bytes of each log, for a checkpoint; the logs are synced to the disk first.

        Raises:
            UserError: the directory is gone, or syncing fails.
        """
        with self.writing("metrics.jsonl"):
            if logs := [path for log in LOGS if (path := self.path / log).exists()]:
                sync(*logs, self.path)
            return {log: _size(self.path / log) for log in LOGS}

    def cut_logs(self, sizes: Mapping[str, int]) -> None:
        """Cut every log back to its size at a checkpoint; a missing log begins anew.

        Raises:
            UserError: a log is shorter than it was.
        """
        for log in (log for log in LOGS if log in sizes):
            path, size = self.path / log, sizes[log]
            if path.exists() and _size(path) < size:
                raise UserError(
                    f"{path} is shorter than it was at the last checkpoint; restore it, or delete "
                    "it to continue without its contents"
                )
            if _size(path) > size:
                os.truncate(path, size)

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file atomically.

        Raises:
            UserError: the directory is gone, or writing fails.
        """
        with self.writing(name):
            make_folder((self.path / name).parent)
            write_whole(self.path / name, _json(value))

    def write_model(self, role: str, save: Callable[[Path], None]) -> None:
        """Let ``save`` fill ``final/ROLE``, then write its checksums.

        Raises:
            UserError: the directory is gone, or writing fails.
        """
        with self.writing(f"final/{role}"):
            folder = self.path / "final" / role
            make_folder(folder)
            (folder / checksums.NAME).unlink(missing_ok=True)
            save(folder)
            checksums.write_checksums(folder)
            sync_tree(folder)

    @contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Check the directory, and turn errors of writing ``name`` into a sentence.

        Raises:
            UserError: the directory was moved or deleted, or writing fails.
        """
        self._check_place()
        try:
            yield
        except (OSError, SafetensorError) as error:
            self._check_place()
            raise not_written(f"{self.path / name}", error, self.path) from None

    def read_json(self, name: str) -> Any | None:
        """The content that :meth:`write_json` wrote; None without the file."""
        path = self.path / name
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def _check_place(self) -> None:
        """Refuse to write after the directory was moved; a reader's run has no lock to check."""
        if self._locked_folder is not None and _identity(self.path) != self._locked_folder:
            raise UserError(
                f"the run directory {self.path} was moved or deleted during the run; --resume "
                "continues from its last checkpoint, wherever it is now"
            )


def check_new(path: Path, *, may_hold_runs: bool = False, flag: str = "--run-dir") -> None:
    """Refuse a directory in which a new run cannot start.

    Args:
        path: the directory of the run, or the folder in which that will be made.
        may_hold_runs: whether it is the latter, so that other runs may be in it.
        flag: names it in messages.

    Raises:
        UserError: it is a file, is not empty, cannot be made, or its disk is full.
    """
    if user_path(path).is_file():
        raise UserError(f"the run directory {path} is a file; name another with {flag}")
    if path.is_dir() and not may_hold_runs and (content := _content(path)):
        resumable = "config.json" in content and flag == "--run-dir"
        way_out = f"continue that run with --resume {path} or " if resumable else ""
        raise UserError(f"the run directory {path} is not empty; {way_out}name another with {flag}")
    check_folder(path, flag)
    parent = next(ancestor for ancestor in (path, *path.absolute().parents) if ancestor.exists())
    free = shutil.disk_usage(parent).free
    if free < _SPARE_BYTES:
        raise UserError(
            f"only {free // 2**20} MiB of disk are free under {parent}; a run needs at least "
            f"{_SPARE_BYTES // 2**20} MiB: free some or name another disk with {flag}"
        )


def default_path(env: str, algo: str) -> Path:
    """The path of a new directory under ``runs/``."""
    plain = re.sub(r"[^A-Za-z0-9+]+", "-", f"{env}-{algo}").strip("-")
    name = f"{plain}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, count = Path("runs") / name, 1
    while path.exists():
        count += 1
        path = Path("runs") / f"{name}-{count}"
    return path


def _content(path: Path) -> set[str]:
    """The names in a directory, except files of a run that never began."""
    return {entry.name for entry in path.iterdir()} - set(_BEFORE_CONFIG)


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a folder, which identify it; None if it is missing."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _line(record: Any, log: str) -> bytes:
    def dumped(value: Any) -> bytes:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)

    try:
        return dumped(record)
    except TypeError:
        pass  # A lone surrogate in a model's text fails here, and is replaced below.
    try:
        return dumped(as_unicode(record))
    except TypeError as error:
        raise UserError(
            f"{log} cannot hold what the environment says of an episode ({error}); infos are str, "
            "int of at most 64 bits, float, bool, None, lists, and dictionaries whose keys are "
            "strings: `coterie check` tells which one is not"
        ) from None
