"""Pictures of comparisons, as a paper would print them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from coterie.comparison.corea_systems import SYSTEMS
from coterie.comparison.figures import Figures
from coterie.comparison.output import figure_cell
from coterie.comparison.systems import Deferral
from coterie.datatypes import UserError
from coterie.evaluation.evaluation import Resampled
from coterie.evaluation.metrics.calibration import bin_index, expected_calibration_error
from coterie.evaluation.metrics.means import ratio

_BINS = 10
# Systems that are a point of accuracy against cost, with their markers.
_POINTS = {"llm": "s", "oracle": "*"}
_WIDTH = 3.2


@contextmanager
def drawing(path: Path, rows: int = 1, columns: int = 1, **more: Any) -> Iterator[Any]:
    """The axes of a picture that is written to ``path``.

    Raises:
        UserError: the disk does not take it.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(rows, columns, **more)
    yield axes
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, bbox_inches=None if "layout" in more else "tight")
    except OSError as error:
        raise UserError(
            f"the picture {path} cannot be written ({error.strerror}); its figures are in the JSON "
            "file beside it"
        ) from None
    finally:
        plt.close(figure)


def draw_rows(found: Sequence[Figures], path: Path, title: str) -> Path:
    """Accuracy with its interval beside the tokens of one answer, the best on top; coloured by
    whose answers they are, grey where several policies answer; oracles apart, hollow, below."""
    shown = rows_by_rank(found)
    agents = sorted({name for one in shown if (name := _whose(one))})
    size = (10, 1.5 + 0.32 * len(shown))
    with drawing(path, 1, 2, figsize=size, sharey=True, width_ratios=(3, 2)) as (left, right):
        oracles = sum(one.system.oracle for one in shown)
        for place, one in enumerate(shown):
            # A gap keeps what looks at the gold answer apart.
            y = -place - 0.6 * one.system.oracle
            colour = f"C{agents.index(_whose(one)) % 10}" if _whose(one) else "0.45"
            face = "none" if one.system.oracle else colour
            left.hlines(y, one.micro.low, one.micro.high, color=colour)
            left.plot(one.micro.value, y, "o", color=colour, markerfacecolor=face)
            value = f"{one.micro.value:.3f}"
            left.annotate(value, (1.04, y), va="center", fontsize=8, annotation_clip=False)
            right.barh(y, one.tokens, color=face, edgecolor=colour)
            tokens = f" {one.tokens:,.0f}"
            right.annotate(tokens, (one.tokens, y), va="center", fontsize=8)
        places = [-place - 0.6 * one.system.oracle for place, one in enumerate(shown)]
        left.set_yticks(places, [one.system.label for one in shown], fontsize=8)
        if 0 < oracles < len(shown):
            for axis in (left, right):
                axis.axhline(-(len(shown) - oracles) + 0.2, color="0.7", linewidth=1)
        left.set_xlim(-0.02, 1.14)
        left.set_xticks(np.linspace(0, 1, 6))
        left.set_xlabel("right, 95 % intervals over questions; hollow: looks at the gold answer")
        left.grid(axis="x", alpha=0.3)
        left.set_title(title, fontsize=11, loc="left")
        right.margins(x=0.22)
        right.set_xlabel("tokens sampled for one answer")
    return path


def rows_by_rank(found: Sequence[Figures]) -> list[Figures]:
    """The best first, oracles behind all others."""
    return sorted(found, key=lambda one: (one.system.oracle, -one.micro.value))


def _whose(one: Figures) -> str:
    """The only policy that answers; empty where several do."""
    return next(iter(one.system.used)) if len(one.system.used) == 1 else ""


def draw_bars(found: Mapping[str, Resampled], path: Path, x_label: str) -> Path:
    """A bar per system with its interval."""
    labels = list(found)[::-1]
    # A bootstrap interval need not hold its own value.
    low = [max(0.0, found[label].value - found[label].low) for label in labels]
    high = [max(0.0, found[label].high - found[label].value) for label in labels]
    with drawing(path, figsize=(6, 0.8 + 0.35 * len(labels))) as axis:
        values = [found[label].value for label in labels]
        axis.barh(labels, values, xerr=[low, high], color="C0", ecolor="0.3", capsize=2)
        axis.set_xlim(0, 1)
        axis.set_xlabel(x_label)
    return path


