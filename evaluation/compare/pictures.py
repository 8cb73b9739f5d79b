"""Pictures of comparisons in the style of a paper."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from coterie.datatypes import UserError
from coterie.evaluation.compare.suite_metrics import Figures
from coterie.evaluation.evaluation import Resampled
from coterie.evaluation.metrics.intervals import Estimate
from coterie.evaluation.metrics.passk import is_binary
from coterie.evaluation.table import figure_cell


@contextmanager
def drawing(path: Path, rows: int = 1, columns: int = 1, **more: Any) -> Iterator[Any]:
    """Yield the axes of a picture and write it to ``path``.

    Raises:
        UserError: the file cannot be written.
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


def draw_rows(rows: Sequence[Figures], path: Path, title: str) -> Path:
    """Plot accuracy or the mean score with its interval beside the tokens per answer, best system
    on top. The colour shows the answering policy, grey means several; oracles are hollow, in a
    group below."""
    shown = rows_by_rank(rows)
    agents = sorted({name for row in shown if (name := _whose(row))})
    size = (10, 1.5 + 0.32 * len(shown))
    with drawing(path, 1, 2, figsize=size, sharey=True, width_ratios=(3, 2)) as (left, right):
        oracles = sum(row.system.oracle for row in shown)
        ends = [(row.micro.value, row.micro.low, row.micro.high) for row in shown]
        # Rewards may lie outside of the unit interval.
        least, most = min(0.0, np.nanmin(ends)), max(1.0, np.nanmax(ends))
        width = most - least
        beside = most + 0.04 * width
        # A gap separates systems that use the gold answer.
        heights = [-index - 0.6 * row.system.oracle for index, row in enumerate(shown)]
        for y, row in zip(heights, shown):
            colour = f"C{agents.index(_whose(row)) % 10}" if _whose(row) else "0.45"
            face = "none" if row.system.oracle else colour
            left.hlines(y, row.micro.low, row.micro.high, color=colour)
            left.plot(row.micro.value, y, "o", color=colour, markerfacecolor=face)
            value = f"{row.micro.value:.3f}"
            left.annotate(value, (beside, y), va="center", fontsize=8, annotation_clip=False)
            right.barh(y, row.tokens, color=face, edgecolor=colour)
            tokens = f" {row.tokens:,.0f}"
            right.annotate(tokens, (row.tokens, y), va="center", fontsize=8)
        left.set_yticks(heights, [row.system.label for row in shown], fontsize=8)
        if 0 < oracles < len(shown):
            for axis in (left, right):
                axis.axhline(-(len(shown) - oracles) + 0.2, color="0.7", linewidth=1)
        left.set_xlim(least - 0.02 * width, most + 0.14 * width)
        if width == 1:
            left.set_xticks(np.linspace(0, 1, 6))
        answers = [row.system.responses for row in shown if row.system.responses]
        binary = all(is_binary(responses.correct_QN) for responses in answers)
        meaning = "right" if binary else "mean score"
        left.set_xlabel(
            f"{meaning}, 95 % intervals over questions; hollow: looks at the gold answer"
        )
        left.grid(axis="x", alpha=0.3)
        left.set_title(title, fontsize=11, loc="left")
        right.margins(x=0.22)
        right.set_xlabel("tokens sampled for one answer")
    return path


def rows_by_rank(rows: Sequence[Figures]) -> list[Figures]:
    """Rows with the best first; oracles follow all others."""
    return sorted(rows, key=lambda row: (row.system.oracle, -row.micro.value))


def _whose(row: Figures) -> str:
    """The only policy that answers; empty if several do."""
    return next(iter(row.system.used)) if len(row.system.used) == 1 else ""


def draw_bars(figures: Mapping[str, Resampled | Estimate], path: Path, x_label: str) -> Path:
    """Draw one bar per system with its interval."""
    with drawing(path, figsize=(6, 0.8 + 0.35 * len(figures))) as axis:
        _bars(axis, figures, range(len(figures)), ["C0"] * len(figures))
        axis.set_xlabel(x_label)
    return path


def draw_grouped_bars(
    panels: Mapping[str, Mapping[str, Resampled | Estimate]], path: Path, caption: str
) -> Path:
    """Draw a panel of bars with their intervals for each column of a table, two in a line.

    Args:
        panels: column -> row -> its figure; all columns have the same rows. A row is named
            ``KIND, GROUP`` or ``KIND``: bars of a kind have one colour, a gap separates groups.
        path: file of the picture.
        caption: explains bars and intervals.
    """
    rows = list(next(iter(panels.values())))
    kinds, groups = zip(*((row.partition(", ")[0], row.partition(", ")[2]) for row in rows))
    colours = {kind: f"C{index}" for index, kind in enumerate(dict.fromkeys(kinds))}
    gaps = np.cumsum([0, *(a != b for a, b in pairwise(groups))])
    heights = np.arange(len(rows)) + 0.7 * gaps
    wide = min(2, len(panels))
    high = -(-len(panels) // wide)
    size = (0.8 + 4.2 * wide, 0.8 + high * (0.7 + 0.28 * (heights[-1] + 1)))
    how = {"figsize": size, "sharey": True, "squeeze": False, "layout": "constrained"}
    with drawing(path, high, wide, **how) as axes:
        for axis in axes.flat[len(panels) :]:
            axis.remove()
        for axis, (column, figures) in zip(axes.flat, panels.items()):
            _bars(axis, figures, heights, [colours[kind] for kind in kinds])
            axis.set_title(column, fontsize=10, loc="left")
            axis.tick_params(labelsize=8)
        axes.flat[0].figure.supxlabel(caption, fontsize=9)
    return path


def _bars(
    axis: Any,
    figures: Mapping[str, Resampled | Estimate],
    heights: Iterable[float],
    colours: Sequence[str],
) -> None:
    """Draw bars from the top down, each with its interval and its figure."""
    labels, below = list(figures), [-height for height in heights]
    # A bootstrap interval need not contain the point estimate; one seed has none.
    low = [max(0.0, figures[label].value - figures[label].low) for label in labels]
    high = [max(0.0, figures[label].high - figures[label].value) for label in labels]
    values = [figures[label].value for label in labels]
    axis.barh(below, values, xerr=[low, high], color=colours, ecolor="0.3", capsize=2)
    axis.set_yticks(below, labels)
    axis.set_xlim(0, 1)


def draw_matrix(
    cells: Mapping[tuple[str, ...], float], seats: Sequence[str], path: Path, meaning: str
) -> Path:
    """Draw a cell per pairing: rows are the first seat, columns all other seats."""
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
        labels = [" + ".join(names) for names in columns]
        axis.set_xticks(range(len(columns)), labels, rotation=30, ha="right")
        axis.set_yticks(range(len(rows)), rows)
        axis.set_xlabel(" + ".join(seats[1:]))
        axis.set_ylabel(seats[0])
        axis.set_title(meaning, fontsize=9)
        axis.figure.colorbar(shown)
    return path
