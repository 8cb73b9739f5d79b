"""Pictures of a comparison of cascades, as a paper would print them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.corea_systems import SYSTEMS, System
from evaluation.metrics.calibration import bin_index, expected_calibration_error
from evaluation.metrics.present import ratio

_BINS = 10
# Systems that are a point of accuracy against cost, with their markers.
_POINTS = {"llm": "s", "oracle": "*"}
_WIDTH = 3.2


def draw(systems: Sequence[System], folder: Path) -> list[Path]:
    """Write every picture that these systems have; gives the files."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    by_name = {system.name: system for system in systems}
    files: list[Path] = []
    for name, draw_one in (
        ("reliability.png", _reliability),
        ("accuracy_cost.png", _accuracy_cost),
        ("threshold.png", _threshold),
    ):
        figure = draw_one(plt, by_name)
        if figure is not None:
            figure.savefig(folder / name, dpi=200, bbox_inches="tight")
            plt.close(figure)
            files.append(folder / name)
    return files


def _reliability(plt: Any, systems: Mapping[str, System]) -> Any:
    """Observed accuracy in each bin of confidence; the area of a dot is the share of responses."""
    shown = [systems[name] for name in ("slm", "rlvr", "brier", "l1") if name in systems]
    if not shown:
        return None
    figure, axes = plt.subplots(
        1, len(shown), figsize=(_WIDTH * len(shown), _WIDTH), sharey=True, squeeze=False
    )
    for axis, system in zip(axes[0], shown):
        stated = system.cascade.score_QS.ravel()
        right = system.cascade.small.correct_QS.ravel()[~np.isnan(stated)]
        stated = stated[~np.isnan(stated)]
        index = bin_index(stated, _BINS)
        size = np.bincount(index, minlength=_BINS)
        accuracy = ratio(np.bincount(index, weights=right, minlength=_BINS), size)
        mean = ratio(np.bincount(index, weights=stated, minlength=_BINS), size)
        axis.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        axis.vlines(mean, np.fmin(accuracy, mean), np.fmax(accuracy, mean), color="C3", alpha=0.5)
        axis.scatter(mean, accuracy, s=8 + 400 * size / max(1, size.sum()), color="C0", zorder=3)
        error = expected_calibration_error(stated, right, bins=_BINS)
        axis.set_title(f"{SYSTEMS[system.name]}\nECE {error:.3f}", fontsize=10)
        axis.set_xlabel("stated confidence")
        axis.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), aspect="equal")
    axes[0][0].set_ylabel("observed accuracy")
    return figure


def _accuracy_cost(plt: Any, systems: Mapping[str, System]) -> Any:
    """Every cascade's curve over thresholds, and the threshold that was chosen."""
    if not any(s.threshold_Q is not None or s.name in _POINTS for s in systems.values()):
        return None
    figure, axis = plt.subplots(figsize=(6.4, 4.4))
    for place, system in enumerate(s for s in systems.values() if s.threshold_Q is not None):
        curve = system.cascade.curve()
        bold = system.name == "corea"
        colour = f"C{place % 10}"
        axis.plot(
            curve.cost_D,
            curve.accuracy_D,
            label=SYSTEMS[system.name],
            color=colour,
            linewidth=2.2 if bold else 1,
            linestyle="-" if place < 10 else "--",
            zorder=4 if bold else 3,
        )
        cost, accuracy = _at(system)
        axis.plot(cost, accuracy, marker="o" if bold else ".", color=colour, zorder=5)
    for name, marker in _POINTS.items():
        if name in systems:
            cost, accuracy = _at(systems[name])
            axis.plot(
                cost, accuracy, marker=marker, color="black", linestyle="none", label=SYSTEMS[name]
            )
    if corea := systems.get("corea"):
        curve = corea.cascade.curve()
        ends = [
            float(corea.cascade.kept_cost_QS.mean()),
            float(corea.cascade.deferred_cost_QS.mean()),
        ]
        axis.plot(
            ends, [curve.accuracy_small, curve.accuracy_large], color="0.7", label="random deferral"
        )
    axis.set_xlabel("cost per question (prompt tokens of the small model)")
    axis.set_ylabel("accuracy")
    axis.legend(fontsize=7, loc="lower right")
    return figure


def _threshold(plt: Any, systems: Mapping[str, System]) -> Any:
    """Deferral and accuracy of COREA against its threshold."""
    corea = systems.get("corea")
    if corea is None or corea.threshold_Q is None:
        return None
    curve = corea.cascade.curve()
    figure, axis = plt.subplots(figsize=(5.4, 3.6))
    axis.step(curve.threshold_D, curve.deferred_D, where="pre", label="share deferred", color="C1")
    axis.step(curve.threshold_D, curve.accuracy_D, where="pre", label="accuracy", color="C0")
    axis.axhline(curve.accuracy_large, color="0.6", linewidth=1, label="LLM alone")
    for chosen in np.unique(corea.threshold_Q):
        axis.axvline(chosen, color="C3", linestyle=":", label="chosen on the other half")
    axis.set_xlabel("threshold")
    axis.set_ylim(-0.02, 1.02)
    handles, labels = axis.get_legend_handles_labels()
    unique = dict(zip(labels, handles))
    axis.legend(unique.values(), unique.keys(), fontsize=8)
    return figure


def _at(system: System) -> tuple[float, float]:
    """Cost and accuracy of a system as it defers."""
    moved = system.deferred_QS.astype(float)
    cascade = system.cascade
    cost = cascade.kept_cost_QS + moved * (cascade.deferred_cost_QS - cascade.kept_cost_QS)
    right = cascade.small.correct_QS + moved * (cascade.large.correct_QS - cascade.small.correct_QS)
    return float(cost.mean()), float(right.mean())
