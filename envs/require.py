"""What environments hold their settings to; each check refuses in one sentence of the user's."""

from collections.abc import Mapping
from typing import Any, get_args

from vocabulary import UserError

MOST = 4096
"""Agents or episodes of one question that a setting may ask for; papers take up to 64."""


def require(title: str, holds: bool, sentence: str) -> None:
    """Refuse the settings of the environment ``title`` unless something holds.

    Raises:
        UserError: it does not.
    """
    if not holds:
        raise UserError(f"{title}: {sentence}.")


def require_least(
    title: str,
    settings: Any,
    leasts: Mapping[str, float],
    sentence: str = "{name} is {value}: it must be {least} at least",
) -> None:
    """Refuse a field that is below its least value, or NaN.

    Raises:
        UserError: ``sentence``, filled in.
    """
    for name, least in leasts.items():
        value = getattr(settings, name)
        require(title, value >= least, sentence.format(name=name, value=value, least=least))


def require_countable(title: str, settings: Any, *names: str) -> None:
    """Refuse a field that stands for so many agents or episodes that naming them takes minutes.

    Raises:
        UserError: it is above :data:`MOST`.
    """
    for name in names:
        value = getattr(settings, name)
        require(title, value <= MOST, f"{name} is {value}: it must be {MOST} at most")


def require_known(title: str, settings: Any, choices: Mapping[str, Any]) -> None:
    """Refuse a field whose value its ``Literal`` does not have.

    Raises:
        UserError: a sentence with the values that it has.
    """
    for name, literal in choices.items():
        known, chosen = get_args(literal), getattr(settings, name)
        require(title, chosen in known, f"{name} is {chosen!r}: choose one of {', '.join(known)}")
