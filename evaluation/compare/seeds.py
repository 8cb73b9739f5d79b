"""Runs of several seeds: ``python benchmark.py seeds --systems "EAPO=runs/e*" "RL=runs/rl*"``."""

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coterie import envs
from coterie.cli.arguments import command
from coterie.cli.output_paths import check_folder
from coterie.datatypes import UserError, fits
from coterie.evaluation import evaluation_of
from coterie.evaluation.compare.output import show_written, write_json
from coterie.evaluation.compare.paired import read_choice, went_on
from coterie.evaluation.compare.pictures import drawing
from coterie.evaluation.evaluation import Row
from coterie.evaluation.json_values import as_json
from coterie.evaluation.metrics.intervals import Estimate, t_interval
from coterie.evaluation.metrics.means import Floats
from coterie.evaluation.table import make_table, mean_over_seeds
from coterie.training.run.directory import EVALUATIONS, METRICS, RunDirectory

_TOKENS = "rollout/learner_tokens_total"
_Values = dict[str, float | None]
"""Metric -> value; None if it was not measured."""
_Line = tuple[Floats, Floats]
"""(x, y) of a curve."""
_FEW = 24
"""A curve with at most this many points gets a marker per point."""
_EARLIER = {"before": "before", "warmed_up": "warmed up"}
"""Earlier moments in a run's summary -> their names in the table."""


@dataclass(frozen=True)
class Finished:
    """A finished run."""

    path: str
    seed: int
    after: Mapping[str, float | None]
    """Metric -> value on held-out problems."""
    tokens: float
    """Tokens sampled by the learning roles."""
    steps: Sequence[Mapping[str, float]]
    """Logged metrics of each training step."""
    evaluated: Sequence[Mapping[str, float]]
    """Evaluations between steps; empty without ``--eval.every``."""
    earlier: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    """Earlier moment -> its metrics."""


Systems = Mapping[str, Sequence[Finished]]


@dataclass(frozen=True)
class SeedsComparison:
    """Means over seeds, paired differences and learning curves of finished runs."""

    systems: tuple[str, ...]
    """NAME=RUN,RUN,...: runs that differ in their seed; * stands for any characters. The first
    system is the baseline of the others."""
    curves: tuple[str, ...] = ()
    """Metrics to draw over training; default: those of the progress bar, and the table's first with
    --eval.every."""
    out: Path = Path("runs/seeds")
    """Folder for seeds.json and seeds.png."""


def compare(settings: SeedsComparison) -> None:
    """Read the runs, print the table, write results and picture.

    Raises:
        UserError: a run that has not ended or is named twice, runs of different environments, or
            two runs of a system with the same seed.
    """
    check_folder(settings.out, "--out", files=("seeds.json", "seeds.png"))
    named = [_paths(text) for text in settings.systems]
    if not named:
        raise UserError("--systems: write NAME=RUN,RUN, once or more")
    systems = {name: [_run(path) for path in paths] for name, paths in named}
    if len(systems) < len(named):
        raise UserError("--systems: two systems have the same name")
    choices = [read_choice(path) for _, paths in named for path in paths]
    environments = {choice["env"] for choice in choices}
    if len(environments) > 1:
        raise UserError(f"these runs are of different environments: {', '.join(environments)}")
    for name, runs in systems.items():
        _check_seeds(name, runs)
    choice = choices[0]
    evaluation = evaluation_of(envs.spec(choice["env"]))
    measured = [run.after for runs in systems.values() for run in runs]
    rows = evaluation.table(choice["roles"], *measured)
    evaluated = any(run.evaluated for runs in systems.values() for run in runs)
    curves = settings.curves or (
        *evaluation.headline(choice["roles"]),
        *([f"eval/{rows[0].metric}"] if rows and evaluated else []),
    )
    first, *others = systems
    lines = [(escape(row.label), _cells(systems, row.metric)) for row in rows]
    headings = [f"{name} ({len(runs)})" for name, runs in systems.items()]
    headings += [f"{first} - {other}" for other in others]
    console = Console()
    console.print(make_table("", "mean over seeds, 95 % (t)", headings, lines))
    for name, runs in systems.items():
        if moments := _moments(runs):
            console.print("", _course_table(name, runs, moments, rows))
    content = _content(systems, [row.metric for row in rows])
    results = write_json(settings.out / "seeds.json", content)
    picture = draw(systems, curves, settings.out / "seeds.png")
    show_written(console, results, picture)


