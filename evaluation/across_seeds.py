"""Systems that were trained with several seeds each: what is said of them together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from evaluation.evaluation import Row
from evaluation.metrics.bootstrap import Estimate
from evaluation.metrics.seeds import t_interval


@dataclass(frozen=True)
class Finished:
    """One run."""

    path: str
    seed: int
    after: Mapping[str, float | None]
    """Metric -> value on held-out problems."""
    tokens: float
    """Sampled by the roles that learn."""
    steps: Sequence[Mapping[str, float]]
    """What was logged of each training step."""
    evaluated: Sequence[Mapping[str, float]]
    """What was measured between steps; empty without ``--eval.every``."""


Systems = Mapping[str, Sequence[Finished]]


def over_seeds(runs: Sequence[Finished], metric: str) -> Estimate:
    """The metric's mean over runs."""
    return t_interval([_value(run, metric) for run in runs])


def difference(ours: Sequence[Finished], other: Sequence[Finished], metric: str) -> Estimate | None:
    """``ours - other``, seed by seed; None where their seeds differ."""
    by_seed = [{run.seed: _value(run, metric) for run in runs} for runs in (ours, other)]
    if by_seed[0].keys() != by_seed[1].keys():
        return None
    return t_interval([by_seed[0][seed] - by_seed[1][seed] for seed in sorted(by_seed[0])])


def as_json(systems: Systems, metrics: Sequence[str]) -> dict[str, Any]:
    """Every value behind the table; differences are from the first system."""
    first, *others = systems
    return {
        "systems": {
            name: {
                "runs": [run.path for run in runs],
                "seeds": [run.seed for run in runs],
                "tokens": [run.tokens for run in runs],
                "metrics": {
                    metric: {"values": [run.after.get(metric) for run in runs]}
                    | _plain(over_seeds(runs, metric))
                    for metric in metrics
                },
            }
            for name, runs in systems.items()
        },
        "differences": {
            f"{first} - {other}": {
                metric: _plain(found)
                for metric in metrics
                if (found := difference(systems[first], systems[other], metric)) is not None
            }
            for other in others
        },
    }


def table(systems: Systems, rows: Sequence[Row]) -> Table:
    """A line per metric, a column per system, and the first one's lead over each other."""
    first, *others = systems
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("mean over seeds, 95 % (t)")
    for name, runs in systems.items():
        shown.add_column(f"{name} ({len(runs)})", justify="right")
    for other in others:
        shown.add_column(f"{first} - {other}", justify="right")
    for row in rows:
        means = [_cell(over_seeds(runs, row.metric)) for runs in systems.values()]
        leads = [difference(systems[first], systems[other], row.metric) for other in others]
        changes = ["" if one is None else _cell(one, "+") for one in leads]
        shown.add_row(escape(row.label), *means, *changes)
    return shown


def draw(systems: Systems, curves: Sequence[str], path: Path) -> Path:
    """One panel per curve over the learners' tokens: runs thin, the mean of a system thick."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(curves), figsize=(3.2 * len(curves), 2.8), squeeze=False, layout="constrained"
    )
    for axis, curve in zip(axes[0], curves):
        for colour, (name, runs) in enumerate(systems.items()):
            lines = [line for run in runs if len((line := _line(run, curve))[0])]
            axis.plot([], [], color=f"C{colour}", label=name)
            for x, y in lines:
                axis.plot(x, y, color=f"C{colour}", linewidth=0.6, alpha=0.4)
            if lines:
                # A mean of fewer runs further on would jump where one ends.
                grid = np.linspace(max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines), 60)
                mean = np.mean([np.interp(grid, x, y) for x, y in lines], axis=0)
                axis.plot(grid, mean, color=f"C{colour}", linewidth=1.8)
        axis.set_title(curve.removeprefix("measured/"), fontsize=9)
        axis.set_xlabel("learners' tokens, thousands", fontsize=8)
        axis.tick_params(labelsize=8)
        axis.set_ylim(bottom=0)
    if len(systems) > 1:
        axes[0][0].legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


_TOKENS = "rollout/learner_tokens_total"


def _line(run: Finished, curve: str) -> tuple[Any, Any]:
    """Tokens in thousands and values, where there are any."""
    tokens = {int(line["step"]): line[_TOKENS] / 1000 for line in run.steps}
    lines = [line for line in (*run.steps, *run.evaluated) if line.get(curve) is not None]
    points = [(tokens[int(line["step"])], line[curve]) for line in lines]
    x, y = np.asarray(points, dtype=np.float64).reshape(-1, 2).T
    return x, y


def _value(run: Finished, metric: str) -> float:
    value = run.after.get(metric)
    return float("nan") if value is None else value


def _plain(found: Estimate) -> dict[str, Any]:
    low, high = (None if math.isnan(bound) else bound for bound in (found.low, found.high))
    return {"mean": None if math.isnan(found.value) else found.value, "interval": [low, high]}


def _cell(found: Estimate, sign: str = "") -> str:
    if math.isnan(found.value):
        return "undefined"
    if math.isnan(found.low):
        return f"{found.value:{sign}.3f}"
    return f"{found.value:{sign}.3f} ± {found.high - found.value:.3f}"
