"""A paper's table in miniature, ``python benchmark.py sweep core-5 --seeds 0 1 2``, or with the
paper's models and data: ``--preset``."""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import tyro
from annotated_types import Ge
from rich.console import Console

from coterie.cli.arguments import command
from coterie.cli.command_line import parse
from coterie.cli.output_paths import check_folder
from coterie.datatypes import UserError, Validated, did_you_mean
from coterie.datatypes.validation import Seed
from coterie.envs import registered
from coterie.envs.paper_tables import Table
from coterie.evaluation.compare.output import show_plain, show_written, write_json
from coterie.evaluation.json_values import as_json
from coterie.evaluation.metrics.intervals import t_interval
from coterie.evaluation.table import make_tables, of_seeds, without_zero
from coterie.extras.papers.sweep_commands import (
    SweepCommand,
    answers_of,
    check_comparison,
    comparing,
    of_distillation,
    run_of,
    scored_sets,
    training,
)

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""Row -> column -> the value of each seed; NaN where it is undefined."""


@dataclass(frozen=True)
class Sweep(Validated):
    """Train every variant of a paper's table with every seed, compare, and show means over seeds. A
    sweep continues where it stopped. Tables share the runs of a folder."""

    name: Annotated[str, tyro.conf.Positional] = ""
    """Table, such as core-5, corea-1 or eapo-9; default: list all."""
    preset: bool = False
    """Use the paper's models, data and sizes instead of the tiny team; --dry-run then plans memory
    and hours of every run."""
    card: float = 80.0
    """GiB of each GPU for --preset --dry-run."""
    seeds: tuple[Seed, ...] = (0, 1, 2)
    """Seeds of every variant; more can follow later."""
    steps: Annotated[int | None, Ge(1)] = None
    """Training steps of every run; default: train.py's."""
    dry_run: bool = False
    """Print the commands that are left, and run none."""
    train: tuple[str, ...] = ()
    """Further settings for every train.py, NAME=VALUE, such as problems.held-out=64 or
    "problems.eval=aime24 aime25", or NAME alone, such as problems.decontaminate. Distillations take
    the problems among them."""
    compare: tuple[str, ...] = ()
    """Further settings for every comparison, NAME=VALUE, such as questions=64, or NAME alone, such
    as no-peers."""
    out: Path = Path("runs/sweep")
    """Folder for runs, comparisons and tables."""

    @property
    def shown(self) -> str:
        """Name of the table and of its files."""
        return f"{self.name}-preset" if self.preset else self.name


def sweep(settings: Sweep) -> None:
    """Train, compare and show one table; without a name, list all tables.

    Raises:
        UserError: the table is unknown or has no miniature, or a command failed.
    """
    console = Console()
    if not settings.name:
        for name, table in tables().items():
            show_plain(console, f"{name:9}  {table.title}")
            if table.why_not:
                show_plain(console, f"{'':9}  no miniature: {table.why_not}")
        return
    paper_table = _table_of(settings)
    if not settings.dry_run:
        files = ("sweep.json", f"{settings.shown}.json")
        check_folder(settings.out, "--out", files=files, folders=("runs", settings.shown))
    train_flags, compare_flags = _flags(settings.train), _flags(settings.compare)
    seeds, out = settings.seeds, settings.out
    _check_used(settings, paper_table)
    comparisons = list(comparing(settings.shown, paper_table, seeds, out, compare_flags))
    distills = any(variant.program == "distill" for variant in paper_table.variants)
    scored = scored_sets(comparisons[0].arguments) if distills and comparisons else ()
    runs = list(
        training(paper_table, seeds, out, steps=settings.steps, more=train_flags, scored=scored)
    )
    _, left_out = of_distillation(train_flags)
    if distills and left_out:
        print(f"# distillations leave out {', '.join(left_out)}, which only train.py takes")
    waiting = [job for job in (*runs, *comparisons) if not job.finished]
    for job in waiting:
        program, *flags = job.command()
        # Find a flag or a set of problems that a command does not take before the first run starts.
        if program == "benchmark.py":
            check_comparison(flags, reads=not settings.dry_run)
        elif "--resume" not in flags:
            parse(flags)
    if settings.dry_run:
        _print_plan(waiting, paper_table, settings)
        return
    _store_settings(settings, paper_table)
    for number, job in enumerate(waiting, 1):
        line = shlex.join(["python", *job.command()])
        show_plain(console, f"{number}/{len(waiting)} {line}")
        job.run()
    values = _compared(paper_table, comparisons) if comparisons else _trained(paper_table, settings)
    _show(paper_table, values, settings, console)


