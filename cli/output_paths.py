"""Output files and folders: tests before the work begins, and a fallback if writing fails."""

import os
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from coterie.datatypes.errors import UserError, user_path

NOT_UTF8 = (
    "libraries that read and write models take names in UTF-8 only; name another, or start with "
    "PYTHONUTF8=1 where this name is UTF-8"
)


def check_folder(
    path: Path, flag: str, *, files: Collection[str] = (), folders: Collection[str] = ()
) -> None:
    """Refuse a folder that cannot be made or written into.

    Args:
        path: of the folder, which may not exist yet.
        flag: names it in messages.
        files: names of files that will be written into it.
        folders: names of folders that will be filled in it.

    Raises:
        UserError: one sentence that names the way out.
    """
    if any("\udc80" <= letter <= "\udcff" for letter in str(user_path(path))):
        raise UserError(f"{flag}: {path}: {NOT_UTF8}")
    if path.is_dir():
        for name in files:
            check_file(path / name, flag)
        for name in folders:
            check_folder(path / name, flag)
    elif os.path.lexists(path):
        raise UserError(f"{flag}: {path} is {_kind(path)}, not a folder; name another place")
    _try_to_write(path, path, flag)


def check_file(path: Path, flag: str) -> None:
    """Refuse a file that cannot be written; an existing file is fine.

    Args:
        path: of the file, whose folder may not exist yet.
        flag: names it in messages.

    Raises:
        UserError: one sentence that names the way out.
    """
    if not user_path(path).is_file() and os.path.lexists(path):
        raise UserError(f"{flag}: {path} is {_kind(path)}, not a file; name another place")
    _try_to_write(path.parent, path, flag)


def keep(name: str, content: str) -> str:
    """Write content that could not be written elsewhere to a temporary file.

    Args:
        name: ends the name of the file.
        content: of the file.

    Returns:
        A clause for a message: where the file is, or that the content is lost.
    """
    folder = tempfile.gettempdir()
    with suppress(OSError):
        descriptor, path = tempfile.mkstemp(prefix="coterie-", suffix=f"-{name}", dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(content)
        return f"it is kept as {path}"
    return f"nor can {folder}, so it is lost"


def _try_to_write(folder: Path, path: Path, flag: str) -> None:
    """Write a temporary file into ``folder``, or into its first parent that exists."""
    existing = next(
        ancestor for ancestor in (folder, *folder.absolute().parents) if os.path.lexists(ancestor)
    )
    if not existing.is_dir():
        raise UserError(
            f"{flag}: {path} would lie in {existing}, which is {_kind(existing)}, not a folder; "
            "name another place"
        )
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"?")
            file.flush()
    except OSError as error:
        raise UserError(
            f"{flag}: {path} cannot be written: {existing} is not writable ({error.strerror}); "
            "name another place"
        ) from None


def _kind(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    if path.is_file():
        return "a file"
    return "a link to nothing" if path.is_symlink() else "a device or the like"
