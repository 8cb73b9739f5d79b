"""Figures of each set of problems, where an evaluation has several.

A metric ``pass@1/alice`` of the set ``gsm8k`` is called ``sets/gsm8k/pass@1/alice``.
"""

from collections.abc import Sequence
from typing import Any

from coterie.evaluation.evaluation import SETS, Evaluation, Outcomes, Resampled

SETS_OF_PROBLEM = "sets_of_problem"
"""Key of outcomes: the sets of each problem. Outcomes of a single set do not have it."""


def with_sets(outcomes: Outcomes, sets_of_problem: Sequence[Sequence[str]]) -> Outcomes:
    """``outcomes`` with the sets of each problem; an empty sequence: there is a single set."""
    if not sets_of_problem:
        return outcomes
    return {**outcomes, SETS_OF_PROBLEM: [[*names] for names in sets_of_problem]}


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
    sets_of_problem = outcomes.get(SETS_OF_PROBLEM, [])
    for name in dict.fromkeys(name for names in sets_of_problem for name in names):
        inside = [name in names for names in sets_of_problem]
        measured = evaluation.estimate(_part(outcomes, inside), resamples, seed)
        metrics |= {f"{SETS}/{name}/{metric}": value for metric, value in measured.items()}
    return metrics


def _part(outcomes: Any, inside: Sequence[bool]) -> Any:
    """Outcomes of some problems: every list with an entry for each problem is cut."""
    if isinstance(outcomes, dict):
        return {
            key: _part(value, inside) for key, value in outcomes.items() if key != SETS_OF_PROBLEM
        }
    if isinstance(outcomes, list) and len(outcomes) == len(inside):
        return [value for value, is_inside in zip(outcomes, inside) if is_inside]
    return outcomes
