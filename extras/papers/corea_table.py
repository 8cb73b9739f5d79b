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

    def cells(one: Mapping[str, Resampled]) -> list[str]:
        cascading = 0 < one["deferred"].value < 1
        return [
            f"{one['accuracy'].value:.3f}",
            f"{(one['accuracy'].high - one['accuracy'].low) / 2:.3f}",
            f"{one['ece'].value:.3f}",
            f"{one['auroc'].value:.3f}",
            f"{one['cost'].value:.0f}",
            f"{one['deferred'].value:.0%}",
            f"{one['random_gain'].value:+.3f}" if cascading else "",
            f"{one['saving'].value:+.0%}",
        ]

    headings = ("accuracy", "±", "ECE", "AUROC", "cost", "LLM", "over random", "saved")
    lines = [(SYSTEMS[name], cells(one)) for name, one in results.items()]
    return make_table(title, "system", headings, lines)
