"""From stored responses to a suite's tables and JSON; samples nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from coterie.comparison.figures import Figures, measure_rows, pairs, passes
from coterie.comparison.plan import Job, Questions
from coterie.comparison.reliability import reliability, shares
from coterie.comparison.responses import Responses
from coterie.comparison.settings import Asking
from coterie.comparison.suite_tables import (
    accuracy_table,
    calibration_table,
    pair_table,
    pass_table,
)
from coterie.comparison.systems import Prices, System, systems
from coterie.comparison.verifier import judgements, verified
from coterie.evaluation.cascade import ThresholdChoice
from coterie.evaluation.metrics.means import mean_present


@dataclass(frozen=True)
class Answered:
    """A set of problems, and who answered it how."""

    suite: str
    questions: Questions
    alone: Mapping[str, Responses]
    """Policy -> its own answers."""
    workflows: Mapping[str, Responses]
    """Policy -> its answers after all others had answered."""
    verifier: Job | None = None

    @classmethod
    def of(cls, suite: str, questions: Questions, jobs: Sequence[Job]) -> "Answered":
        """What the jobs have stored.

        Raises:
            UserError: somebody has answered nothing at all.
        """
        names = list(dict.fromkeys(name for job in jobs for name in job.lineup.needed))
        alone: dict[str, Responses] = {}
        workflows: dict[str, Responses] = {}
        for job in jobs:
            (answering,) = job.lineup.policies[job.lineup.role]
            found = workflows if len(job.lineup.policies) > 1 else alone
            found[answering.name] = job.responses(names)
        return cls(suite, questions, alone, workflows)


@dataclass(frozen=True)
class Scored:
    """One suite's results."""

    name: str
    sets: Sequence[Sequence[System]]
    figures: Sequence[Figures]
    tables: Sequence[Table]
    content: Mapping[str, Any]


def score(
    answered: Sequence[Answered], prices: Prices, how: ThresholdChoice, settings: Asking
) -> Scored:
    """One suite, from everything that was answered there."""
    found = [_systems(one, prices, how) for one in answered]
    # A row that some set lacks (no answers to vote on) has no figure over all of them.
    common = set.intersection(*({one.name for one in some} for some in found))
    found = [[one for one in some if one.name in common] for some in found]
    drawn = {"resamples": settings.resamples, "seed": settings.seed}
    alone = [one.alone for one in answered]
    rows = measure_rows(found, prices, **drawn)
    passing, apart = passes(alone, **drawn), pairs(alone, **drawn)
    known = reliability(alone, **drawn)
    name = answered[0].suite
    questions = sum(len(some[0].score_Q) for some in found)
    title = (
        f"{name}: {questions} questions of {len(found)} set{'s' * (len(found) > 1)}, "
        f"{settings.samples} samples of each policy"
    )
    tables = [
        accuracy_table(rows, f"{title}; below: oracles", sets=len(found)),
        pass_table(passing, "Pass@k, unbiased"),
        *([pair_table(apart, "one answer each")] if apart else []),
        calibration_table(known, "confidence (ECE: 10 bins [a, b)) and variance"),
    ]
    content = {
        "sets": {
            one.questions.name: {
                "questions": len(one.questions.problems),
                "rows": {system.name: mean_present(system.score_Q) for system in some},
                "policies": reliability([one.alone], **drawn),
            }
            for one, some in zip(answered, found)
        },
        "rows": {one.system.name: _row(one) for one in rows},
        "pass@k": {
            "policies": passing.policies,
            "team": passing.team,
            "best policy, as many candidates": passing.control,
            "difference": passing.gain,
        },
        "pairs": {f"{pair.first}+{pair.second}": pair.measured for pair in apart},
        "policies": known,
        "shares": shares(alone),
    }
    return Scored(name, found, rows, tables, content)


def overall(
    scored: Sequence[Scored], prices: Prices, settings: Asking
) -> tuple[Table, Mapping[str, Any]]:
    """The rows that all suites have, over all sets of all of them."""
    sets = [some for one in scored for some in one.sets]
    common = set.intersection(*({one.name for one in some} for some in sets))
    shared = [[one for one in some if one.name in common] for some in sets]
    found = measure_rows(shared, prices, resamples=settings.resamples, seed=settings.seed)
    table = accuracy_table(found, f"all {len(scored)} suites", sets=len(sets))
    return table, {one.system.name: _row(one) for one in found}


def _systems(one: Answered, prices: Prices, how: ThresholdChoice) -> list[System]:
    found = list(systems(one.alone, prices=prices, threshold=how, workflows=one.workflows))
    if one.verifier:
        said = judgements(one.verifier, one.questions, one.alone)
        found.append(verified(one.alone, said, *one.verifier.lineup.needed))
    return found


def _row(one: Figures) -> dict[str, Any]:
    return {
        "label": one.system.label,
        "oracle": one.system.oracle,
        "avg": one.micro,
        "macro": one.macro,
        "over_best": one.over_best,
        "significant": one.marked,
        "tokens": one.tokens,
        "money": one.money,
        "seconds": one.seconds,
    }
