"""Checks of what a user writes: each mistake is refused in one sentence."""

import dataclasses
import difflib
import math
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import unquote


class UserError(Exception):
    """A mistake in the user's input. Its message is one sentence that names the way out.

    Entry scripts print the message and exit with code 2; it never shows a traceback.
    """


def refuse(*mistakes: tuple[bool, str]) -> None:
    """Raise the sentence of the first mistake that was made.

    Args:
        mistakes: (whether it was made, one sentence that names the flag and the way out).

    Raises:
        UserError: a mistake was made.
    """
    for made, sentence in mistakes:
        if made:
            raise UserError(sentence)


def check_least(settings: Any, leasts: Mapping[str, float], *, at: str = "") -> None:
    """Refuse a field that is below its least value, or NaN.

    Args:
        settings: anything with these fields.
        leasts: field -> its least value.
        at: goes before its name.

    Raises:
        UserError: a sentence with both.
    """
    for name, least in leasts.items():
        value = getattr(settings, name)
        if not value >= least:
            raise UserError(f"{at}{name} is {value}: it must be at least {least:g}")


def check_literals(settings: Any, at: str = "") -> None:
    """Refuse a field whose value its ``Literal`` does not have, however the settings were built.

    Args:
        settings: a dataclass.
        at: what the flags of ``settings`` begin with, such as ``algo.``.

    Raises:
        UserError: a sentence with the values that it has.
    """
    for name, hint in _literal_fields(type(settings)).items():
        if not fits(value := getattr(settings, name), hint):
            flag = f"{at}{name.replace('_', '-')}"
            raise UserError(f"{flag} is {reprlib.repr(value)}; it must be {_describe(hint)}")


@lru_cache
def _literal_fields(kind: type) -> dict[str, Any]:
    """Name -> type of the fields that may hold one of a few values only."""
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in dataclasses.fields(kind)]
    return {name: hints[name] for name in names if _names_values(hints[name])}


def _names_values(hint: Any) -> bool:
    return get_origin(hint) is Literal or any(map(_names_values, get_args(hint)))


_LARGE = re.compile(r"seeds?\.?$|--(?:expert-)?tokens\.?$|^--problems\.")
"""Flags of whole numbers that may be as large as a machine's; problems have limits of their own."""


def check_numbers(settings: Any, at: str = "--") -> None:
    """Refuse NaN, which passes every comparison that looks for what is wrong, and whole numbers
    that no run reaches: 2^31 and above, or 2^63 for seeds, problems and budgets of tokens.

    Args:
        settings: a tree of dataclasses, mappings and tuples.
        at: what the flags of ``settings`` begin with.

    Raises:
        UserError: one sentence that names the flag.
    """
    if isinstance(settings, float) and math.isnan(settings):
        raise UserError(f"{at.rstrip('.')} is not a number (nan)")
    power = 63 if _LARGE.search(at) else 31
    if isinstance(settings, int) and abs(settings) >= 2**power:
        raise UserError(f"{at.rstrip('.')} is too large: it must be below 2^{power}")
    items: Iterable[tuple[str, Any]] = ()
    if dataclasses.is_dataclass(settings):
        items = ((f.name, getattr(settings, f.name)) for f in dataclasses.fields(settings))
    elif isinstance(settings, Mapping):
        items = settings.items()
    elif isinstance(settings, list | tuple):
        for item in settings:
            check_numbers(item, at)
    for name, value in items:
        # The run's own flags stand at the top.
        check_numbers(value, at if name == "run" else f"{at}{str(name).replace('_', '-')}.")


def user_path(text: str | Path) -> Path:
    """The path that ``text`` names, ``~`` resolved, whether or not something is there.

    Raises:
        UserError: no file can have that name, or a folder above it is closed to this user.
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
            f"{_shorten(str(text))} cannot be the name of a file or folder here ({reason}); "
            "name another"
        ) from None
    return path


def read_options(text: str) -> tuple[str, dict[str, str]]:
    """``head?name=value&name=value`` as its head and its options; values may be percent-encoded.

    Raises:
        UserError: an option without a value, or one that is given twice.
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


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean 'gcd'? `` where a known name is near to ``word``; else nothing."""
    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), folded, n=3, cutoff=0.6)
    return f"did you mean {join_or([repr(folded[name]) for name in close])}? " if close else ""


def join_or(words: Sequence[str]) -> str:
    """The words as ``a, b or c``; at least one."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def list_names(names: Iterable[str]) -> str:
    """Names in order, with commas; ``none`` when there are none."""
    return ", ".join(sorted(names)) or "none"


def reason_of(error: Exception) -> str:
    """The first line of another library's error, short enough for a sentence."""
    return str(error).strip().split("\n", 1)[0][:300] or type(error).__name__


def _shorten(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:80]!r}..."


_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    NoneType: "null",
    Path: "a path",
}


def check_fields(kind: type, values: Mapping[str, Any], *, at: str = "") -> None:
    """Refuse a value that does not fit its field; names without a field are left alone.

    Lists are tuples here, as in settings.

    Args:
        kind: a class with typed fields.
        values: by name.
        at: goes before a field's name.

    Raises:
        UserError: the first such value.
    """
    hints = get_type_hints(kind, include_extras=True)
    for name, value in values.items():
        if name in hints and not fits(value, hints[name]):
            raise UserError(
                f"{at}{name} is {reprlib.repr(value)}; it must be {_describe(hints[name])}"
            )


def fits(value: Any, hint: Any) -> bool:
    """Whether ``value`` is of type ``hint``; whole numbers are numbers, truth values are neither.

    A type that says more than this knows (a protocol, a type variable) fits everything.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return fits(value, inner[0])
    if origin in (Union, UnionType):
        return any(fits(value, member) for member in inner)
    if origin is Literal:
        return any(type(value) is type(member) and value == member for member in inner)
    if origin is not None:
        return isinstance(value, origin) and _holds(value, inner)
    if hint is None:
        return value is None
    if hint in (int, float):
        kinds = (int,) if hint is int else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    if hint is Any or not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return True
    return isinstance(value, hint)


def _holds(value: Any, inner: tuple[Any, ...]) -> bool:
    """Whether the elements of a container fit their types."""
    if isinstance(value, tuple) and inner and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(fits, value, inner))
    if isinstance(value, Mapping) and len(inner) == 2:
        return all(
            fits(key, inner[0]) and fits(element, inner[1]) for key, element in value.items()
        )
    if isinstance(value, Sequence) and inner:
        return all(fits(element, inner[0]) for element in value)
    return True


def _describe(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _describe(inner[0])
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_describe(member) for member in inner))
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is tuple and inner[-1:] == (Ellipsis,):
        return f"a list, each entry {_describe(inner[0])}"
    if origin is tuple:
        return f"a list of {len(inner)}, {', '.join(map(_describe, inner))}"
    if dataclasses.is_dataclass(hint) or (origin is not None and issubclass(origin, Mapping)):
        return "an object"
    return _WORDS.get(origin or hint, getattr(hint, "__name__", str(hint)))
