"""What the disk is known to hold, whatever happens to the power from here on.

What is written stands in memory until the disk is asked to take it, and so does a name: a file's
content and the entry of its folder are two things. A rename is seen before or after, never halfway.
"""

import errno
import os
from pathlib import Path

from coterie.datatypes import UserError
from coterie.datatypes.target import keep

# A file's time of change may be lost; to write it costs as much as the content.
_sync_file = getattr(os, "fdatasync", os.fsync)


def sync(*paths: Path) -> None:
    """Have the disk hold these files' contents, and these folders' entries."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            (os.fsync if path.is_dir() else _sync_file)(descriptor)
        finally:
            os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Have the disk hold all that is under ``folder``."""
    sync(*folder.rglob("*"), folder)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, that the disk holds; nothing to do where it is there."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def write_whole(path: Path, content: str) -> None:
    """Write a file that is there as it was before or as it is afterwards, and nothing between."""
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(content, encoding="utf-8")
    sync(draft)
    draft.replace(path)
    sync(path.parent)


def write_or_keep(path: Path, content: str, flag: str) -> None:
    """As :func:`write_whole`, in a folder that may have to be made; what the disk does not take
    is kept elsewhere.

    Raises:
        UserError: where it is kept, and why.
    """
    try:
        make_folder(path.parent)
        write_whole(path, content)
    except OSError as error:
        kept = keep(path.name, content)
        raise UserError(f"{flag}: {path} cannot be written ({error.strerror}); {kept}") from None


def not_written(what: str, error: Exception, run: Path) -> UserError:
    """One sentence about ``what`` a disk did not take of the run in ``run``."""
    reason = getattr(error, "strerror", None) or str(error)
    full = getattr(error, "errno", None) in (None, errno.ENOSPC, errno.EDQUOT)
    way_out = "free some disk" if full else "mend that"
    return UserError(f"{what} could not be written ({reason}); {way_out}, then --resume {run}")
