"""Compare the stored evaluations of runs: ``benchmark.py compare runs/a runs/b``."""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coterie import envs
from coterie.cli.arguments import command, program
from coterie.cli.output_paths import check_file
from coterie.datatypes import UserError, Validated, fits, user_path
from coterie.evaluation import evaluation_of
from coterie.evaluation.by_set import estimate
from coterie.evaluation.compare.output import show_plain, show_written, write_json
from coterie.evaluation.evaluation import Outcomes, Resampled, Row, difference, verdict
from coterie.evaluation.metrics.intervals import FEWEST
from coterie.evaluation.table import figure_cell, figure_with_interval, make_table
from coterie.training.config.run_settings import Resamples
from coterie.training.run.directory import RunDirectory
from coterie.training.run.provenance import stored_digests

Runs = Mapping[str, Mapping[str, Resampled]]
"""Label -> metric -> value with its bootstrap. All use the same problems and seed, so that
resamples are paired."""

_MARKS = {"better": "[green]*[/green]", "worse": "[red]*[/red]", "other": "*", "": " "}


@dataclass(frozen=True)
class PairedComparison(Validated):
    """Differences between runs on the same held-out problems, with paired 95 % intervals. The first
    run is the baseline. Nothing is sampled."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """Directories of two or more runs."""
    evaluation: Literal["before", "after"] = "after"
    """Evaluation to compare: before or after training."""
    resamples: Resamples = 10_000
    """Bootstrap resamples over problems."""
    out: Path | None = None
    """JSON file for every metric and difference; default: none."""


def compare(settings: PairedComparison) -> None:
    """Read the evaluations, pair them by problem and print the tables.

    Raises:
        UserError: runs without such an evaluation, or evaluations on different problems.
    """
    if len(settings.runs) < 2:
        name = command("benchmark.py")
        raise UserError(f"name two runs at least: {name} compare runs/a runs/b")
    runs = tuple(map(user_path, settings.runs))
    names = _short_names(runs)
    if settings.out:
        check_file(settings.out, "--out")
    choices = {name: read_choice(path) for name, path in zip(names, runs)}
    outcomes = {name: _outcomes(path, settings.evaluation) for name, path in zip(names, runs)}
    _check_same(choices, outcomes, dict(zip(names, map(_evaluated, runs))))
    first = choices[names[0]]
    evaluation = evaluation_of(envs.spec(first["env"]))
    measured: dict[str, Mapping[str, Resampled]] = {}
    for name, path in zip(names, runs):
        try:
            # All runs share one seed, so that resamples are paired.
            measured[name] = estimate(evaluation, outcomes[name], settings.resamples, 0)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise UserError(
                f"{path}/evaluation/{settings.evaluation}.json does not hold what {first['env']} "
                "measures"
            ) from None
    rows = evaluation.table(first["roles"], *measured.values())
    console = Console()
    problems = len(outcomes[names[0]]["problems"])
    # 80 columns fit two runs: each run after the first has a separate table.
    for other in names[1:]:
        shown = {name: measured[name] for name in (names[0], other)}
        title = f"{first['env']}, {problems} problems, {settings.evaluation} training"
        console.print(_table(shown, rows, title))
    if problems < FEWEST:
        show_plain(
            console, f"* marks differences of {FEWEST} problems or more; here are {problems}"
        )
    if settings.out:
        write_json(settings.out, _content(measured, rows))
        show_written(console, settings.out)


def read_choice(path: Path) -> dict[str, Any]:
    """The choice of environment and algorithm in a run's ``config.json``.

    Raises:
        UserError: the file does not contain it.
    """
    try:
        choice: dict[str, Any] = RunDirectory.reopen(path).config()["choice"]
        # In JSON form: roles are a list.
        valid = fits((choice["env"], choice["roles"]), tuple[str, list[str]])
    except (KeyError, TypeError):
        valid, choice = False, {}
    if not valid:
        raise UserError(f"{path / 'config.json'} does not say what the run was")
    return choice


def _table(runs: Runs, rows: Sequence[Row], title: str) -> Table:
    """One line per metric: both values and their difference, with ``*`` if it excludes 0."""
    first, other = runs

    def cells(row: Row) -> list[str]:
        base, value = runs[first][row.metric], runs[other].get(row.metric)
        if value is None:
            return [_value(base), "", ""]
        change = difference(base, value)
        return [_value(base), _value(value), _change(change) + _MARKS[verdict(change, row)]]

    headings = [first, other, "difference"]
    shown = [row for row in rows if row.metric in runs[first]]
    return make_table(title, "held out", headings, [(escape(r.label), cells(r)) for r in shown])


def _content(runs: Runs, rows: Sequence[Row]) -> dict[str, Any]:
    """All metrics of all runs, and all differences from the first run."""
    first, *others = runs
    labels = {row.metric: row for row in rows}

    def changed(other: str, metric: str) -> dict[str, Any]:
        change = difference(runs[first][metric], runs[other][metric])
        row = labels.get(metric, Row(metric, metric, "neither"))
        interval = list(change.interval())
        return {"value": change.value, "interval": interval, "verdict": verdict(change, row)}

    return {
        "runs": runs,
        "differences": {
            f"{other} - {first}": {
                metric: changed(other, metric) for metric in runs[other] if metric in runs[first]
            }
            for other in others
        },
    }


def _value(metric: Resampled) -> str:
    return "undefined" if math.isnan(metric.value) else figure_cell(metric.value)


def _change(change: Resampled) -> str:
    if math.isnan(change.value):
        return "undefined"
    return figure_with_interval(change, "+")


def _short_names(paths: tuple[Path, ...]) -> list[str]:
    """The shortest path suffixes that are distinct."""
    whole = [path.resolve().parts for path in paths]
    if len(set(whole)) < len(whole):
        raise UserError("a run is named twice; name each run once")
    names = (["/".join(parts[-length:]) for parts in whole] for length in count(1))
    return next(ends for ends in names if len(set(ends)) == len(ends))


def _outcomes(path: Path, which: str) -> Outcomes:
    file = path / "evaluation" / f"{which}.json"
    if not file.is_file():
        raise UserError(
            f"{path} has no evaluation {which} training; finish it with {command('train.py')} "
            f"--resume {path}, and without --eval.no-enabled"
        )
    old = False
    # A damaged log says nothing about the outcomes.
    with suppress(OSError, ValueError, KeyError, TypeError):
        old = which == "after" and RunDirectory.reopen(path).goes_on()
    if old:
        raise UserError(went_on(path))
    try:
        outcomes = json.loads(file.read_text(encoding="utf-8"))
        outcomes["problems"] = list(outcomes["problems"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"{file} cannot be read as an evaluation's outcomes") from None
    return outcomes


def went_on(path: Path) -> str:
    """The sentence for a run whose results are old."""
    return (
        f"{path} was resumed with more steps than its results are of; "
        f"{command('train.py')} --resume {path} ends it"
    )


def _evaluated(path: Path) -> list[str]:
    """The fingerprints of the sets that a run is evaluated on; empty if they are not known."""
    digests = stored_digests(RunDirectory.reopen(path))
    return sorted(digest for name, digest in digests.items() if name.split(" ")[0] == "eval")


def _check_same(
    choices: Mapping[str, Any],
    outcomes: Mapping[str, Outcomes],
    evaluated: Mapping[str, Sequence[str]],
) -> None:
    (first, choice), *others = choices.items()
    for name, other in others:
        for key in ("env", "roles"):
            if other[key] != choice[key]:
                raise UserError(
                    f"{first} and {name} have different {key}: {choice[key]} and {other[key]}"
                )
        # Problems of a file are called by its name and their place, whatever they ask.
        other_sets = evaluated[name] and evaluated[first] and evaluated[name] != evaluated[first]
        if other_sets or outcomes[name]["problems"] != outcomes[first]["problems"]:
            raise UserError(
                f"{first} and {name} were evaluated on different problems, so nothing pairs up: "
                "train both with the same --seed and --problems, or compare means over seeds "
                f"({program('benchmark.py')} seeds)"
            )
