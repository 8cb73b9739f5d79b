"""Checksums of a folder's files, kept beside them in ``SHA256SUMS``: they name a damaged file.

``sha256sum -c SHA256SUMS`` reads the same form.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NAME = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(paths: Iterable[Path]) -> list[str]:
    """The SHA-256 of each file. Files are read side by side."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(file_sha256, paths))


def write_checksums(folder: Path, beside: Sequence[str] = ()) -> None:
    """Write the checksum of every file under ``folder`` that is not hidden.

    Args:
        folder: gets ``SHA256SUMS``.
        beside: paths from ``folder`` to files outside of it, noted too where they exist.
    """
    names = [*_files(folder), *(name for name in beside if (folder / name).is_file())]
    sums = sha256_of(folder / name for name in names)
    lines = [f"{digest}  {name}\n" for digest, name in zip(sums, names)]
    (folder / NAME).write_text("".join(lines), encoding="utf-8")


def changed_files(folder: Path, *, new: bool = True) -> list[str] | None:
    """The files that differ from what :func:`write_checksums` noted: changed, missing and (with
    ``new``) new ones; None where the folder has no checksums.

    Raises:
        OSError: a file cannot be read.
    """
    if not (folder / NAME).is_file():
        return None
    text = (folder / NAME).read_text(encoding="utf-8", errors="replace")
    lines = [_LINE.fullmatch(line) for line in text.split("\n")[:-1]]
    if not text.endswith("\n") or not all(lines):
        return [NAME]
    noted = {line[2]: line[1] for line in lines if line}
    there = [name for name in noted if (folder / name).is_file()]
    sums = dict(zip(there, sha256_of(folder / name for name in there)))
    added = [name for name in _files(folder) if name not in noted] if new else []
    return [name for name in noted if sums.get(name) != noted[name]] + added


def _files(folder: Path) -> list[str]:
    # A hidden file is the system's: a desktop's notes, what a network disk has deleted.
    files = [path for path in folder.rglob("[!.]*") if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in files if path.name != NAME)
