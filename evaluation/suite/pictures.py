"""A suite at a glance: what every way of answering is worth, and what it costs."""

from collections.abc import Sequence
from pathlib import Path

from evaluation.suite.figures import Row


def draw(rows: Sequence[Row], path: Path) -> Path:
    """Accuracy with its interval over the tokens of one answer; oracles are hollow."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = list(rows)[::-1]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 1.2 + 0.32 * len(shown)), sharey=True, width_ratios=(3, 2)
    )
    for place, row in enumerate(shown):
        low, high = row.micro.interval()
        colour = "0.6" if row.system.oracle else "C0"
        face = "none" if row.system.oracle else colour
        left.hlines(place, low, high, color=colour)
        left.plot(row.micro.value, place, "o", color=colour, markerfacecolor=face)
        right.barh(place, row.tokens, color=face, edgecolor=colour)
    left.set_yticks(range(len(shown)), [row.system.label for row in shown], fontsize=8)
    left.set_xlim(-0.02, 1.02)
    left.set_xlabel("right, 95 % intervals over questions; hollow: looks at the gold answer")
    left.grid(axis="x", alpha=0.3)
    right.set_xlabel("tokens sampled for one answer")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return path
