"""Evaluation of ``core-teaching``: cold Pass@k of each role and of the team, and rescues.

The held-out problems are played twice. ``eval``: every trace is cold. ``probe``: as in training,
but half of the second tries see no hint, as a control of the rescue rate (CoRe, arXiv:2601.21600,
section 5.2, with the unhinted control added).
"""

# B traces of one question

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.datatypes import Episode, Problem
from coterie.envs.core_teaching.settings import CoreTeachingSettings
from coterie.evaluation.evaluation import (
    Bars,
    Evaluation,
    Outcomes,
    Picture,
    Play,
    Resampled,
    Row,
    column_means,
    with_derived,
)
from coterie.evaluation.metrics.means import Floats, as_floats, mean_present, ratio
from coterie.evaluation.metrics.passk import pass_columns
from coterie.evaluation.report_labels import Mark, Phase, ReportLabels, Tag
from coterie.rewards.rescue import COLD, HINT, hint_lift, hint_outcomes, rescue_candidates


@dataclass(frozen=True)
class HintCounts:
    """Effects of the hints of one question; counts of second-round traces."""

    eligible: int
    """Saw a hint after their role failed cold and a peer succeeded (CoRe, arXiv:2601.21600)."""
    rescued: int
    """Eligible traces that are right."""
    retried: int
    """Would be eligible, but chance withheld the available hint."""
    recovered: int
    """Retried traces that are right, by chance and regression to the mean."""
    helped: int
    """Saw a hint and did better than their role's cold rate."""
    hurt: int
    """Saw a hint and did worse."""
    neutral: int
    """Saw a hint and did the same."""


def hint_counts(
    correct_B: npt.ArrayLike,
    hinted_B: npt.ArrayLike,
    role_B: npt.ArrayLike,
    round_B: npt.ArrayLike,
    control_B: npt.ArrayLike,
) -> HintCounts:
    """Count the effects of hints over one question's traces.

    Rounds are those of :mod:`coterie.rewards.rescue`. ``control_B`` marks traces that would be
    eligible if they had seen the available hint. Chance decides for each trace whether it sees the
    hint, so eligible traces and controls come from the same questions. Questions without a hint
    have no controls.
    """
    correct_B = np.asarray(correct_B, dtype=bool)
    hinted_B = np.asarray(hinted_B, dtype=bool)
    role_B, round_B = np.asarray(role_B), np.asarray(round_B)
    eligible_B = rescue_candidates(correct_B, hinted_B, role_B, round_B)
    withheld_B = np.asarray(control_B, dtype=bool)
    outcomes = np.array(hint_outcomes(hint_lift(correct_B, hinted_B, role_B, round_B)), object)
    return HintCounts(
        eligible=int(eligible_B.sum()),
        rescued=int((eligible_B & correct_B).sum()),
        retried=int(withheld_B.sum()),
        recovered=int((withheld_B & correct_B).sum()),
        helped=int((outcomes == "helped").sum()),
        hurt=int((outcomes == "hurt").sum()),
        neutral=int((outcomes == "neutral").sum()),
    )


# Q problems, R resamples

_KS = (1, 2)
_COUNTS = ("eligible", "rescued", "retried", "recovered", "helped", "hurt", "neutral")


async def examine(
    play: Play, problems: Sequence[Problem], roles: Sequence[str], settings: CoreTeachingSettings
) -> Outcomes:
    """Play the problems in both modes; return correctness and hint counts by problem."""
    cold = await play(problems, mode="eval")
    probed = await play(problems, mode="probe") if settings.probed else []
    return {
        "problems": [problem.id for problem in problems],
        "correct": {role: [_correct(episode, role) for episode in cold] for role in roles},
        "hints": [[getattr(counts, name) for name in _COUNTS] for counts in map(_counts, probed)],
        "leaked": [_share(episode, "leak") for episode in probed],
    }


def estimate(outcomes: Outcomes, resamples: int, seed: int) -> dict[str, Resampled]:
    """Return every metric with its bootstrap over problems."""
    roles = list(outcomes["correct"])
    columns = pass_columns(outcomes["correct"], _KS)
    questions = len(outcomes["problems"])
    hints_QC = as_floats(outcomes["hints"] or np.zeros((questions, len(_COUNTS))))
    columns |= {name: hints_QC[:, i] for i, name in enumerate(_COUNTS)}
    columns["leak_rate"] = as_floats(outcomes["leaked"] or [float("nan")] * questions)

    means = column_means(columns, resamples, seed)
    totals = dict(zip(_COUNTS, hints_QC.sum(axis=0).astype(int).tolist()))
    denominators = {
        "rescue_rate": totals["eligible"],
        "retry_rate": totals["retried"],
        "hint_lift": totals["helped"] + totals["hurt"] + totals["neutral"],
    }
    usual = means["team_pass@1"].count
    metrics = with_derived(
        means, partial(_derive, roles), lambda name: denominators.get(name, usual)
    )
    return {name: mean for name, mean in metrics.items() if name not in _COUNTS}


