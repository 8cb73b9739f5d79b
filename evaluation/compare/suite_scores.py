"""A suite's tables and JSON from stored responses; nothing is sampled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from coterie.evaluation.compare.jobs import Job, Questions
from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.evaluation.compare.suite_metrics import (
    Figures,
    are_binary,
    differences,
    measure_rows,
    pairs,
    passes,
)
from coterie.evaluation.compare.suite_tables import (
    accuracy_table,
    calibration_tables,
    difference_table,
    pair_table,
    pass_table,
)
from coterie.evaluation.compare.systems import Prices, System, systems
from coterie.evaluation.compare.verifier import judgements, verified
from coterie.evaluation.metrics.calibration import (
    brier,
    calibration_columns,
    calibration_error,
    expected_calibration_error,
    output_ratio,
)
from coterie.evaluation.metrics.deferral import ThresholdChoice
from coterie.evaluation.metrics.discrimination import (
    discrimination,
    discrimination_columns,
    within_question_auroc,
)
from coterie.evaluation.metrics.intervals import FEWEST, bootstrap
from coterie.evaluation.metrics.means import Floats, mean_present, variance
from coterie.evaluation.metrics.runs import averaged_over_sets, calibration_over_runs


@dataclass(frozen=True)
class Answered:
    """The responses of all systems to one set of problems."""

    suite: str
    questions: Questions
    alone: Mapping[str, Responses]
    """Policy -> its responses alone."""
    workflows: Mapping[str, Responses]
    """Policy -> its responses after all others had answered."""
    verifier: Job | None = None
    counted: str = "policy"
    """Who is sampled and what counts as the score, for titles."""

    @classmethod
    def of(cls, suite: str, questions: Questions, jobs: Sequence[Job]) -> "Answered":
        """Read the stored responses of the jobs.

        Raises:
            UserError: a job has no response at all.
        """
        names = list(dict.fromkeys(name for job in jobs for name in job.lineup.needed))
        alone: dict[str, Responses] = {}
        workflows: dict[str, Responses] = {}
        for job in jobs:
            helped = not job.lineup.team and len(job.lineup.policies) > 1
            name = job.lineup.name.removeprefix("workflow-") if helped else job.lineup.name
            (workflows if helped else alone)[name] = job.responses(names)
        teams = [job.lineup for job in jobs if job.lineup.team]
        counts = f"answers of {teams[0].role} count" if teams and teams[0].role else "mean reward"
        counted = f"team; {counts}" if teams else "policy"
        return cls(suite, questions, alone, workflows, counted=counted)


@dataclass(frozen=True)
class SuiteResults:
    """One suite's results."""

    name: str
    sets: Sequence[Sequence[System]]
    figures: Sequence[Figures]
    tables: Sequence[Table]
    notes: Sequence[str]
    """Sentences to read the tables by."""
    content: Mapping[str, Any]


def score(
    answered: Sequence[Answered],
    prices: Prices,
    choice: ThresholdChoice,
    settings: ComparisonSettings,
) -> SuiteResults:
    """The results of one suite from the responses on each of its sets."""
    every = [_systems(answers, prices, choice) for answers in answered]
    systems_by_set = _shared(every)
    drawn = {"resamples": settings.resamples, "seed": settings.seed}
    alone = [answers.alone for answers in answered]
    rows = measure_rows(systems_by_set, prices, **drawn)
    passing = passes(alone, **drawn)
    binary = are_binary(alone)
    decompositions = pairs(alone, **drawn) if binary else []
    calibrated = reliability(alone, **drawn)
    runs = [
        {
            name: calibration_over_runs(responses.confidence_QN, responses.correct_QN)
            for name, responses in answers.items()
        }
        for answers in alone
    ]
    suite = answered[0].suite
    questions = sum(len(systems_of_set[0].score_Q) for systems_of_set in systems_by_set)
    sets = len(systems_by_set)
    title = (
        f"{suite}: {questions} questions of {sets} set{'s' * (sets > 1)}, "
        f"{settings.samples} samples of each {answered[0].counted}"
    )
    deployable = differences(systems_by_set, rows, **drawn)
    policies = {row.system.name for row in rows if row.system.is_single}
    single = {pair: change for pair, change in deployable.items() if policies.issuperset(pair)}
    tables = [
        accuracy_table(rows, f"{title}; below: oracles", sets=sets),
        *([difference_table(single)] if single else []),
        pass_table(passing, "Pass@k, unbiased" if binary else "best of k, expected"),
        *([pair_table(decompositions, "one answer each")] if decompositions else []),
        *calibration_tables(calibrated),
    ]
    content = {
        "sets": {
            answers.questions.name: {
                "questions": len(answers.questions.problems),
                "rows": {system.name: mean_present(system.score_Q) for system in systems_of_set},
                "policies": reliability([answers.alone], **drawn),
                "runs": own_runs,
            }
            for answers, systems_of_set, own_runs in zip(answered, systems_by_set, runs)
        },
        "runs": {
            name: averaged_over_sets(
                [figures[name] for figures in runs],
                [len(answers.questions.problems) for answers in answered],
            )
            for name in alone[0]
        },
        "rows": {row.system.name: _row(row) for row in rows},
        "differences": {f"{second} - {first}": d for (first, second), d in deployable.items()},
        "pass@k": {
            "policies": passing.policies,
            "team": passing.team,
            "best policy, as many candidates": passing.control,
            "difference": passing.gain,
        },
        "pairs": {f"{pair.first}+{pair.second}": pair.measured for pair in decompositions},
        "policies": calibrated,
    }
    notes = list(_notes(answered, every, rows))
    return SuiteResults(suite, systems_by_set, rows, tables, notes, content)


