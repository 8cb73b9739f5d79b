"""Pictures of COREA's comparison: reliability, accuracy against cost, thresholds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coterie.evaluation.cascade import Deferral
from coterie.evaluation.compare.pictures import drawing
from coterie.evaluation.metrics.calibration import bin_index, expected_calibration_error
from coterie.evaluation.metrics.means import ratio
from coterie.extras.papers.corea_systems import SYSTEMS, with_threshold

_BINS = 10
# Systems that are one point of accuracy against cost, with their markers.
_POINTS = {"llm": "s", "oracle": "*"}
_WIDTH = 3.2
# Of COREA's figure 2.
_LARGEST_THRESHOLD = 1.1


def draw_cascades(systems: Mapping[str, Deferral], folder: Path, *, sets: int) -> list[Path]:
    """Draw every picture that these systems allow; return the files. With several sets, the
    pictures say so."""
    pictures = {
        "reliability.png": _draw_reliability,
        "accuracy_cost.png": _draw_accuracy_cost,
        "threshold.png": _draw_threshold,
    }
    paths = {folder / name: draw for name, draw in pictures.items()}
    note = f"all questions of {sets} sets" if sets > 1 else ""
    return [path for path, draw in paths.items() if draw(systems, path, note)]


def _draw_reliability(systems: Mapping[str, Deferral], path: Path, note: str) -> bool:
    """Draw observed accuracy by bin of confidence; a dot's area is its share of responses."""
    shown = [name for name in ("slm", "rlvr", "brier", "l1") if name in systems]
    if not shown:
        return False
    size = (_WIDTH * len(shown), _WIDTH)
    with drawing(path, 1, len(shown), figsize=size, sharey=True, squeeze=False) as axes:
        for axis, name in zip(axes[0], shown):
            cascade = systems[name].cascade
            stated = cascade.score_QS.ravel()
            right = cascade.small.correct_QS.ravel()[~np.isnan(stated)]
            stated = stated[~np.isnan(stated)]
            index = bin_index(stated, _BINS)
            count = np.bincount(index, minlength=_BINS)
            accuracy = ratio(np.bincount(index, weights=right, minlength=_BINS), count)
            mean = ratio(np.bincount(index, weights=stated, minlength=_BINS), count)
            low, high = np.fmin(accuracy, mean), np.fmax(accuracy, mean)
            area = 8 + 400 * count / max(1, count.sum())
            axis.plot([0, 1], [0, 1], color="0.7", linewidth=1)
            axis.vlines(mean, low, high, color="C3", alpha=0.5)
            axis.scatter(mean, accuracy, s=area, color="C0", zorder=3)
            error = expected_calibration_error(stated, right, bins=_BINS)
            axis.set_title(f"{SYSTEMS[name]}\nECE {error:.3f}", fontsize=10)
            axis.set_xlabel("stated confidence")
            axis.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), aspect="equal")
        axes[0][0].set_ylabel("observed accuracy" + (f"\n{note}" if note else ""))
    return True


def _draw_accuracy_cost(systems: Mapping[str, Deferral], path: Path, note: str) -> bool:
    """Draw every cascade's curve over thresholds, with the chosen threshold."""
    drawn = with_threshold(systems)
    if not drawn and not set(systems) & set(_POINTS):
        return False
    with drawing(path, figsize=(6.4, 4.4)) as axis:
        for index, (name, deferral) in enumerate(drawn.items()):
            curve, style = deferral.cascade.curve(), _style(index, name)
            axis.plot(curve.cost_D, curve.accuracy_D, **style)
            marker = "o" if name == "corea" else "."
            axis.plot(*_at(deferral), marker=marker, color=style["color"], zorder=5)
        for name, marker in _POINTS.items():
            if name in systems:
                style = {"marker": marker, "color": "black", "linestyle": "none"}
                axis.plot(*_at(systems[name]), label=SYSTEMS[name], **style)
        if corea := systems.get("corea"):
            curve = corea.cascade.curve()
            ends = [
                float(corea.cascade.kept_cost_QS.mean()),
                float(corea.cascade.deferred_cost_QS.mean()),
            ]
            accuracies = [curve.accuracy_small, curve.accuracy_large]
            axis.plot(ends, accuracies, color="0.7", label="random deferral")
        axis.set_xlabel("cost per question (prompt tokens of the small model)")
        axis.set_ylabel("accuracy")
        axis.legend(title=note, fontsize=7, title_fontsize=7, loc="lower right")
    return True


def _draw_threshold(systems: Mapping[str, Deferral], path: Path, note: str) -> bool:
    """Draw accuracy, cost and deferral of every cascade against its threshold (COREA, figure 2)."""
    drawn = with_threshold(systems)
    if not drawn:
        return False
    with drawing(path, 1, 3, figsize=(13, 4)) as axes:
        for index, (name, deferral) in enumerate(drawn.items()):
            curve, style = deferral.cascade.curve(), _style(index, name)
            for axis, values_D in zip(axes, (curve.accuracy_D, curve.cost_D, curve.deferred_D)):
                axis.step(curve.threshold_D, values_D, where="pre", **style)
        chosen = drawn.get("corea", next(iter(drawn.values()))).threshold_Q
        for axis, label in zip(axes, ("accuracy", "cost per question", "share deferred")):
            for threshold in np.unique(np.asarray(chosen)):
                axis.axvline(threshold, color="0.4", linestyle="--", linewidth=1)
            axis.set_xlabel("threshold; dashed: chosen")
            axis.set_ylabel(label)
            axis.set_xlim(-0.02, _LARGEST_THRESHOLD + 0.02)
        axes[0].axhline(
            next(iter(drawn.values())).cascade.large.correct_QS.mean(), color="0.6", linewidth=1
        )
        axes[-1].legend(title=note, fontsize=6, title_fontsize=6)
    return True


def _style(index: int, name: str) -> dict[str, Any]:
    """The line of a cascade; COREA's is bold."""
    bold = name == "corea"
    return {
        "label": SYSTEMS[name],
        "color": f"C{index % 10}",
        "linewidth": 2.2 if bold else 1,
        "linestyle": "-" if index < 10 else "--",
        "zorder": 4 if bold else 3,
    }


def _at(deferral: Deferral) -> tuple[float, float]:
    """(cost, accuracy) of a cascade at its chosen threshold."""
    return float(deferral.cost_QS.mean()), float(deferral.correct_QS.mean())
