"""Evaluation of ``corea-deferral``: accuracy, calibration, and the savings of the cascade.

The held-out problems are played once in mode ``responses``, where both roles answer everything.
Thresholds are then applied to the stored responses (COREA, arXiv:2603.03752, section 5.2). The
threshold of each half of the questions is chosen on the other half.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from coterie.datatypes import Episode, Problem, Trajectory
from coterie.envs.corea_deferral.settings import CoreaDeferralSettings
from coterie.evaluation.cascade import (
    Cascade,
    Deferral,
    ThresholdChoice,
    measure,
    scored_responses,
)
from coterie.evaluation.evaluation import Dots, Evaluation, Outcomes, Picture, Play, Resampled, Row
from coterie.evaluation.metrics.calibration import bin_index
from coterie.evaluation.metrics.intervals import resampled_means
from coterie.evaluation.metrics.means import Floats, as_floats
from coterie.evaluation.report_labels import Mark, Phase, ReportLabels, Tag

Table = list[list[float | None]]


async def examine(
    play: Play, problems: Sequence[Problem], roles: Sequence[str], settings: CoreaDeferralSettings
) -> Outcomes:
    """Play the problems; return both roles' responses."""
    episodes = await play(problems, mode="responses")
    return {
        "problems": [problem.id for problem in problems],
        "solvable": [bool(problem.meta.get("solvable", True)) for problem in problems],
        "responses": {role: responses(episodes, role) for role in roles},
        "size_ratio": settings.size_ratio,
        "output_weight": settings.output_weight,
        "threshold": {
            "source": settings.threshold_source,
            "accuracy_loss": settings.accuracy_loss,
            "cost_share": settings.cost_share,
            "fixed": settings.threshold,
            "on_test": settings.threshold_on_test,
        },
    }


def responses(episodes: Sequence[Episode], role: str) -> dict[str, Table]:
    """Return one role's responses by problem; None for failed traces and invalid confidences."""
    rows = [[row for row in episode.trajectories if row.role == role] for episode in episodes]

    def table(read: Callable[[Trajectory], float | None]) -> Table:
        return [
            [read(row) if row.status == "ok" else None for row in episode_rows]
            for episode_rows in rows
        ]

    return {
        "correct": table(lambda row: float(bool(row.info["correct"]))),
        "confidence": table(lambda row: row.info["confidence"]),
        "prompt": table(lambda row: float(row.turns[0][0])),
        "output": table(lambda row: float(row.mask.sum())),
    }


def estimate(outcomes: Outcomes, resamples: int, seed: int) -> dict[str, Resampled]:
    """Return every metric with its bootstrap over problems; ``.../solvable`` only over problems
    that the generator marks as solvable."""
    (small_role, small_stored), (large_role, large_stored) = outcomes["responses"].items()
    weight = outcomes["output_weight"]
    small = scored_responses(small_stored, size_ratio=1.0, output_weight=weight)
    large = scored_responses(large_stored, size_ratio=outcomes["size_ratio"], output_weight=weight)
    choice = ThresholdChoice(**outcomes["threshold"])
    cascade = Cascade(small, large, small.confidence_QS)

    def measure_on(chosen: Cascade) -> dict[str, Resampled]:
        deferral = Deferral(chosen, chosen.defer(chosen.thresholds(choice)))
        metrics = measure(deferral, resamples=resamples, seed=seed)
        return _rename(metrics, small_role, large_role)

    measured = measure_on(cascade)
    solvable_Q = np.asarray(outcomes["solvable"], dtype=bool)
    if solvable_Q.any() and not solvable_Q.all():
        knowable = measure_on(cascade.of(solvable_Q))
        measured |= {f"{name}/solvable": value for name, value in knowable.items()}
    stated_Q = np.where(np.isnan(small.confidence_QS), 0.0, small.confidence_QS).mean(axis=1)
    means_R = resampled_means(stated_Q[:, None], resamples=resamples, seed=seed)[:, 0]
    measured["confidence"] = Resampled(float(stated_Q.mean()), means_R, len(stated_Q))
    return measured


def rows(roles: Sequence[str]) -> list[Row]:
    """Return the rows of the table at the end of a run."""
    small, large = roles
    return [
        Row(f"Pass@1 {small}", f"pass@1/{small}"),
        Row(f"Pass@1 {large}", f"pass@1/{large}", "neither"),
        Row("Mean confidence", "confidence", "neither"),
        Row("ECE, 10 bins [a, b)", "ece", "lower"),
        Row("AUROC", "auroc"),
        Row("AUROC, solvable", "auroc/solvable"),
        Row("Cascade accuracy", "accuracy"),
        Row("Deferred", "deferred", "neither"),
        Row("Over random deferral", "random_gain"),
        Row("Cost saved", "saving"),
        Row("Accuracy lost", "loss", "lower"),
    ]


def headline(roles: Sequence[str]) -> list[str]:
    """Return the metrics of the progress bar."""
    return [f"measured/{roles[0]}/correct", f"measured/{roles[0]}/confidence"]


def pictures(outcomes: Mapping[str, Outcomes]) -> list[Picture]:
    """Return the report's picture of the small model's calibration."""
    sets: list[tuple[str, list[tuple[float, float, float]]]] = []
    for name, measured in outcomes.items():
        small = next(iter(measured["responses"].values()))
        stated, right = (as_floats(small[key]).ravel() for key in ("confidence", "correct"))
        sets.append((name, _by_bin(stated, right)))
    return [
        Dots(
            "Stated confidence against what is right",
            "One dot a tenth of confidence; its area is the share of answers. On the diagonal a "
            "model is as often right as it says.",
            "stated confidence",
            "share right",
            sets,
        )
    ]


def _by_bin(stated_N: Floats, right_N: Floats) -> list[tuple[float, float, float]]:
    """(mean confidence, share right, share of answers) of each bin with answers."""
    kept_N = ~(np.isnan(stated_N) | np.isnan(right_N))
    stated_N, right_N = stated_N[kept_N], right_N[kept_N]
    bin_N = bin_index(stated_N)
    return [
        (
            float(stated_N[bin_N == index].mean()),
            float(right_N[bin_N == index].mean()),
            float((bin_N == index).mean()),
        )
        for index in np.unique(bin_N)
    ]


def _rename(measured: dict[str, Resampled], small: str, large: str) -> dict[str, Resampled]:
    names = {"accuracy_small": f"pass@1/{small}", "accuracy_large": f"pass@1/{large}"}
    return {
        names.get(name, name): value for name, value in measured.items() if name != "cost_large"
    }


LABELS = ReportLabels(
    tags=(Tag("deferred", "the problem was deferred to the large model", (("deferred", True),)),),
    marks=(
        Mark("deferred", True, "deferred", "warn"),
        Mark("stated", False, "no confidence stated", "warn"),
    ),
    phases=(
        Phase("deferred", "First answers"),
        Phase("stated", "Answers to what was deferred"),
    ),
)
EVALUATION = Evaluation(
    examine=examine,
    estimate=estimate,
    rows=rows,
    headline=headline,
    pictures=pictures,
    answers=lambda roles, own: len(roles) * own.eval_traces,
    labels=LABELS,
)