def overall(
    scored: Sequence[SuiteResults], prices: Prices, settings: ComparisonSettings
) -> tuple[Table, Mapping[str, Any]]:
    """(table, JSON data) of the rows common to all suites, over all their sets."""
    shared = _shared([systems for results in scored for systems in results.sets])
    rows = measure_rows(shared, prices, resamples=settings.resamples, seed=settings.seed)
    title = f"all {len(scored)} suites, rows that each has"
    table = accuracy_table(rows, title, sets=len(shared))
    return table, {row.system.name: _row(row) for row in rows}


def _shared(sets: Sequence[Sequence[System]]) -> list[list[System]]:
    """Keep the rows that every set has."""
    # A set without answers to vote on lacks the votes, which then have no figure over all sets.
    common = set.intersection(*({system.name for system in rows} for rows in sets))
    return [[system for system in rows if system.name in common] for rows in sets]


def _notes(
    answered: Sequence[Answered], sets: Sequence[Sequence[System]], rows: Sequence[Figures]
) -> Iterator[str]:
    """Sentences on the rows that some sets lack, and on answers that are missing."""
    suite = answered[0].suite
    lacking: dict[str, list[str]] = {}
    for name, label in {system.name: system.label for part in sets for system in part}.items():
        without = [
            answers.questions.name
            for answers, part in zip(answered, sets)
            if name not in {system.name for system in part}
        ]
        if without:
            lacking.setdefault(", ".join(without), []).append(label)
    for without, labels in lacking.items():
        yield f"{suite}: left out, as {without} has no such row: {'; '.join(labels)}"
    questions = sum(len(answers.questions.problems) for answers in answered)
    if questions < FEWEST:
        yield f"{suite}: * marks differences of {FEWEST} questions or more; here are {questions}"
    for row in rows:
        if row.missing and row.system.responses:
            yield (
                f"{suite}: {row.system.label}: {row.missing} of {questions} questions have no "
                "answer; its figures and differences are of the others"
            )


def _systems(answers: Answered, prices: Prices, choice: ThresholdChoice) -> list[System]:
    rows = list(
        systems(answers.alone, prices=prices, threshold=choice, workflows=answers.workflows)
    )
    if answers.verifier:
        judged = judgements(answers.verifier, answers.questions, answers.alone)
        rows.append(verified(answers.alone, judged, *answers.verifier.lineup.needed))
    return rows


def _row(figures: Figures) -> dict[str, Any]:
    return {
        "label": figures.system.label,
        "oracle": figures.system.oracle,
        "avg": figures.micro,
        "macro": figures.macro,
        "over_best": figures.over_best,
        "significant": figures.over_best.excludes_zero,
        "missing": figures.missing,
        "tokens": figures.tokens,
        "money": figures.money,
        "seconds": figures.seconds,
    }


def reliability(
    sets: Sequence[Mapping[str, Responses]], *, resamples: int, seed: int
) -> dict[str, dict[str, Any]]:
    """Policy -> variance of its scores, and calibration of its stated confidence (``stated``) and
    of its self-agreement (``agreement``), if available."""
    by_policy: dict[str, dict[str, Any]] = {}
    for name in sets[0]:
        correct_QN = np.concatenate([answered[name].correct_QN for answered in sets])
        by_policy[name] = {"variance": variance(correct_QN)}
        kinds = {
            "stated": [answered[name].confidence_QN for answered in sets],
            "agreement": [answered[name].agreement_QN() for answered in sets],
        }
        for kind, parts in kinds.items():
            confidence_QN = np.concatenate(parts)
            if not np.isnan(confidence_QN).all():
                by_policy[name][kind] = _calibration(
                    confidence_QN, correct_QN, resamples=resamples, seed=seed
                )
    return by_policy


def _calibration(
    confidence_QN: Floats, correct_QN: Floats, *, resamples: int, seed: int
) -> dict[str, Any]:
    drawn = {"resamples": resamples, "seed": seed}
    stated = confidence_QN, correct_QN
    ece = bootstrap(calibration_columns(*stated), calibration_error, **drawn)
    auroc = bootstrap(discrimination_columns(*stated), discrimination, **drawn)
    answered_QN = ~np.isnan(correct_QN)
    # The last four are of all responses together, without intervals.
    flat = [values_QN.ravel() for values_QN in stated]
    return {
        "ece": ece,
        "auroc": auroc,
        "auroc_within": within_question_auroc(*stated),
        "output_ratio": output_ratio(confidence_QN[answered_QN]),
        "ece_15": expected_calibration_error(*flat, bins=15),
        "ece_right_closed": expected_calibration_error(*flat, closed="right"),
        "ece_missing_as_zero": expected_calibration_error(*flat, missing="zero"),
        "brier": brier(*flat),
    }
