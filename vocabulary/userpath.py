"""A file or folder that a user names."""

from pathlib import Path

from vocabulary.usererror import UserError


def user_path(text: str | Path) -> Path:
    """The path that ``text`` names, ``~`` resolved, whether or not something is there.

    Raises:
        UserError: no file can have that name, or nobody here may look.
    """
    path = Path(text)
    try:
        path = path.expanduser()
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError, RuntimeError) as error:
        # Too long, a NUL or half a surrogate pair in it; ~nobody; a folder that is closed.
        reason = (isinstance(error, OSError) and error.strerror) or str(error).rstrip(".")
        raise UserError(
            f"{_shortened(str(text))} cannot be the name of a file or folder here ({reason}); "
            "name another"
        ) from None
    return path


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:80]!r}..."
