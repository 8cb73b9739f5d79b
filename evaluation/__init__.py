"""Metrics, tables, and how an environment says what is measured in it."""

from typing import Protocol

from coterie.datatypes import UserError
from coterie.datatypes.plugins import load
from coterie.evaluation.evaluation import Evaluation, Row
from coterie.evaluation.per_episode import per_episode


class Evaluated(Protocol):
    """Of a ``coterie.EnvSpec``, what is asked here."""

    @property
    def name(self) -> str: ...
    @property
    def evaluation(self) -> str | None: ...


def evaluation_of(spec: Evaluated) -> Evaluation:
    """How an environment is evaluated; by its rewards, if it says nothing of it.

    Raises:
        UserError: what it names cannot be loaded, or is something else.
    """
    path = spec.evaluation or "coterie.evaluation.per_episode:EVALUATION"
    title = f"the evaluation of env {spec.name!r} ({path})"
    found = load(path, title)
    if not isinstance(found, Evaluation):
        raise UserError(
            f"{title} is a {type(found).__name__}; it must be an evaluation.Evaluation, such as "
            "coterie.evaluation.per_episode makes of one function."
        )
    return found


__all__ = ["Evaluation", "Row", "evaluation_of", "per_episode"]
