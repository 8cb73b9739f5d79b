"""Protocol of EAPO as published with the tiny team, against training alone for as many tokens.

A run is one training; a finished one is a line of docs/evidence/eapo-published.jsonl.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.cli.arguments import overlay
from coterie.extras.papers.sweep_commands import SweepCommand
from coterie.training.run.directory import METRICS, RunDirectory
from evidence import runs
from evidence.runs import ROOT, finish

RESULTS = ROOT / "docs/evidence/eapo-published.jsonl"
SEEDS = range(120, 130)
BLOCK = 10
"""Steps per point of the training curve."""
_PRESET = ("--preset", "eapo-tiny")
ARMS: Mapping[str, tuple[str, ...]] = {
    "published": _PRESET,
    # As many policy tokens as EAPO took on this seed; they end before the steps do.
    "alone": (*_PRESET, "--env.consult", "never", "--steps", "1000", "--tokens", "<tokens>"),
}
MEASURES = ("avg@n/alone", "f1/alone", "pass@8/alone", "avg@n/assisted", "consult_rate")
_CURVES = ("correct", "consulted", "accepted")


@dataclass(frozen=True)
class Run:
    """One training of the protocol."""

    arm: str
    seed: int

    @property
    def name(self) -> str:
        """Return the name of the run's folder."""
        return f"eapo-published-{self.arm}-{self.seed}"

    def flags(self, tokens: int | None = None) -> tuple[str, ...]:
        """Return the flags of the program, without the run's folder.

        Args:
            tokens: policy tokens that EAPO took on this seed, for training alone.
        """
        words = (word.replace("<tokens>", str(tokens)) for word in ARMS[self.arm])
        return tuple(overlay([*words, "--seed", str(self.seed), "--no-episodes-log"]))


def planned() -> Iterator[Run]:
    """Yield all runs of the protocol in order: both arms of a seed before the next seed."""
    yield from (Run(arm, seed) for seed in SEEDS for arm in ARMS)


def stored() -> dict[Run, dict[str, Any]]:
    """Return the finished runs and their results."""
    return runs.stored(RESULTS, Run)


def train(run: Run, out: Path) -> dict[str, Any]:
    """Train, and return the line to store; training alone first needs EAPO's line of the seed."""
    tokens = None
    if run.arm == "alone":
        tokens = stored()[Run("published", run.seed)]["tokens"]
    folder = out / run.name
    flags = run.flags(tokens)
    spent = finish(
        SweepCommand("train", (*flags, "--run-dir", str(folder)), folder, "summary.json")
    )
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    steps = RunDirectory.reopen(folder).read_log(METRICS)
    blocks = [steps[start : start + BLOCK] for start in range(0, len(steps), BLOCK)]
    row = {
        **asdict(run),
        "command": " ".join(("python train.py", *flags)),
        **spent,
        "steps": len(steps),
        "tokens": int(steps[-1]["rollout/learner_tokens_total"]),
        **{
            when: {name: summary[when].get(name) for name in MEASURES}
            for when in ("before", "after")
        },
        "curve": {
            name: [
                round(float(np.mean([s[f"measured/policy/{name}"] for s in block])), 4)
                for block in blocks
            ]
            for name in _CURVES
        },
    }
    shutil.rmtree(folder)
    return row
