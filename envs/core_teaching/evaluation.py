"""Evaluation of ``core-teaching``: cold Pass@k of each role and of the team, and rescues.

The held-out problems are played twice. ``eval``: every trace is cold. ``probe``: as in training,
but half of the second tries see no hint, as a control of the rescue rate (CoRe, arXiv:2601.21600,
section 5.2, with the unhinted control added).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

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

# Q problems, R resamples

_KS = (1, 2)
_COUNTS = ("eligible", "rescued", "controls", "controls_correct", "helped", "hurt", "neutral")
"""What an episode counts of its second tries."""


async def examine(
    play: Play, problems: Sequence[Problem], roles: Sequence[str], settings: CoreTeachingSettings
) -> Outcomes:
    """Play the problems in both modes; return correctness and hint counts by problem."""
    cold = await play(problems, mode="eval")
    probed = await play(problems, mode="probe") if settings.probed else []
    return {
        "problems": [problem.id for problem in problems],
        "correct": {role: [_correct(episode, role) for episode in cold] for role in roles},
        "hints": [[episode.info.get(name, 0) for name in _COUNTS] for episode in probed],
        "leaked": [_leaked(episode) for episode in probed],
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
        "retry_rate": totals["controls"],
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
    metrics["retry_rate"] = ratio(mean["controls_correct"], mean["controls"])
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
        label = f"{' and '.join(names)} only" if names else "nobody"
        if len(names) == len(roles) > 1:
            label = "all"
        parts.append((label, float(mean_present(np.prod(factors, axis=0), axis=0))))
    return parts


def _correct(episode: Episode, role: str) -> list[int | None]:
    """1 or 0 for each cold trace of ``role``; None for failed ones."""
    return [
        int(bool(row.info["correct"])) if row.status == "ok" else None
        for row in episode.trajectories
        if row.role == role
    ]


def _leaked(episode: Episode) -> float | None:
    """Share of the hinted traces whose hint states the answer; None without hinted traces."""
    hinted = episode.info.get("hinted", 0)
    return episode.info["leaked"] / hinted if hinted else None


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
