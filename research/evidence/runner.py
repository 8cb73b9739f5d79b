"""Runs of studies: one process each, one stored line each."""

import json
import os
import shlex
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from coterie.agents.models.cache import fetched_folder
from evidence.commands import cpu_s, measured, start
from evidence.measures import ANSWERS, MEASURES, tokens_of
from evidence.real_problems import write_problems
from evidence.studies import PROBLEMS, RESULTS, Run, Study
from fetch_weights import WEIGHTS


def run_missing(study: Study, runs: Sequence[Run], out: Path, until: str) -> None:
    """Run one after another and store the results; start none after the time of day ``until``."""
    for run in runs:
        if f"{datetime.now():%H:%M}" >= until:
            break
        # A run that another process has is left to it.
        with suppress(Timeout), FileLock(out / f"{run.name}.lock", timeout=0):
            if run.name in study.stored():
                continue
            row = result(run, out)
            with (RESULTS / study.results).open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(run.name, row["after"], row["cpu_s"], flush=True)


def again(studies: Sequence[Study], name: str, seed: int, out: Path) -> str:
    """Run an arm on another seed; return its results after those that are stored.

    Args:
        studies: where the arm may be.
        name: of the arm's runs, without a seed.
        seed: the seed of the new run.
        out: folder of all runs.

    Raises:
        SystemExit: no arm has that name.
    """
    known: dict[str, Run] = {}
    for study in studies:
        planned = [*study.planned()]
        # An arm may have no planned run: it stands beside the last run of its study.
        for run in (*(replace(planned[-1], arm=arm) for arm in study.arms), *planned):
            known[run.name.removesuffix(f"-{run.seed}")] = run
    if name not in known:
        raise SystemExit(f"no run is called {name}; the arms are: {' '.join(sorted(known))}")
    run = replace(known[name], seed=seed)
    rows = [
        row
        for stored, row in run.study.stored().items()
        if stored == replace(run, seed=row["seed"]).name
    ]
    rows.append(result(run, out))
    return "\n".join(f"seed {row['seed']}: {json.dumps(row['after'])}" for row in rows)


def result(run: Run, out: Path) -> dict[str, Any]:
    """Run the command, after the runs that it needs, and return the line to store."""
    folder = out / run.name
    prepare(run, out)
    with measured(folder) as spent:
        execute(run, out)
    row = {**run.fields, "command": _shown(run.program, _arguments(run, out), out), **spent}
    if run.asked:
        asked, used = run.evaluation(lambda _, name: _place(run, name, out)), cpu_s()
        (folder / ANSWERS).parent.mkdir(exist_ok=True)
        start("train.py", asked, (folder / ANSWERS).parent, Path(ANSWERS).name)
        row["asked"] = _shown("train.py", asked, out)
        row["asking_cpu_s"] = round(cpu_s() - used, 1)
    row |= MEASURES[run.study.measure](run, folder)
    # Logs stay. Other runs need the models of some arms; nobody needs those of the others.
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    needed = {other.arm for arm in run.study.arms for other in replace(run, arm=arm).needs()}
    if run.arm not in needed:
        shutil.rmtree(folder / "final", ignore_errors=True)
    return row


def prepare(run: Run, out: Path) -> None:
    """Run what the run needs first, unless it has been run."""
    for other in run.needs():
        # Another process may be running it.
        with FileLock(out / f"{other.name}.lock"):
            if not (out / other.name / other.done).exists():
                prepare(other, out)
                execute(other, out)


def execute(run: Run, out: Path) -> None:
    """Run the command, or what is left of it."""
    start(run.program, _arguments(run, out), out / run.name, run.done)


def _arguments(run: Run, out: Path) -> list[str]:
    def fill(kind: str, name: str) -> str:
        if kind:
            return str(tokens_of(out / replace(run, arm=name).name)[kind])
        return _place(run, name, out)

    return run.arguments(fill, out / run.name)


def _place(run: Run, name: str, out: Path) -> str:
    """The folder or file that a placeholder names."""
    if name == "problems":
        write_problems(out / PROBLEMS)
        return str(out / PROBLEMS)
    if name in WEIGHTS:
        return str(weights_folder() / WEIGHTS[name].file)
    return str(out / (run.name if name == "self" else replace(run, arm=name).name))


def weights_folder() -> Path:
    """Return the folder of real weights: COTERIE_WEIGHTS, or the cache of fetch_weights.py."""
    named = os.environ.get("COTERIE_WEIGHTS")
    return Path(named) if named else fetched_folder()


def _shown(program: str, arguments: Sequence[str], out: Path) -> str:
    """A command without this machine's folders."""
    text = shlex.join(["python", program, *arguments])
    for place, name in ((f"{weights_folder()}/", "$COTERIE_WEIGHTS/"), (f"{out}/", "runs/")):
        text = text.replace(place, name)
    return text
