"""The table of COREA's comparison: one line per system."""

from collections.abc import Mapping

from rich.table import Table

from coterie.comparison.output import make_table
from coterie.evaluation.evaluation import Resampled
from coterie.extras.papers.corea_systems import SYSTEMS

Measured = Mapping[str, Mapping[str, Resampled]]
"""System -> metric -> value with its bootstrap resamples."""


def table(results: Measured, title: str) -> Table:
    """Build the table, one line per system."""

    def cells(metrics: Mapping[str, Resampled]) -> list[str]:
        cascading = 0 < metrics["deferred"].value < 1
        return [
            f"{metrics['accuracy'].value:.3f}",
            f"{(metrics['accuracy'].high - metrics['accuracy'].low) / 2:.3f}",
            f"{metrics['ece'].value:.3f}",
            f"{metrics['auroc'].value:.3f}",
            f"{metrics['cost'].value:.0f}",
            f"{metrics['deferred'].value:.0%}",
            f"{metrics['random_gain'].value:+.3f}" if cascading else "",
            f"{metrics['saving'].value:+.0%}",
        ]

    headings = ("accuracy", "±", "ECE", "AUROC", "cost", "LLM", "over random", "saved")
    lines = [(SYSTEMS[name], cells(metrics)) for name, metrics in results.items()]
    return make_table(title, "system", headings, lines)
