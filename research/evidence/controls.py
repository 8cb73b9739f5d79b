"""Third protocol of the evidence: hints of other problems, and a second round beside rereading.

A run is one training; a finished one is a line of docs/evidence/controls.jsonl. What *plain* and
*expected* do on the same seeds is among the results of the first protocol (peers.py).
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.datatypes import UserError
from coterie.evaluation.metrics.intervals import t_interval
from coterie.extras.papers.sweep_commands import SweepCommand
from evidence import peers, runs
from evidence.peers import DECIDING, DISTILLED, LENGTH, ROLES
from evidence.runs import ROOT, differences, fell, finish, quoted, rate, taught

RESULTS = ROOT / "docs/evidence/controls.jsonl"
LOOP = "research/evidence/other_hints.py"
OTHERS = ("other-same", "other-cross")
BOTH = ("both-core", "both-own")
"""In order of preference where the screen cannot tell them apart."""
_OTHER = ("--env", "evidence.other_hints:SPEC", "--env.hint-of")
_CORE = ("--env", "core-teaching")
_REREAD = (
    *(*DISTILLED, "--env.reread", "unsolved", "--env.reread-least", "0.5"),
    *("--env.teacher", "prefer-peer", "--group-by", "problem+role"),
    *("--algo.distillation.likeliest", "64", "--algo.distillation.fade", "1"),
)
ARMS = {
    **{arm: (*_OTHER, arm) for arm in OTHERS},
    "both-core": (*_CORE, "--preset", "core-gated", *_REREAD),
    "both-own": (*_CORE, "--env.k-cold", "2", "--env.k-hinted", "1"),
    "expected": _CORE,
}
SCREEN = (3, 4)
LONG = 2 * LENGTH
STAGES = (
    *(("disjoint", LENGTH), ("disjoint", LONG), ("default", LENGTH), ("recall", LENGTH)),
    *(("default", LONG), ("recall", LONG)),
)
"""In which *both* is compared with *expected*, in this order."""
BOUNDS: Mapping[int, float] = {LENGTH: -0.05, LONG: -0.02}
"""Steps -> what the lower end of both - expected must exceed."""
FEW = 5
"""Seeds of a stage once a condition has failed."""
_TIE = 0.01


@dataclass(frozen=True)
class Run(peers.Run):
    """One training of the protocol; its arms name their environments."""

    env = ()
    arms = ARMS

    @property
    def program(self) -> str:
        return LOOP if self.arm in OTHERS else "train.py"

    @property
    def name(self) -> str:
        """Return the name of the run's folder."""
        return f"control-{super().name}"


@dataclass(frozen=True)
class OwnLoop(SweepCommand):
    """A training by a program of this folder."""

    def command(self) -> list[str]:
        if self.resumable:
            return [LOOP, "--resume", str(self.folder)]
        return [LOOP, *self.arguments]

    def run(self) -> None:
        command = self.command()
        if "--resume" not in command and self.folder.is_dir():
            shutil.rmtree(self.folder)
        subprocess.run([sys.executable, *command], cwd=ROOT, check=False)
        if not self.finished:
            raise UserError(f"python {' '.join(command)} did not end; start it again")


Stored = Mapping[Run, dict[str, Any]]


def planned() -> Iterator[Run]:
    """Yield all runs of the protocol in order, as far as results say which these are."""
    for rung, steps in (("disjoint", LENGTH), ("recall", LENGTH), ("disjoint", LONG)):
        yield from (Run(rung, arm, seed, steps) for seed in _seeds(rung, steps) for arm in OTHERS)
    yield from (Run("disjoint", arm, seed, LENGTH) for seed in SCREEN for arm in BOTH)
    done = stored()
    if (both := chosen(done)) is None:
        return
    for rung, steps in STAGES:
        for seed in _seeds(rung, steps)[: FEW if failed(done, before=(rung, steps)) else None]:
            if peers.Run(rung, "expected", seed, steps) not in peers.stored():
                yield Run(rung, "expected", seed, steps)
            yield Run(rung, both, seed, steps)


def _seeds(rung: str, steps: int) -> tuple[int, ...]:
    return tuple(DECIDING.get((rung, steps), DECIDING[rung, LENGTH]))


def chosen(done: Stored) -> str | None:
    """Return the arm that goes on from the screen; None before it is over."""
    screened = {arm: [done.get(Run("disjoint", arm, s, LENGTH)) for s in SCREEN] for arm in BOTH}
    if not all(row for rows in screened.values() for row in rows):
        return None
    means = {
        arm: float(np.mean([rate(row, role) for row in rows if row for role in ROLES]))
        for arm, rows in screened.items()
    }
    first, second = BOTH
    return second if means[second] - means[first] >= _TIE else first


def failed(done: Stored, before: tuple[str, int] | None = None) -> list[tuple[str, int]]:
    """Return the finished stages that *both* has failed, of those before a stage or of all."""
    stages = STAGES if before is None else STAGES[: STAGES.index(before)]
    both = chosen(done)
    rungs: list[tuple[str, int]] = []
    for rung, steps in stages if both else ():
        ours, theirs = (of(done, rung, arm, steps) for arm in (str(both), "expected"))
        if len(ours.keys() & theirs.keys()) < (FEW if rungs else len(_seeds(rung, steps))):
            continue
        lows = [t_interval(differences(ours, theirs, role)).low for role in ROLES]
        if min(lows) <= BOUNDS[steps] or any(fell(row) for row in ours.values()):
            rungs.append((rung, steps))
    return rungs


def of(done: Stored, rung: str, arm: str, steps: int) -> dict[int, dict[str, Any]]:
    """Return seed -> result, of this protocol or the first one, for the seeds that decide."""
    first = peers.stored()
    return {
        seed: row
        for seed in _seeds(rung, steps)
        if (
            row := done.get(Run(rung, arm, seed, steps))
            or first.get(peers.Run(rung, arm, seed, steps))
        )
    }


def stored() -> dict[Run, dict[str, Any]]:
    """Return the finished runs and their results."""
    return runs.stored(RESULTS, Run)


def train(run: Run, out: Path) -> dict[str, Any]:
    """Train, and return the line to store."""
    folder = out / run.name
    kind = OwnLoop if run.arm in OTHERS else SweepCommand
    spent = finish(kind("train", (*run.flags, "--run-dir", str(folder)), folder, "summary.json"))
    row = {
        **asdict(run),
        "command": " ".join(("python", run.program, *(quoted(flag) for flag in run.flags))),
        **spent,
        **taught(folder),
        **_rescues(folder),
        "read": _read(folder),
    }
    shutil.rmtree(folder)
    return row


def _rescues(folder: Path) -> dict[str, Any]:
    """Return what hints did for failed roles, before training and after."""
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    names = ("rescue_rate", "retry_rate", "hint_lift")
    return {
        "rescues": {
            when: {name: summary[when].get(name) for name in names} for when in ("before", "after")
        }
    }


def _read(folder: Path) -> dict[str, list[int]]:
    """Return role -> [rows that core-teaching would read again, those that were]; of other hints
    alone, where the two differ."""
    log = folder / "other_hints.jsonl"
    counts = {role: [0, 0] for role in ROLES}
    if not log.exists():
        return {}
    # Steps after the last checkpoint stand twice in the log of a resumed run.
    steps = {line["step"]: line for line in map(json.loads, log.read_text().splitlines())}
    for line in steps.values():
        for role in ROLES:
            asked, shown = line.get(role, (0, 0))
            counts[role][0] += asked
            counts[role][1] += shown
    return counts
