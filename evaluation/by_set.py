"""Figures of each set of problems, where an evaluation has several.

A metric ``pass@1/alice`` of the set ``gsm8k`` is called ``sets/gsm8k/pass@1/alice``.
"""

from collections.abc import Sequence
from typing import Any

from coterie.evaluation.evaluation import SETS, Evaluation, Outcomes, Resampled

SET_OF_PROBLEM = "set_of_problem"
"""Key of outcomes: the set of each problem. Outcomes of a single set do not have it."""


def with_sets(outcomes: Outcomes, set_of_problem: Sequence[str]) -> Outcomes:
    """``outcomes`` with the set of each problem; an empty sequence: there is a single set."""
    return {**outcomes, SET_OF_PROBLEM: list(set_of_problem)} if set_of_problem else outcomes


def estimate(
    evaluation: Evaluation, outcomes: Outcomes, resamples: int, seed: int
) -> dict[str, Resampled]:
    """Metrics by name of all problems together and, where there are several sets, of each.

    Args:
        evaluation: computes the metrics.
        outcomes: of all problems.
        resamples: of the bootstrap over problems.
        seed: of the bootstrap.
    """
    metrics = evaluation.estimate(outcomes, resamples, seed)
    set_of_problem = outcomes.get(SET_OF_PROBLEM, [])
    for name in dict.fromkeys(set_of_problem):
        inside = [other == name for other in set_of_problem]
        measured = evaluation.estimate(_part(outcomes, inside), resamples, seed)
        metrics |= {f"{SETS}/{name}/{metric}": value for metric, value in measured.items()}
    return metrics


def _part(outcomes: Any, inside: Sequence[bool]) -> Any:
    """Outcomes of some problems: every list with an entry for each problem is cut."""
    if isinstance(outcomes, dict):
        return {
            key: _part(value, inside) for key, value in outcomes.items() if key != SET_OF_PROBLEM
        }
    if isinstance(outcomes, list) and len(outcomes) == len(inside):
        return [value for value, is_inside in zip(outcomes, inside) if is_inside]
    return outcomes
