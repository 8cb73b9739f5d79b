"""Output files and folders: tried before the work begins, and a fallback when writing fails."""

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
    """Refuse a folder that cannot be made, or written into.

    Args:
        path: it need not be there yet.
        flag: names it, for messages.
        files: what will be written into it.
        folders: what will be filled in it.

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
    _try(path, path, flag)


def check_file(path: Path, flag: str) -> None:
    """Refuse a file that cannot be written; one that is there will be replaced.

    Args:
        path: its folder need not be there yet.
        flag: names it, for messages.

    Raises:
        UserError: one sentence that names the way out.
    """
    if not user_path(path).is_file() and os.path.lexists(path):
        raise UserError(f"{flag}: {path} is {_kind(path)}, not a file; name another place")
    _try(path.parent, path, flag)


def keep(name: str, content: str) -> str:
    """Write ``content`` into the folder of temporary files, as the last resort.

    Args:
        name: ends the file's name.
        content: what could not be written elsewhere.

    Returns:
        A clause for a message: where the file is, or that the content is lost.
    """
    place = tempfile.gettempdir()
    with suppress(OSError):
        descriptor, kept = tempfile.mkstemp(prefix="coterie-", suffix=f"-{name}", dir=place)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(content)
        return f"it is kept as {kept}"
    return f"nor can {place}, so it is lost"


def _try(folder: Path, path: Path, flag: str) -> None:
    """Write a file without a name into ``folder``, or into the one that it will be made in."""
    there = next(
        ancestor for ancestor in (folder, *folder.absolute().parents) if os.path.lexists(ancestor)
    )
    if not there.is_dir():
        raise UserError(
            f"{flag}: {path} would lie in {there}, which is {_kind(there)}, not a folder; name "
            "another place"
        )
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"?")
            file.flush()
    except OSError as error:
        raise UserError(
            f"{flag}: {path} cannot be written, since {there} takes no file ({error.strerror}); "
            "name another place"
        ) from None


def _kind(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    if path.is_file():
        return "a file"
    return "a link to nothing" if path.is_symlink() else "a device or the like"
