"""Metrics, tables, and the evaluations of environments."""

from typing import Protocol

from coterie.cli.plugins import load
from coterie.datatypes import UserError
from coterie.evaluation.evaluation import Evaluation, Row
from coterie.evaluation.per_episode import per_episode


class Evaluated(Protocol):
    """The part of a ``coterie.EnvSpec`` that names an evaluation."""

    @property
    def name(self) -> str: ...
    @property
    def evaluation(self) -> str | None: ...


def evaluation_of(spec: Evaluated) -> Evaluation:
    """Load the evaluation that an environment's spec names; by default, that of its rewards.

    Raises:
        UserError: it cannot be loaded, or is no :class:`Evaluation`.
    """
    path = spec.evaluation or "coterie.evaluation.per_episode:EVALUATION"
    title = f"the evaluation of env {spec.name!r} ({path})"
    evaluation = load(path, title)
    if not isinstance(evaluation, Evaluation):
        raise UserError(
            f"{title} is a {type(evaluation).__name__}; it must be an evaluation.Evaluation, such "
            "as coterie.evaluation.per_episode makes of one function."
        )
    return evaluation


__all__ = ["Evaluation", "Row", "evaluation_of", "per_episode"]