def draw_matrix(
    cells: Mapping[tuple[str, ...], float], seats: Sequence[str], path: Path, meaning: str
) -> Path:
    """A cell for every pairing: who has the first seat in a line, all others in a column."""
    rows = list(dict.fromkeys(names[0] for names in cells))
    columns = list(dict.fromkeys(names[1:] for names in cells))
    values = np.array([[cells[row, *column] for column in columns] for row in rows])
    size = (2.2 + 0.8 * len(columns), 1.6 + 0.6 * len(rows))
    with drawing(path, figsize=size) as axis:
        shown = axis.imshow(values, cmap="viridis", aspect="auto")
        middle = (np.nanmin(values) + np.nanmax(values)) / 2
        for row, line in enumerate(values):
            for column, value in enumerate(line):
                colour = "black" if value > middle else "white"
                text = figure_cell(float(value))
                axis.text(column, row, text, ha="center", va="center", color=colour)
        labels = [" + ".join(some) for some in columns]
        axis.set_xticks(range(len(columns)), labels, rotation=30, ha="right")
        axis.set_yticks(range(len(rows)), rows)
        axis.set_xlabel(" + ".join(seats[1:]))
        axis.set_ylabel(seats[0])
        axis.set_title(meaning, fontsize=9)
        axis.figure.colorbar(shown)
    return path


def draw_cascades(systems: Mapping[str, Deferral], folder: Path) -> list[Path]:
    """Every picture that these systems have; gives the files."""
    pictures = {
        "reliability.png": draw_reliability,
        "accuracy_cost.png": draw_accuracy_cost,
        "threshold.png": draw_threshold,
    }
    paths = {folder / name: draw for name, draw in pictures.items()}
    return [path for path, draw in paths.items() if draw(systems, path)]


def draw_reliability(systems: Mapping[str, Deferral], path: Path) -> bool:
    """Observed accuracy in each bin of confidence; the area of a dot is the share of responses."""
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
        axes[0][0].set_ylabel("observed accuracy")
    return True


def draw_accuracy_cost(systems: Mapping[str, Deferral], path: Path) -> bool:
    """Every cascade's curve over thresholds, and the threshold that was chosen."""
    drawn = {name: one for name, one in systems.items() if one.threshold_Q is not None}
    if not drawn and not set(systems) & set(_POINTS):
        return False
    with drawing(path, figsize=(6.4, 4.4)) as axis:
        for place, (name, one) in enumerate(drawn.items()):
            curve = one.cascade.curve()
            bold = name == "corea"
            colour = f"C{place % 10}"
            axis.plot(
                curve.cost_D,
                curve.accuracy_D,
                label=SYSTEMS[name],
                color=colour,
                linewidth=2.2 if bold else 1,
                linestyle="-" if place < 10 else "--",
                zorder=4 if bold else 3,
            )
            cost, accuracy = _at(one)
            axis.plot(cost, accuracy, marker="o" if bold else ".", color=colour, zorder=5)
        for name, marker in _POINTS.items():
            if name in systems:
                cost, accuracy = _at(systems[name])
                style = {"marker": marker, "color": "black", "linestyle": "none"}
                axis.plot(cost, accuracy, label=SYSTEMS[name], **style)
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
        axis.legend(fontsize=7, loc="lower right")
    return True


def draw_threshold(systems: Mapping[str, Deferral], path: Path) -> bool:
    """Deferral and accuracy of COREA against its threshold."""
    corea = systems.get("corea")
    if corea is None or corea.threshold_Q is None:
        return False
    curve = corea.cascade.curve()
    with drawing(path, figsize=(5.4, 3.6)) as axis:
        for values_D, label, colour in (
            (curve.deferred_D, "share deferred", "C1"),
            (curve.accuracy_D, "accuracy", "C0"),
        ):
            axis.step(curve.threshold_D, values_D, where="pre", label=label, color=colour)
        axis.axhline(curve.accuracy_large, color="0.6", linewidth=1, label="LLM alone")
        for chosen in np.unique(corea.threshold_Q):
            axis.axvline(chosen, color="C3", linestyle=":", label="chosen on the other half")
        axis.set_xlabel("threshold")
        axis.set_ylim(-0.02, 1.02)
        handles, labels = axis.get_legend_handles_labels()
        unique = dict(zip(labels, handles))
        axis.legend(unique.values(), unique.keys(), fontsize=8)
    return True


def _at(one: Deferral) -> tuple[float, float]:
    """Cost and accuracy of a cascade as it defers."""
    cascade = one.cascade
    cost_QS = one.mixed(cascade.kept_cost_QS, cascade.deferred_cost_QS)
    right_QS = one.mixed(cascade.small.correct_QS, cascade.large.correct_QS)
    return float(cost_QS.mean()), float(right_QS.mean())
