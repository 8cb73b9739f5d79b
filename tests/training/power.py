"""A disk that forgets: what may be found on it after the power went, by what it was asked to keep.

The model is the weakest that file systems keep to. A file's content is what it was at the last
fsync of the file, or any later state, or half of one. A folder's entries are those of its last
fsync, changed by the first few of the makings, renamings and deletions since: a rename within a
folder happens whole. Nothing else is promised: not that a file that was renamed has its content.
"""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

Change = Callable[[dict[str, int]], None]


@dataclass
class Folder:
    """Entries by name, each the number of a file or folder."""

    now: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    since: list[Change] = field(default_factory=list)
    """What was done to ``kept`` since, in order."""

    def do(self, change: Change) -> None:
        change(self.now)
        self.since.append(change)


@dataclass
class File:
    now: bytes = b""
    kept: bytes = b""
    since: list[bytes] = field(default_factory=list)


class ForgetfulDisk:
    """Watches everything under ``root`` while :meth:`watching`, and calls ``moment`` around each
    thing that is done to it: the power may go then."""

    def __init__(self, root: Path, moment: Callable[[], None]) -> None:
        self.root = root
        self._moment = moment
        self._folders: dict[int, Folder] = {}
        self._files: dict[int, File] = {}
        self._open: dict[int, int] = {}
        """Held open, so that no number is given to another file."""

    @contextmanager
    def watching(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Everything between that is done by :mod:`os` and :func:`open` is seen."""
        self._look()
        with monkeypatch.context() as patch:
            for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "truncate"):
                patch.setattr(os, name, self._seen(getattr(os, name), name))
            patch.setattr(os, "remove", os.unlink)
            patch.setattr(shutil, "rmtree", _rmtree)
            patch.setattr(os, "fsync", self._fsync)
            patch.setattr("coterie.training.run.durable_files._sync_file", self._fsync)
            yield
            self._look()
        for descriptor in self._open.values():
            os.close(descriptor)

    def after_a_cut(self, target: Path, random: random.Random) -> None:
        """Write to ``target`` one of the states that the disk may be found in."""
        self._write(self._number(self.root), target, random)

    def _write(self, number: int, target: Path, random: random.Random) -> None:
        target.mkdir()
        folder = self._folders[number]
        entries = dict(folder.kept)
        for change in folder.since[: random.randint(0, len(folder.since))]:
            change(entries)
        for name, inner in entries.items():
            if inner in self._folders:
                self._write(inner, target / name, random)
                continue
            kept, since = self._files[inner].kept, self._files[inner].since
            content = random.choice([kept, *since])
            if random.random() < 0.3:
                # Half of what was written came; what stood before it is as it was.
                same = sum(
                    1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(kept, content))
                )
                half = (same + len(content)) // 2
                content = content[:half] + bytes(len(content) - half)
            (target / name).write_bytes(content)

    def _seen(self, do: Callable[..., Any], name: str) -> Callable[..., Any]:
        def wrapped(path: Any, *rest: Any, **options: Any) -> Any:
            path = Path(path)
            if not path.is_relative_to(self.root):
                return do(path, *rest, **options)
            self._look()
            self._moment()
            result = do(path, *rest, **options)
            if name in ("rename", "replace"):
                self._renamed(path, Path(rest[0]))
            self._look()
            self._moment()
            return result

        return wrapped

    def _renamed(self, path: Path, target: Path) -> None:
        assert path.parent == target.parent

        def change(entries: dict[str, int]) -> None:
            if path.name in entries:
                entries[target.name] = entries.pop(path.name)

        self._folders[self._number(path.parent)].do(change)

    def _fsync(self, descriptor: int) -> None:
        self._look()
        self._moment()
        number = os.fstat(descriptor).st_ino
        for kind in (self._folders, self._files):
            if (node := kind.get(number)) is not None:
                node.kept = dict(node.now) if isinstance(node, Folder) else node.now
                node.since.clear()
        self._moment()

    def _look(self) -> None:
        """Take in what was written, made and deleted since."""
        for path, names, files in os.walk(self.root):
            folder = self._folders.setdefault(self._number(Path(path)), Folder())
            there = {name: self._number(Path(path) / name) for name in (*names, *files)}
            for name in folder.now.keys() - there.keys():
                folder.do(lambda entries, name=name: entries.pop(name, None) and None)
            for name, number in there.items():
                if folder.now.get(name) != number:
                    folder.do(lambda entries, entry=(name, number): entries.update([entry]))
            for name in files:
                file = self._files.setdefault(there[name], File())
                content = (Path(path) / name).read_bytes()
                if content != file.now:
                    file.now = content
                    file.since.append(content)

    def _number(self, path: Path) -> int:
        number = path.stat().st_ino
        if number not in self._open:
            self._open[number] = os.open(path, os.O_RDONLY)
        if path.is_dir():
            self._folders.setdefault(number, Folder())
        return number


def _rmtree(path: Path, ignore_errors: bool = False) -> None:
    """By whole paths, which can be watched."""
    if not path.exists() and ignore_errors:
        return
    for inner in sorted(path.rglob("*"), reverse=True):
        os.rmdir(inner) if inner.is_dir() else os.unlink(inner)
    os.rmdir(path)