def _derive(roles: Sequence[str], mean: Mapping[str, Floats]) -> dict[str, Floats]:
    metrics: dict[str, Floats] = {}
    for k in _KS:
        team = mean[f"team_pass@{k}"]
        best = np.max([mean[f"pass@{k}/{role}"] for role in roles], axis=0)
        metrics[f"both_wrong@{k}"] = 1.0 - team
        metrics[f"gain@{k}"] = team - best
    metrics["rescue_rate"] = ratio(mean["rescued"], mean["eligible"])
    metrics["retry_rate"] = ratio(mean["recovered"], mean["retried"])
    metrics["rescue_advantage"] = metrics["rescue_rate"] - metrics["retry_rate"]
    hinted = mean["helped"] + mean["hurt"] + mean["neutral"]
    metrics["hint_lift"] = ratio(mean["helped"] - mean["hurt"], hinted)
    return metrics


def rows(roles: Sequence[str]) -> list[Row]:
    """Return the rows of the table at the end of a run."""
    wrong = "Both wrong" if len(roles) == 2 else "All wrong"
    return [
        *(Row(f"Pass@{k} {role}", f"pass@{k}/{role}") for k in _KS for role in roles),
        *(Row(f"Team Pass@{k}", f"team_pass@{k}") for k in _KS),
        *(Row(f"{wrong} @{k}", f"both_wrong@{k}", "lower") for k in _KS),
        *(Row(f"Over best @{k}", f"gain@{k}", "neither") for k in _KS),
        Row("Hinted rescue", "rescue_rate"),
        Row("Unhinted retry", "retry_rate"),
        Row("Hint leaks", "leak_rate", "lower"),
    ]


def pictures(outcomes: Mapping[str, Outcomes]) -> list[Picture]:
    """Return the report's picture of which role solves which problems."""
    return [
        Bars(
            "Who solves what",
            "Share of held-out problems, one cold trace of each role. What one role alone solves "
            "is what the others can learn from it.",
            [(name, _overlap(measured["correct"])) for name, measured in outcomes.items()],
        )
    ]


def _overlap(correct: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Expected share of problems for each set of right roles; given the problem, roles are
    independent."""
    rate_Q = {role: mean_present(as_floats(rows), axis=1) for role, rows in correct.items()}
    roles = list(rate_Q)
    parts: list[tuple[str, float]] = []
    for right in sorted(product((True, False), repeat=len(roles)), key=sum, reverse=True):
        factors = [rate_Q[role] if r else 1 - rate_Q[role] for role, r in zip(roles, right)]
        names = [role for role, r in zip(roles, right) if r]
        every = len(names) == len(roles) > 1
        label = "all" if every else " and ".join(names) + (" only" if names else "nobody")
        parts.append((label, float(mean_present(np.prod(factors, axis=0), axis=0))))
    return parts


def _correct(episode: Episode, role: str) -> list[int | None]:
    """1 or 0 for each cold trace of ``role``; None for failed ones."""
    return [
        int(bool(row.info["correct"])) if row.status == "ok" else None
        for row in episode.trajectories
        if row.role == role
    ]


def _counts(episode: Episode) -> HintCounts:
    rows = [row for row in episode.trajectories if row.status == "ok"]
    return hint_counts(
        [bool(row.info["correct"]) for row in rows],
        [bool(row.info["hinted"]) for row in rows],
        [row.role for row in rows],
        [COLD if row.info["round"] == "A" else HINT for row in rows],
        [bool(row.info["control"]) for row in rows],
    )


def _share(episode: Episode, name: str) -> float | None:
    """Share of the hinted traces with ``name``; None without hinted traces."""
    hinted = [row for row in episode.trajectories if row.status == "ok" and row.info["hinted"]]
    return float(np.mean([bool(row.info[name]) for row in hinted])) if hinted else None


LABELS = ReportLabels(
    tags=(
        Tag("rescued", "a hint turned a failure into a success", (("rescued", True),)),
        Tag("hurt", "a trace did worse for its hint", (("hint_outcome", "hurt"),)),
        Tag("leaked", "a hint states the answer", (("leak", True),)),
    ),
    marks=(
        Mark("hinted", True, "hinted"),
        Mark("control", True, "second try without a hint"),
        Mark("rescued", True, "rescued", "good"),
        Mark("hint_outcome", "hurt", "hurt by its hint", "bad"),
        Mark("hint_outcome", "helped", "helped by its hint", "good"),
        Mark("leak", True, "its hint states the answer", "warn"),
        Mark("teacher", True, "teacher"),
    ),
    phases=(
        Phase("round", "Round A: alone", "A"),
        Phase("round", "Round B: again, with or without a hint", "B"),
    ),
)
EVALUATION = Evaluation(
    examine=examine,
    estimate=estimate,
    rows=rows,
    pictures=pictures,
    answers=lambda roles, own: len(roles) * (own.k_cold + own.k_hinted) * (1 + own.probed),
    labels=LABELS,
)