def _print_plan(waiting: Sequence[SweepCommand], paper_table: Table, settings: Sweep) -> None:
    """Print every command; for the papers' models also memory and hours."""
    if paper_table.note:
        print(f"# {paper_table.note}")
    total, unplanned, plans = 0.0, 0, dict[tuple[str, ...], tuple[str, float]]()
    for job in waiting:
        print(shlex.join(["python", *job.command()]))
        if settings.preset and not job.trains:
            print(f"  # {answers_of(job.arguments)}")
        elif settings.preset and job.program != "train":
            unplanned += 1
            print("  # not planned: a distillation has no plan")
        elif settings.preset:
            # Seeds and folders do not change the plan.
            key = job.arguments[: job.arguments.index("--seed")]
            if key not in plans:
                plans[key] = _planned(key, settings)
            line, hours = plans[key]
            total += 0.0 if math.isnan(hours) else hours
            unplanned += math.isnan(hours)
            print(f"  {line}")
    if settings.preset:
        but = f"; {unplanned} of them could not be planned" if unplanned else ""
        print(f"\ntrainings with their evaluations: at most {total:,.0f} hours in all{but}")
        if any(not job.trains for job in waiting):
            print("hours of comparisons are not planned")


def _planned(flags: Sequence[str], settings: Sweep) -> tuple[str, float]:
    """(memory per device and hours of one training as a line, hours); the hours are NaN if its
    models' configurations cannot be loaded here."""
    planning = import_module("coterie.extras.ops.plan")  # extras do not import each other
    steps = () if settings.steps is None else ("--steps", str(settings.steps))
    run = parse([*flags, *steps])
    try:
        planned = planning.plan(run, settings.card)
    except UserError as unknown:
        return f"# not planned: {unknown}", math.nan
    parts = [
        f"{device.device} {device.most / planning.GIB:.0f} of {settings.card:.0f} GiB"
        for device in planned.devices
    ]
    fits = "" if planned.fits else " (does not fit: --plan names the flags)"
    total, measuring = planned.hours, ""
    if evaluation := planned.evaluation:
        total += evaluation.hours
        measuring = f", {evaluation.answers:,} answers of evaluation among them"
    return f"# {', '.join(parts)}{fits}; at most {total:,.0f} hours{measuring}", total


def tables(*, at_scale: bool = False) -> dict[str, Table]:
    """All tables by name, in miniature or with the models of their papers."""
    modules = [import_module(spec.tables) for spec in registered() if spec.tables]
    return {
        name: table
        for module in modules
        for name, table in (module.AT_SCALE if at_scale else module.TABLES).items()
    }


def _table_of(settings: Sweep) -> Table:
    known = tables(at_scale=settings.preset)
    if settings.name not in known:
        raise UserError(
            f"unknown table {settings.name!r}; {did_you_mean(settings.name, known)}known: "
            f"{', '.join(known)}, which {command('benchmark.py')} sweep explains"
        )
    paper_table = known[settings.name]
    if paper_table.why_not:
        raise UserError(
            f"{settings.name} ({paper_table.title}) has no miniature: {paper_table.why_not}"
        )
    if not settings.seeds or len(set(settings.seeds)) < len(settings.seeds):
        raise UserError("--seeds: name one seed at least, and none twice")
    return paper_table


def _check_used(settings: Sweep, paper_table: Table) -> None:
    """Refuse settings of commands that the table does not have."""
    if not paper_table.variants and (settings.train or settings.steps is not None):
        flag = "--train" if settings.train else "--steps"
        raise UserError(f"{flag}: {settings.name} trains nothing; leave it out")
    if settings.compare and not paper_table.comparison:
        raise UserError(
            f"--compare: {settings.name} reads the runs' own evaluations; leave it out, or name "
            "the problems with --train problems.eval=SETS"
        )


def _flags(texts: Sequence[str]) -> list[str]:
    flags: list[str] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or name.startswith("-"):
            raise UserError(
                f"{text!r}: write NAME=VALUE, such as problems.held-out=64, or NAME alone, such as "
                "problems.decontaminate"
            )
        if not equals:
            flags.append(f"--{name}")
            continue
        try:
            words = shlex.split(value)
        except ValueError as why:
            raise UserError(
                f"{text!r} is no list of words ({why}); put a value with an apostrophe in double "
                "quotes"
            ) from None
        flags += [f"--{name}", *(words or [value])]
    return flags


def _store_settings(settings: Sweep, paper_table: Table) -> None:
    """Store the sweep's settings; refuse a folder with runs of other settings."""
    path = settings.out / "sweep.json"
    wanted: dict[str, Any] = {}
    if paper_table.variants:
        wanted |= {"steps": settings.steps, "train": list(settings.train)}
    compare = {"compare": list(settings.compare)} if paper_table.comparison else {}
    # Before the first comparison its settings can still be changed.
    if any(folder.parent.name != "runs" for folder in settings.out.glob("*/seed-*")):
        wanted |= compare
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        stored = wanted
    except ValueError:
        stored = dict.fromkeys(wanted)
    if differing := [name for name, value in wanted.items() if stored.get(name, value) != value]:
        raise UserError(
            f"{settings.out} holds runs with another --{differing[0]}; name another folder "
            "with --out"
        )
    write_json(path, stored | wanted | compare)


