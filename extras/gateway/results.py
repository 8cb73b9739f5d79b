"""What a program gives for its episode, in plain values."""

from collections.abc import Mapping
from numbers import Real
from typing import Any


class Unread:
    """Stands for a value that is neither text nor a number."""

    def __init__(self, value: Any) -> None:
        """``value``: of any kind; it may raise whatever is asked of it."""
        try:
            self._shown = " ".join(repr(value).split())[:100]
        except Exception:
            self._shown = f"a {type(value).__name__}"

    def __repr__(self) -> str:
        return self._shown


Paid = float | Unread


def plain(result: Any) -> Any:
    """Text to be graded, a number, or by role a number or a list of numbers, all of Python's own
    types; what cannot be read is :class:`Unread`, and anything else stays what it is.

    A program's own classes are asked here, in the program's thread, and nowhere else.
    """
    try:
        if isinstance(result, str):
            return str.__str__(result)  # of a class of its own, it would be asked again and again
        if isinstance(result, Real):
            return _number(result)
        if isinstance(result, Mapping):
            return {_name(role): _rewards(reward) for role, reward in dict(result).items()}
    except Exception:
        return Unread(result)
    return result


def _name(role: Any) -> str:
    return str.__str__(role) if isinstance(role, str) else repr(Unread(role))


def _rewards(value: Any) -> Paid | list[Paid]:
    return [_number(each) for each in value] if isinstance(value, list | tuple) else _number(value)


def _number(value: Any) -> Paid:
    """Arrays and tensors of one number are numbers, text is none."""
    try:
        return Unread(value) if isinstance(value, str | bytes) else float(value)
    except Exception:
        return Unread(value)
