"""Protocol of CoRe as published: whether its diversity terms pay, and what they do.

A run is one training; a finished one is a line of docs/evidence/published.jsonl.
"""

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.extras.papers.sweep_commands import SweepCommand
from coterie.training.run.directory import METRICS, RunDirectory
from evidence import peers, runs
from evidence.peers import LENGTH, ROLES
from evidence.runs import ROOT, finish, quoted, taught

RESULTS = ROOT / "docs/evidence/published.jsonl"
TERMS = ("exploration", "cross_model")
_PRESET = ("--preset", "core-tiny")
ARMS = {
    "published": _PRESET,
    "no-exploration": (*_PRESET, "--env.w-explore", "0"),
    "no-cross": (*_PRESET, "--env.lambda-cm", "0"),
    "alone": (
        *(*_PRESET, "--env.k-cold", "3", "--env.k-hinted", "0", "--group-by", "problem+role"),
        *("--env.alpha", "0", "--env.w-explore", "0", "--env.lambda-cm", "0"),
        *("--env.lambda-ta", "0", "--env.r-teach", "0"),
    ),
}
SEEDS = {"disjoint": range(80, 85), "default": range(100, 105)}


@dataclass(frozen=True)
class Run(peers.Run):
    """One training of the protocol."""

    # The preset names both.
    env = ()
    algo = ()
    arms = ARMS

    @property
    def name(self) -> str:
        """Return the name of the run's folder."""
        return f"published-{super().name}"


def planned() -> Iterator[Run]:
    """Yield all runs of the protocol in order."""
    for rung, seeds in SEEDS.items():
        yield from (Run(rung, arm, seed, LENGTH) for seed in seeds for arm in ARMS)


def stored() -> dict[Run, dict[str, Any]]:
    """Return the finished runs and their results."""
    return runs.stored(RESULTS, Run)


def train(run: Run, out: Path) -> dict[str, Any]:
    """Train, and return the line to store."""
    folder = out / run.name
    flags = (*run.flags, "--run-dir", str(folder))
    spent = finish(SweepCommand("train", flags, folder, "summary.json"))
    steps = RunDirectory.reopen(folder).read_log(METRICS)
    row = {
        **asdict(run),
        "command": " ".join(("python train.py", *(quoted(flag) for flag in run.flags))),
        **spent,
        **taught(folder),
        "paid": {
            role: {
                term: round(float(np.mean([s[f"paid/{role}/{term}"] for s in steps])), 4)
                for term in TERMS
            }
            for role in ROLES
        },
    }
    shutil.rmtree(folder)
    return row
