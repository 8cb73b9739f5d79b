"""A comparison of cascades as a table and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from evaluation.corea_systems import SYSTEMS, System, at_budgets, curve_figures, measure_system
from evaluation.evaluation import Resampled
from evaluation.numbers import plain_number, plain_numbers, with_interval

Figures = dict[str, dict[str, Resampled]]
"""System -> metric -> value with its bootstrap."""


def figures(found: Sequence[System], *, resamples: int, seed: int) -> Figures:
    """Every system's metrics."""
    return {system.name: measure_system(system, resamples=resamples, seed=seed) for system in found}


def table(results: Figures, title: str) -> Table:
    """One line per system."""
    shown = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    shown.add_column("system")
    for heading in ("accuracy", "±", "ECE", "AUROC", "cost", "LLM", "over random", "saved"):
        shown.add_column(heading, justify="right")
    for name, measured in results.items():
        low, high = measured["accuracy"].interval()
        cascading = 0 < measured["deferred"].value < 1
        shown.add_row(
            SYSTEMS[name],
            f"{measured['accuracy'].value:.3f}",
            f"{(high - low) / 2:.3f}",
            f"{measured['ece'].value:.3f}",
            f"{measured['auroc'].value:.3f}",
            f"{measured['cost'].value:.0f}",
            f"{measured['deferred'].value:.0%}",
            f"{measured['random_gain'].value:+.3f}" if cascading else "",
            f"{measured['saving'].value:+.0%}",
        )
    return shown


def plain(results: Figures) -> dict[str, Any]:
    """Values and 95 % intervals as JSON data."""
    return {
        name: {metric: with_interval(one.value, one.interval()) for metric, one in measured.items()}
        for name, measured in results.items()
    }


def curves(found: Sequence[System]) -> dict[str, Mapping[str, Any]]:
    """Every system's curve over thresholds, and what the whole of it is worth."""
    drawn: dict[str, Mapping[str, Any]] = {}
    for system in found:
        if system.threshold_Q is not None:
            curve = system.cascade.curve()
            drawn[system.name] = {
                "threshold": curve.threshold_D.tolist(),
                "accuracy": curve.accuracy_D.tolist(),
                "cost": curve.cost_D.tolist(),
                "deferred": curve.deferred_D.tolist(),
                **{name: plain_number(value) for name, value in curve_figures(system).items()},
                "budgets": [plain_numbers(one) for one in at_budgets(system)],
            }
    return drawn
