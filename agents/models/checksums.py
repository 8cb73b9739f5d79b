"""Checksums of a folder's files in ``SHA256SUMS``, which reveal damaged files.

``sha256sum -c SHA256SUMS`` reads the same format.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NAME = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(paths: Iterable[Path]) -> list[str]:
    """Return the SHA-256 of each file; files are read concurrently."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(file_sha256, paths))


def write_checksums(folder: Path, beside: Sequence[str] = ()) -> None:
    """Write the checksum of every file under ``folder`` that is not hidden.

    Args:
        folder: the folder, which gets ``SHA256SUMS``.
        beside: further files outside of ``folder``, relative to it; missing ones are ignored.
    """
    names = [*_files(folder), *(name for name in beside if (folder / name).is_file())]
    sums = sha256_of(folder / name for name in names)
    lines = [f"{digest}  {name}\n" for digest, name in zip(sums, names)]
    (folder / NAME).write_text("".join(lines), encoding="utf-8")


def with_checksum(folder: Path, name: str) -> str:
    """Return the content of ``SHA256SUMS`` with the present checksum of the file ``name``."""
    text = (folder / NAME).read_text(encoding="utf-8")
    line = f"{file_sha256(folder / name)}  {name}\n"
    return re.sub(rf"^[0-9a-f]{{64}}  {re.escape(name)}\n", lambda _: line, text, flags=re.M)


def changed_files(folder: Path, *, new: bool = True) -> list[str] | None:
    """Return files that are changed, missing or (with ``new``) new since :func:`write_checksums`;
    None for a folder without checksums.

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
    # Hidden files belong to desktops and network disks.
    files = [path for path in folder.rglob("[!.]*") if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in files if path.name != NAME)
