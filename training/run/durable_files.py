"""Durable writes: content and name of a file survive a loss of power.

Written data stay in memory until they are synced. The content of a file and its name in the folder
are synced separately. A rename is atomic.
"""

import errno
import os
from pathlib import Path

from coterie.cli.output_paths import keep
from coterie.datatypes import UserError

# fdatasync leaves out the time of change, whose write would cost as much as the content.
_sync_file = getattr(os, "fdatasync", os.fsync)


def sync(*paths: Path) -> None:
    """Sync the contents of files, and the entries of folders, to the disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            (os.fsync if path.is_dir() else _sync_file)(descriptor)
        finally:
            os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Sync everything under ``folder`` to the disk."""
    sync(*folder.rglob("*"), folder)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, and sync their names."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def write_whole(path: Path, content: str) -> None:
    """Write a file atomically: whatever happens, it has its old content or the new one."""
    draft = path.with_name(f".{path.name}.part")
    # The name of a file that is not UTF-8 has lone surrogates; JSON escapes them the same way.
    draft.write_bytes(content.encode("utf-8", "backslashreplace"))
    sync(draft)
    draft.replace(path)
    sync(path.parent)


def write_or_keep(path: Path, content: str) -> None:
    """Make the folder and :func:`write_whole` a file of ``--out``; on failure, write the content to
    a temporary file.

    Raises:
        UserError: the file could not be written; the message says where its content is.
    """
    try:
        make_folder(path.parent)
        write_whole(path, content)
    except OSError as error:
        clause = keep(path.name, content)
        raise UserError(f"--out: {path} cannot be written ({error.strerror}); {clause}") from None


def not_written(what: str, error: Exception, run: Path) -> UserError:
    """The error for a part of the run in the folder ``run`` that could not be written."""
    reason = getattr(error, "strerror", None) or str(error)
    full = getattr(error, "errno", None) in (None, errno.ENOSPC, errno.EDQUOT)
    way_out = "free some disk" if full else "mend that"
    return UserError(f"{what} could not be written ({reason}); {way_out}, then --resume {run}")
