"""Custom reward terms: ``--env.terms mymodule:brevity=0.5``."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from coterie.cli.plugins import Plugins, load
from coterie.datatypes import UserError

PLUGINS = Plugins("coterie.core_teaching.terms", "reward term")
"""Entry points: the name is for ``--env.terms``, the value a function for :func:`custom_terms`."""

Term = Callable[[Sequence[Any], Any], Sequence[float]]


@lru_cache(maxsize=64)
def find_term(named: str) -> tuple[str, float, Term]:
    """Parse ``NAME=WEIGHT``, or ``NAME`` with weight 1; return (name in logs, weight, function).

    NAME is ``pkg.module:function`` or the name of an entry point.

    Raises:
        UserError: the function does not exist or is no function, or the weight is no number.
    """
    name, equals, weight = named.partition("=")
    try:
        value = float(weight if equals else 1)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"env.terms {named!r}: write NAME=WEIGHT, such as mymodule:brevity=0.5")
    path, title = PLUGINS.find(name, sorted(PLUGINS.names()))
    function: Any = load(path, title)
    if not callable(function):
        raise UserError(f"{title} is a {type(function).__name__}; it must be a function")
    return name.rpartition(":")[2].rpartition(".")[2], value, cast(Term, function)


def term_name(named: str) -> str:
    """Return the name of the term ``NAME=WEIGHT`` in logs."""
    return find_term(named)[0]


def custom_terms(
    named: Sequence[str], traces: Sequence[Any], problem: Any
) -> Mapping[str, npt.NDArray[np.float64]]:
    """Return term -> weighted values (B,) of the traces of one question.

    Args:
        named: ``NAME=WEIGHT`` of each function, which takes traces and problem and returns a number
            for every trace.
        traces: B objects of :class:`coterie.envs.core_teaching.scoring.Trace`.
        problem: the question.

    Raises:
        UserError: a function fails or does not return B finite numbers.
    """
    values: dict[str, npt.NDArray[np.float64]] = {}
    for entry in named:
        name, weight, term = find_term(entry)
        try:
            value_B = np.asarray(term([*traces], problem), dtype=np.float64)
        except Exception as error:
            raise UserError(
                f"reward term {entry!r} raised {type(error).__name__}: {str(error)[:300]}"
            ) from error
        if value_B.shape != (len(traces),) or not np.isfinite(value_B).all():
            raise UserError(
                f"reward term {entry!r} gave {value_B!r:.200}; it must give {len(traces)} finite "
                "numbers, one for each trace"
            )
        values[name] = weight * value_B
    return values