def _check_seeds(name: str, runs: Sequence[Finished]) -> None:
    """Refuse two runs of one seed: a mean over seeds counts it once, and pairs are of one run."""
    of_seed: dict[int, Finished] = {}
    for run in runs:
        first = of_seed.setdefault(run.seed, run)
        if first is not run:
            raise UserError(
                f"--systems {name}: {first.path} and {run.path} have the same seed, {run.seed}; "
                "leave out one of them"
            )


def over_seeds(runs: Sequence[Finished], metric: str, when: str = "after") -> Estimate:
    """The mean of a metric over runs, after training or at an earlier moment."""
    return t_interval([_value(run, metric, when) for run in runs])


def lead(ours: Sequence[Finished], other: Sequence[Finished], metric: str) -> Estimate | None:
    """Mean of ``ours - other`` over the seeds that both have; None if there are none."""
    our_values, other_values = (
        {run.seed: _value(run, metric) for run in runs} for runs in (ours, other)
    )
    common = sorted(our_values.keys() & other_values.keys())
    if not common:
        return None
    return t_interval([our_values[seed] - other_values[seed] for seed in common])


def _cells(systems: Systems, metric: str) -> list[str]:
    """The mean of each system, and the first system's lead over each of the others."""
    first, *others = systems
    cells = [mean_over_seeds(over_seeds(runs, metric), of=len(runs)) for runs in systems.values()]
    for other in others:
        estimate = lead(systems[first], systems[other], metric)
        seeds = max(len(systems[first]), len(systems[other]))
        cells.append(
            "no common seed" if estimate is None else mean_over_seeds(estimate, "+", of=seeds)
        )
    return cells


def _moments(runs: Sequence[Finished]) -> list[str]:
    """Earlier moments that were measured in all runs."""
    return [when for when in _EARLIER if all(run.earlier.get(when) for run in runs)]


def _course_table(
    name: str, runs: Sequence[Finished], moments: Sequence[str], rows: Sequence[Row]
) -> Table:
    """One system at each moment, and its change since the last earlier moment."""

    def cells(metric: str) -> list[str]:
        gains = [_value(run, metric) - _value(run, metric, moments[-1]) for run in runs]
        means = [over_seeds(runs, metric, when) for when in (*moments, "after")]
        return [
            *(mean_over_seeds(mean, of=len(runs)) for mean in means),
            mean_over_seeds(t_interval(gains), "+", of=len(runs)),
        ]

    lines = [(escape(row.label), cells(row.metric)) for row in rows]
    names = [_EARLIER[when] for when in moments]
    headings = [*names, "after", f"since {names[-1]}"]
    return make_table(f"{name} ({len(runs)})", "mean over seeds, 95 % (t)", headings, lines)


def _content(systems: Systems, metrics: Sequence[str]) -> dict[str, Any]:
    """All values of the table; differences are relative to the first system."""
    first, *others = systems
    return {
        "systems": {
            name: {
                "runs": [run.path for run in runs],
                "seeds": [run.seed for run in runs],
                "tokens": [run.tokens for run in runs],
                "metrics": {
                    metric: {
                        "values": [run.after.get(metric) for run in runs],
                        **as_json(over_seeds(runs, metric)),
                        **{
                            when: {
                                "values": [run.earlier[when].get(metric) for run in runs],
                                **as_json(over_seeds(runs, metric, when)),
                            }
                            for when in _moments(runs)
                        },
                    }
                    for metric in metrics
                },
            }
            for name, runs in systems.items()
        },
        "differences": {
            f"{first} - {other}": {
                metric: estimate
                for metric in metrics
                if (estimate := lead(systems[first], systems[other], metric)) is not None
            }
            for other in others
        },
    }


