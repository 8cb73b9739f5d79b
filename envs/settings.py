"""What settings of environments share: checks of their fields, and the longest answer."""

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from coterie.datatypes import UserError, check_least

MOST = 4096
"""Agents or episodes of one question that a setting may ask for; papers take up to 64."""


def require(title: str, holds: bool, sentence: str) -> None:
    """Refuse the settings of the environment ``title`` unless something holds.

    Raises:
        UserError: it does not.
    """
    if not holds:
        raise UserError(f"{title}: {sentence}.")


def require_countable(title: str, settings: Any, *names: str) -> None:
    """Refuse a field that stands for so many agents or episodes that naming them takes minutes.

    Raises:
        UserError: it is above :data:`MOST`.
    """
    for name in names:
        value = getattr(settings, name)
        require(title, value <= MOST, f"{name} is {value}: it must be {MOST} at most")


def require_traces(title: str, settings: Any) -> None:
    """Refuse numbers and lengths of traces, in training and in evaluation, that make no sense.

    Raises:
        UserError: one does not.
    """
    ones = dict.fromkeys(("traces", "eval_traces", "max_new_tokens"), 1)
    check_least(settings, {**ones, "eval_max_new_tokens": 0}, at=f"{title}: ")
    require_countable(title, settings, "traces", "eval_traces")


def require_known(title: str, settings: Any) -> None:
    """Refuse a field whose value its ``Literal`` does not have.

    Raises:
        UserError: a sentence with the values that it has.
    """
    for name, hint in get_type_hints(type(settings)).items():
        if get_origin(hint) is Literal and (chosen := getattr(settings, name)) not in (
            known := get_args(hint)
        ):
            require(title, False, f"{name} is {chosen!r}: choose one of {', '.join(known)}")


def require_finite(title: str, settings: Any) -> None:
    """Refuse an infinite number: a reward of it teaches nothing.

    Raises:
        UserError: a sentence with its name.
    """
    for field in fields(settings):
        value = getattr(settings, field.name)
        inside = value if isinstance(value, tuple) else (value,)
        endless = any(isinstance(number, float) and math.isinf(number) for number in inside)
        require(title, not endless, f"{field.name} is {value}: it must be finite")


def check_rereading(reread: str, run: Any, *, remedy: str) -> Iterator[tuple[bool, str]]:
    """Hold that rereading and distillation go together, as :attr:`coterie.envs.EnvSpec.check` does.

    Args:
        reread: the environment's setting.
        run: all settings of a run.
        remedy: what has traces read again, as the message ends.
    """
    beta = run.algo.distillation.beta
    yield (
        reread == "none" and beta > 0,
        "--algo.distillation.beta does nothing while no trace is read again; set it to 0, or "
        f"{remedy}",
    )
    yield (
        reread != "none" and beta == 0,
        f"--env.reread {reread} does nothing without --algo.distillation.beta, such as 1; without "
        "both: --env.reread none",
    )


def token_limit(settings: Any, *, training: bool) -> int:
    """Tokens of an answer: in evaluation ``eval_max_new_tokens``, unless that is 0."""
    longest = 0 if training else settings.eval_max_new_tokens
    return longest or settings.max_new_tokens
