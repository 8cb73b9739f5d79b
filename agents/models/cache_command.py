"""List and clear the cache of weights: ``coterie cache``.

It holds checkpoints that runs have converted from GGUF files, and files that
``tools/fetch_weights.py`` has fetched. A run converts a file again when it needs it. Clear nothing
while a run uses it.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from coterie.agents.models.cache import SOURCE, cache_folder, converted_folder, fetched_folder
from coterie.cli.arguments import Arguments
from coterie.datatypes import UserError

_KINDS = ("converted", "fetched")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 2 the user's mistake or a file that cannot be removed."""
    parser = Arguments("coterie cache", description=__doc__)
    parser.add_argument(
        "--clear",
        nargs="?",
        const="converted",
        choices=(*_KINDS, "all"),
        help="remove converted checkpoints (the default), fetched files, or all",
    )
    try:
        clear = parser.read(sys.argv[1:] if argv is None else argv).clear
        kept = list(_kept())
        if clear is None:
            _show(kept)
        else:
            _clear([file for file in kept if clear in (file.kind, "all")])
    except UserError as mistake:
        print(f"coterie cache: {mistake}", file=sys.stderr)
        return 2
    return 0


@dataclass(frozen=True)
class _Kept:
    """A converted checkpoint or a fetched file, possibly incomplete after an interruption."""

    kind: str
    path: Path
    lock: Path
    name: str
    whole: bool

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        files = [self.path, *self.path.rglob("*")]
        return sum(file.stat().st_size for file in files if file.is_file())


def _kept() -> Iterator[_Kept]:
    for path in _entries(converted_folder()):
        if path.is_dir():
            digest = path.name.removesuffix(".part")
            lock = path.with_name(f"{digest}.lock")
            yield _Kept("converted", path, lock, _source(path), path.name == digest)
    for path in _entries(fetched_folder()):
        name = path.name.removesuffix(".packages")
        if name.endswith(".gguf"):
            lock = path.with_name(f"{name}.lock")
            yield _Kept("fetched", path, lock, name, path.is_file())


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise UserError(f"{folder} cannot be read ({error.strerror or error})") from error


def _source(folder: Path) -> str:
    """The name of the GGUF file that a checkpoint was converted from."""
    try:
        return Path((folder / SOURCE).read_text(encoding="utf-8").strip()).name
    except (OSError, UnicodeDecodeError):  # an interrupted conversion has no name yet
        return folder.name[:12]


def _show(kept: Sequence[_Kept]) -> None:
    for file in kept:
        broken = "" if file.whole else "  (interrupted)"
        print(f"{file.kind:<9}  {_megabytes(file.size)}  {file.name}{broken}  {file.path}")
    total = f"{_megabytes(sum(file.size for file in kept))} in {cache_folder()}"
    print(f"{'total':<9}  {total}" if kept else f"nothing is cached in {cache_folder()}")


def _clear(kept: Sequence[_Kept]) -> None:
    freed = 0
    for file in reversed(kept):  # incomplete files come before whole ones
        size = file.size
        try:
            with FileLock(file.lock, timeout=0):
                if file.path.is_file():
                    file.path.unlink()
                else:
                    # Rename first, so that no run finds half of a checkpoint.
                    shutil.rmtree(file.path.replace(file.lock.with_suffix(".part")))
        except Timeout:
            raise UserError(
                f"{file.path} is being written by another process; wait for its end, or stop it"
            ) from None
        except OSError as error:
            raise UserError(f"{file.path} cannot be removed ({error.strerror or error})") from error
        freed += size
        print(f"removed {file.name}: {_megabytes(size).strip()}")
    print(f"{_megabytes(freed).strip()} freed" if kept else "nothing to remove")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:>8,.0f} MB"
