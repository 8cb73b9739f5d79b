"""From stored completions to tables, JSON and a picture."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from evaluation.cascade import ThresholdChoice
from evaluation.numbers import plain_number
from evaluation.suite import tables
from evaluation.suite.figures import Row, as_json, pairs, passes, rows
from evaluation.suite.pictures import draw
from evaluation.suite.reliability import reliability
from evaluation.suite.shares import shares
from evaluation.suite.suites import Suite
from evaluation.suite.systems import Prices, System, systems
from evaluation.suite.verified import verified
from launch.plain import to_plain
from launch.suite.answered import Answered
from launch.suite.settings import SuiteComparison
from launch.suite.verify import judgements


@dataclass(frozen=True)
class Scored:
    """One suite's results."""

    name: str
    sets: Sequence[Sequence[System]]
    rows: Sequence[Row]
    tables: Sequence[Table]
    content: Mapping[str, Any]


def score(
    suite: Suite, answered: Sequence[Answered], prices: Prices, settings: SuiteComparison
) -> Scored:
    """Score what is stored; samples nothing."""
    found = [_systems(one, prices, settings) for one in answered]
    # A row that some set lacks (no answers to vote on) has no figure over all of them.
    common = set.intersection(*({one.name for one in some} for some in found))
    found = [[one for one in some if one.name in common] for some in found]
    how = {"resamples": settings.resamples, "seed": settings.seed}
    alone = [one.alone for one in answered]
    table = rows(found, prices, **how)
    passing, apart, known = passes(alone, **how), pairs(alone, **how), reliability(alone, **how)
    questions = sum(len(one.score_Q) for one in (some[0] for some in found))
    title = (
        f"{suite.name}: {questions} questions of {len(found)} "
        f"set{'s' * (len(found) > 1)}, {settings.samples} samples of each agent"
    )
    shown = [
        tables.accuracy(table, f"{title}; below: oracles", sets=len(found)),
        tables.passing(passing, "Pass@k, unbiased"),
        *([tables.decomposition(apart, "one answer each")] if apart else []),
        tables.calibration(known, "confidence (ECE: 10 bins [a, b)) and variance"),
    ]
    content = {
        "sets": {
            one.where.name: {
                "questions": len(one.where.problems),
                "rows": {system.name: _value(system.score_Q) for system in some},
                "agents": reliability([one.alone], **how),
            }
            for one, some in zip(answered, found)
        },
        "rows": {row.system.name: _row(row) for row in table},
        "pass@k": {
            "agents": {name: [as_json(v) for v in own] for name, own in passing.agents.items()},
            "team": [as_json(value) for value in passing.team],
            "best agent, as many candidates": [as_json(value) for value in passing.control],
            "difference": [as_json(value) for value in passing.gain],
        },
        "pairs": {
            f"{pair.first}+{pair.second}": {n: as_json(v) for n, v in pair.measured.items()}
            for pair in apart
        },
        "agents": known,
        "shares": shares(alone),
    }
    return Scored(suite.name, found, table, shown, content)


def overall(
    scored: Sequence[Scored], prices: Prices, settings: SuiteComparison
) -> tuple[Table, Mapping[str, Any]]:
    """The rows that all suites have, over all sets of all of them."""
    sets = [some for one in scored for some in one.sets]
    common = set.intersection(*({one.name for one in some} for some in sets))
    shared = [[one for one in some if one.name in common] for some in sets]
    found = rows(shared, prices, resamples=settings.resamples, seed=settings.seed)
    table = tables.accuracy(found, f"all {len(scored)} suites", sets=len(sets))
    return table, {row.system.name: _row(row) for row in found}


def write(
    scored: Sequence[Scored], content: Mapping[str, Any], settings: SuiteComparison
) -> list[Path]:
    """results.json, and a picture of every suite."""
    settings.out.mkdir(parents=True, exist_ok=True)
    path = settings.out / "results.json"
    draft = path.with_suffix(".part")
    conventions = {
        "avg": "over all questions; macro: over sets of problems",
        "over_best": "less the best single agent, which every resample chooses anew",
        "ece": "10 bins [a, b), the last closed; valid confidences only",
        "money": "for a thousand answers",
    }
    whole = {**content, "conventions": conventions, "config": to_plain(settings)}
    draft.write_text(json.dumps(whole, indent=1), encoding="utf-8")
    draft.replace(path)
    pictures = [draw(one.rows, settings.out / f"{one.name}.png") for one in scored]
    return [path, *pictures]


def _systems(one: Answered, prices: Prices, settings: SuiteComparison) -> list[System]:
    threshold = ThresholdChoice(
        settings.threshold, settings.accuracy_loss, settings.cost_share, settings.fixed_threshold
    )
    found = list(systems(one.alone, prices=prices, threshold=threshold, workflows=one.workflows))
    if one.verifier:
        said = judgements(one.verifier, one.where, one.alone)
        found.append(verified(one.alone, said, one.verifier.asked.agent))
    return found


def _row(row: Row) -> dict[str, Any]:
    return {
        "label": row.system.label,
        "oracle": row.system.oracle,
        "avg": as_json(row.micro),
        "macro": as_json(row.macro),
        "over_best": as_json(row.over_best),
        "significant": row.marked,
        "tokens": plain_number(row.tokens),
        "money": row.money,
        "seconds": plain_number(row.seconds),
    }


def _value(score_Q: Any) -> float | None:
    return plain_number(float(np.nanmean(score_Q)) if not np.isnan(score_Q).all() else float("nan"))
