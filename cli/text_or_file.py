"""Settings whose value is a text, or ``@FILE`` for the text in a file."""

from pathlib import Path
from typing import Annotated

from tyro.constructors import PrimitiveConstructorSpec

from coterie.datatypes.errors import UserError, user_path

MARK = "@"


def text_or_file(word: str, folder: Path = Path()) -> str:
    """Return ``word``, or the text of FILE if ``word`` is ``@FILE``; white space around it is
    removed.

    Args:
        word: a text, or ``@FILE``.
        folder: what a relative FILE is relative to.

    Raises:
        UserError: the file cannot be read or holds no text; or its text begins with ``@`` itself,
            and would name a file where a printed configuration is read again.
    """
    if not word.startswith(MARK):
        return word.strip()
    path = folder / user_path(word.removeprefix(MARK))
    name = str(path)
    way_out = f"write {MARK}FILE for a text file, or the text itself"
    try:
        text = user_path(path).read_text(encoding="utf-8-sig").strip()
    except OSError as error:
        raise UserError(f"the file {name!r} cannot be read ({error.strerror}); {way_out}") from None
    except UnicodeDecodeError:
        raise UserError(f"the file {name!r} is not UTF-8 text; {way_out}") from None
    if not text:
        raise UserError(f"the file {name!r} holds no text; {way_out}")
    if text.startswith(MARK):
        raise UserError(f"the text in {name!r} begins with {MARK}; begin it with another character")
    return text


def _of_words(words: list[str]) -> str:
    (word,) = words
    try:
        return text_or_file(word)
    except UserError as mistake:
        # tyro puts the flag before the text of a ValueError.
        raise ValueError(str(mistake)) from None


TextOrFile = Annotated[
    str,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="TEXT|@FILE",
        instance_from_str=_of_words,
        is_instance=lambda value: isinstance(value, str),
        str_from_instance=lambda text: [text],
    ),
]
"""Type of a field whose flag takes a text or ``@FILE``; its value is the text."""