def _trained(paper_table: Table, settings: Sweep) -> Values:
    """Read the values from the runs' own evaluations."""
    values: dict[str, dict[str, list[float]]] = {}
    read = {
        (variant.name, seed): json.loads(
            (run_of(variant, seed, settings.out) / "summary.json").read_text(encoding="utf-8")
        )
        for variant in paper_table.variants
        for seed in settings.seeds
    }
    rows = [(variant.label, variant, "after") for variant in paper_table.variants]
    each = paper_table.each or len(rows)
    # The untrained model is the first row, or the first row of every data set.
    for start in reversed(range(0, len(rows), each)) if paper_table.base else ():
        first = paper_table.variants[start]
        # The labels of a data set's variants end with its name.
        data_set = first.label.rpartition(", ")[2]
        label = f"{paper_table.base}, {data_set}" if paper_table.each else paper_table.base
        rows.insert(start, (label, first, "before"))
    for label, variant, when in rows:
        values[label] = {
            heading: [_at(read[variant.name, s][when], keys) for s in settings.seeds]
            for heading, keys in paper_table.columns.items()
        }
    return values


def _compared(paper_table: Table, comparisons: Sequence[SweepCommand]) -> Values:
    """Read the values that the comparison found with every seed."""
    read = [json.loads((job.folder / job.done).read_text(encoding="utf-8")) for job in comparisons]
    return {
        label: {
            heading: [
                _at(results, tuple(key.replace("{row}", row) for key in keys)) for results in read
            ]
            for heading, keys in paper_table.columns.items()
        }
        for row, label in paper_table.rows.items()
    }


def _at(content: Any, keys: Sequence[str]) -> float:
    for key in keys:
        content = _entry(content, key) if isinstance(content, dict) else None
    return math.nan if content is None else float(content)


def _entry(content: Mapping[str, Any], key: str) -> Any:
    """One entry; a key ``NAME#N`` is the Nth entry whose name starts with NAME."""
    # Sets of problems are files of any name, so tables number them; NAMEsets is their mean.
    start, mark, number = key.rpartition("#")
    if not mark:
        return content.get(key)
    numbered = [
        value
        for name, value in content.items()
        if name.startswith(start) and name != f"{start}sets"
    ]
    return numbered[int(number) - 1] if int(number) <= len(numbered) else None


def _show(paper_table: Table, values: Values, settings: Sweep, console: Console) -> None:
    seeds = ", ".join(map(str, settings.seeds))
    title = f"{settings.shown}: {paper_table.title} (seeds {seeds})"
    columns = list(dict.fromkeys(column for row in values.values() for column in row))
    for table in make_tables(
        title,
        "± 95 % (t)",
        columns,
        list(values),
        lambda row, column: _cell(values[row].get(column, ())),
        wide=4,
    ):
        console.print(table)
    if paper_table.instead:
        show_plain(console, f"In place of the paper's: {paper_table.instead}.")
    if paper_table.note:
        show_plain(console, paper_table.note)
    path = settings.out / f"{settings.shown}.json"
    content = {
        "table": settings.name,
        "title": paper_table.title,
        "instead": paper_table.instead,
        "seeds": list(settings.seeds),
        "rows": {
            label: {
                column: {"values": list(numbers), **as_json(t_interval(numbers))}
                for column, numbers in row.items()
            }
            for label, row in values.items()
        },
    }
    write_json(path, content)
    files = [path, *_bars(values, paper_table, settings)]
    show_written(console, *files)


def _bars(values: Values, paper_table: Table, settings: Sweep) -> list[Path]:
    """Draw the columns of the table that the paper also shows as a figure."""
    if not paper_table.bars:
        return []
    from coterie.evaluation.compare.pictures import draw_grouped_bars

    panels = {
        column: {label: t_interval(row[column]) for label, row in values.items()}
        for column in paper_table.bars
    }
    path = settings.out / f"{settings.shown}.png"
    caption = "mean over seeds, 95 % (t)" if len(settings.seeds) > 1 else "one seed"
    return [draw_grouped_bars(panels, path, caption)]


def _cell(numbers: Sequence[float]) -> str:
    estimate = t_interval(numbers)
    if math.isnan(estimate.value):
        return "–"
    single = math.isnan(estimate.low)
    half = "" if single else f" ± {_figure(estimate.high - estimate.value)}"
    return f"{_figure(estimate.value)}{half}{of_seeds(estimate, len(numbers))}"


def _figure(value: float) -> str:
    """Format shares without the leading zero (.913) and costs without decimals."""
    return f"{value:.0f}" if abs(value) >= 10 else without_zero(value, 3)
