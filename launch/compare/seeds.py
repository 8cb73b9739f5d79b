"""Runs of several seeds: ``python benchmark.py seeds --systems "EAPO=runs/e*" "RL=runs/rl*"``."""

import glob
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

import envs
from evaluation import evaluation_of
from evaluation.across_seeds import Finished, as_json, draw, table
from launch.compare.paired import choice_of
from launch.rundir import EVALUATIONS, METRICS, RunDirectory
from vocabulary import UserError, fits

_TOKENS = "rollout/learner_tokens_total"
_Values = dict[str, float | None]
"""A metric -> its value; null where nothing was measured."""


@dataclass(frozen=True)
class SeedsComparison:
    """Means over seeds, paired differences and learning curves of finished runs."""

    systems: tuple[str, ...]
    """NAME=RUN,RUN,...: directories of runs that differ in their seed; * stands for any characters.
    Others are compared with the first system."""
    curves: tuple[str, ...] = ()
    """Logged numbers to draw over training; without any, those of the progress bar and, from runs
    with --eval.every, the first one of the table."""
    out: Path = Path("runs/seeds")
    """Where seeds.json and seeds.png go."""


def compare(settings: SeedsComparison) -> None:
    """Read the runs, show the table, write results and picture.

    Raises:
        UserError: a run that has not ended, or runs of different environments.
    """
    found = [_paths(text) for text in settings.systems]
    if not found:
        raise UserError("--systems: write NAME=RUN,RUN, once or more")
    systems = {name: [_run(path) for path in paths] for name, paths in found}
    if len(systems) < len(found):
        raise UserError("--systems: two systems have the same name")
    choices = [choice_of(path) for _, paths in found for path in paths]
    environments = {choice["env"] for choice in choices}
    if len(environments) > 1:
        raise UserError(f"these runs are of different environments: {', '.join(environments)}")
    choice = choices[0]
    evaluation = evaluation_of(envs.spec(choice["env"]))
    measured = [run.after for runs in systems.values() for run in runs]
    rows = evaluation.table(choice["roles"], *measured)
    curves = settings.curves or (
        *evaluation.headline(choice["roles"]),
        *([f"eval/{rows[0].metric}"] if rows and _were_evaluated(systems) else []),
    )
    settings.out.mkdir(parents=True, exist_ok=True)
    results = settings.out / "seeds.json"
    results.write_text(json.dumps(as_json(systems, [row.metric for row in rows]), indent=2))
    picture = draw(systems, curves, settings.out / "seeds.png")
    console = Console()
    console.print(table(systems, rows))
    console.print(f"written: {results}, {picture}", soft_wrap=True)


def _paths(text: str) -> tuple[str, list[Path]]:
    name, equals, runs = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--systems {text!r}: write NAME=RUN,RUN")
    paths = [Path(path) for one in runs.split(",") for path in sorted(glob.glob(one.strip()))]
    if not paths:
        raise UserError(f"--systems {name}: no directory is called {runs}")
    return name.strip(), paths


def _run(path: Path) -> Finished:
    try:
        found = _read(path)
        good = (
            fits(found.after, _Values)
            and fits(
                (list(found.steps), list(found.evaluated)), tuple[list[_Values], list[_Values]]
            )
            and all(fits(line[_TOKENS], float) for line in found.steps)
            # Curves are drawn over the tokens of training steps.
            and {line["step"] for line in found.evaluated} <= {line["step"] for line in found.steps}
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        good, found = False, None
    if found is None or not good:
        raise UserError(
            f"{path} cannot be read: config.json, summary.json, {METRICS} or {EVALUATIONS} is "
            "damaged; leave that run out"
        )
    return found


def _read(path: Path) -> Finished:
    run = RunDirectory.reopen(path)
    summary = run.read_json("summary.json")
    if summary is None:
        raise UserError(f"{path} is a run that has not ended: python train.py --resume {path}")
    steps = run.read_log(METRICS)
    return Finished(
        str(path),
        int(run.config()["run"]["seed"]),
        summary["after"],
        steps[-1][_TOKENS] if steps else 0.0,
        steps,
        run.read_log(EVALUATIONS),
    )


def _were_evaluated(systems: Mapping[str, Any]) -> bool:
    return any(run.evaluated for runs in systems.values() for run in runs)
