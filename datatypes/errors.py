"""The error of users, and helpers for its one-sentence messages."""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote


class UserError(Exception):
    """A mistake in the user's input. Its message is one sentence that names the way out.

    Entry scripts print the message and exit with code 2; it never shows a traceback.
    """


def refuse(*mistakes: tuple[bool, str]) -> None:
    """Raise an error with the sentence of the first mistake that was made.

    Args:
        mistakes: (whether it was made, one sentence that names the flag and the way out).

    Raises:
        UserError: a mistake was made.
    """
    for made, sentence in mistakes:
        if made:
            raise UserError(sentence)


def user_path(text: str | Path) -> Path:
    """``text`` as a path with ``~`` resolved, which need not exist.

    Raises:
        UserError: no file can have that name, or the user may not search a parent folder.
    """
    path = Path(text)
    try:
        path = path.expanduser()
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError, RuntimeError) as error:
        # A name that is too long or not valid, an unknown ~user, or a closed folder.
        reason = (isinstance(error, OSError) and error.strerror) or str(error).rstrip(".")
        raise UserError(
            f"{_shorten(str(text))} cannot be the name of a file or folder here ({reason}); "
            "name another"
        ) from None
    return path


def read_options(text: str) -> tuple[str, dict[str, str]]:
    """Split ``head?name=value&name=value`` into (head, options); values may be percent-encoded.

    Raises:
        UserError: an option has no value, or is given twice.
    """
    head, mark, tail = text.partition("?")
    options: dict[str, str] = {}
    for pair in tail.split("&") if mark else []:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise UserError(f"{text!r}: write options as NAME=VALUE, joined by &, not {pair!r}")
        if name in options:
            raise UserError(f"{text!r}: option {name!r} is given twice; write each once")
        options[name] = unquote(value)
    return head.strip(), options


def suggest(word: str, known: Iterable[str]) -> str:
    """``did you mean 'gcd'?`` followed by every known name."""
    known = sorted(known)
    return f"{did_you_mean(word, known)}known: {list_names(known)}"


def suggest_briefly(word: str, known: Iterable[str]) -> str:
    """``did you mean 'gcd'?``, or every known name if none is similar; for long lists of names."""
    known = sorted(known)
    return did_you_mean(word, known).rstrip() or f"known: {list_names(known)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean 'gcd'? `` if a known name is similar to ``word``; else empty."""
    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), folded, n=3, cutoff=0.6)
    return f"did you mean {join_or([repr(folded[name]) for name in close])}? " if close else ""


def join_or(words: Sequence[str]) -> str:
    """The words as ``a, b or c``; at least one."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def list_names(names: Iterable[str]) -> str:
    """The sorted names, joined by commas; ``none`` without names."""
    return ", ".join(sorted(names)) or "none"


def reason_of(error: Exception) -> str:
    """The first line of another library's error, short enough for a sentence."""
    return str(error).strip().split("\n", 1)[0][:300] or type(error).__name__


def cause_of(error: BaseException) -> str:
    """``ValueError: ...`` in one short line, about an error in the code of others."""
    try:
        said = " ".join(str(error).split())[:300]
    except Exception:  # an exception of others may have no text
        said = ""
    return f"{type(error).__name__}: {said}".removesuffix(": ")


def raised(error: BaseException) -> str:
    """``raised ValueError: ...``, see :func:`cause_of`."""
    return f"raised {cause_of(error)}"


def _shorten(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:80]!r}..."