def draw(systems: Systems, curves: Sequence[str], path: Path) -> Path:
    """Draw one panel per curve over the learners' tokens: runs thin, the mean of a system thick.
    The legend gives the number of runs, and curves with few points have markers."""
    size = (3.2 * len(curves), 2.8)
    with drawing(path, 1, len(curves), figsize=size, squeeze=False, layout="constrained") as axes:
        for axis, curve in zip(axes[0], curves):
            for colour, (name, runs) in enumerate(systems.items()):
                lines = [line for run in runs if len((line := _line(run, curve))[0])]
                axis.plot([], [], color=f"C{colour}", label=f"{name} (n = {len(runs)})")
                _plot_runs(axis, lines, f"C{colour}")
                if len(lines) > 1:
                    _plot_mean(axis, lines, f"C{colour}")
            axis.set_title(curve.removeprefix("measured/"), fontsize=9)
            axis.set_xlabel("learners' tokens, thousands", fontsize=8)
            axis.tick_params(labelsize=8)
            if axis.dataLim.ymin >= 0:
                axis.set_ylim(bottom=0)
        axes[0][0].legend(fontsize=8, frameon=False)
    return path


def _plot_runs(axis: Any, lines: Sequence[_Line], colour: str) -> None:
    """Draw each run, thin if there are several."""
    width, alpha = (1.2, 1.0) if len(lines) == 1 else (0.6, 0.4)
    for x, y in lines:
        marker = "." if len(x) <= _FEW else ""
        axis.plot(x, y, color=colour, linewidth=width, alpha=alpha, marker=marker)


def _plot_mean(axis: Any, lines: Sequence[_Line], colour: str) -> None:
    """Draw the mean of several runs."""
    lengths = {len(x) for x, _ in lines}
    if len(lengths) == 1 and max(lengths) <= _FEW:
        # With few points, draw the mean only at these points.
        axis.plot(*np.mean(lines, axis=0), color=colour, linewidth=1.8, marker="o")
        return
    # Average only where all runs have points: the mean would jump where a run ends.
    grid = np.linspace(max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines), 60)
    mean = np.mean([np.interp(grid, x, y) for x, y in lines], axis=0)
    axis.plot(grid, mean, color=colour, linewidth=1.8)


def _line(run: Finished, curve: str) -> _Line:
    """(tokens in thousands, values) of the points where ``curve`` was measured."""
    tokens = {int(line["step"]): line[_TOKENS] / 1000 for line in run.steps}
    lines = [line for line in (*run.steps, *run.evaluated) if line.get(curve) is not None]
    points = [(tokens[int(line["step"])], line[curve]) for line in lines]
    x, y = np.asarray(points, dtype=np.float64).reshape(-1, 2).T
    return x, y


def _value(run: Finished, metric: str, when: str = "after") -> float:
    value = (run.after if when == "after" else run.earlier[when]).get(metric)
    return float("nan") if value is None else value


def _paths(text: str) -> tuple[str, list[Path]]:
    name, equals, runs = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--systems {text!r}: write NAME=RUN,RUN")
    paths = [
        Path(path) for pattern in runs.split(",") for path in sorted(glob.glob(pattern.strip()))
    ]
    if not paths:
        raise UserError(f"--systems {name}: no directory is called {runs}")
    folders = [path.resolve() for path in paths]
    if repeated := [path for path, folder in zip(paths, folders) if folders.count(folder) > 1]:
        raise UserError(f"--systems {name} names {repeated[0]} twice; name each run once")
    return name.strip(), paths


def _run(path: Path) -> Finished:
    try:
        run = _read(path)
        good = (
            fits(run.after, _Values)
            and all(fits(values, _Values) for values in run.earlier.values())
            and fits((list(run.steps), list(run.evaluated)), tuple[list[_Values], list[_Values]])
            and all(fits(line[_TOKENS], float) for line in run.steps)
            # Curves use the token counts of training steps.
            and {line["step"] for line in run.evaluated} <= {line["step"] for line in run.steps}
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        good, run = False, None
    if run is None or not good:
        raise UserError(
            f"{path} cannot be read: config.json, summary.json, {METRICS} or {EVALUATIONS} is "
            "damaged; leave that run out"
        )
    return run


def _read(path: Path) -> Finished:
    run = RunDirectory.reopen(path)
    summary = run.read_json("summary.json")
    if summary is None:
        raise UserError(
            f"{path} is a run that has not ended: {command('train.py')} --resume {path}"
        )
    if run.goes_on():
        raise UserError(went_on(path))
    steps = run.read_log(METRICS)
    return Finished(
        str(path),
        int(run.config()["run"]["seed"]),
        summary["after"],
        steps[-1][_TOKENS] if steps else 0.0,
        steps,
        run.read_log(EVALUATIONS),
        {when: summary[when] for when in _EARLIER if when in summary},
    )
