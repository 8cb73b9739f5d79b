"""Fourth protocol of the evidence: lone traces that are read again behind an expert's reply.

A run is one command with one seed; a finished one is a line of docs/evidence/consulting.jsonl.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evidence import contests, runs
from evidence.contests import EAPO, EXPERTS, IMITATED, Arm, scored_by
from evidence.runs import ROOT

RESULTS = ROOT / "docs/evidence/consulting.jsonl"
SCREEN = (3, 4)
SEEDS = tuple(range(40, 50))
FORMS = ("reread", "reread-long")
"""In order of preference where the screen cannot tell them apart."""
_TIE = 0.02
# As many traces of a problem as without lone ones.
_ASKS = (*EAPO, "--agents.expert.model", EXPERTS["good"])
_LONE = (*_ASKS, "--env.lone", "1", "--env.group-size", "4")
_READ = ("--env.reread", "wrong", "--algo.distillation.beta", "1")
_LIKELIEST = ("--algo.distillation.likeliest", "64")
# The help does not fade to nothing before the run ends.
_LONG = ("--env.accept-span", "200", "--env.penalty-start", "200")
_TRAINED = {
    "alone": Arm((*EAPO, "--env.consult", "never")),
    "consulted": Arm(_ASKS),
    "lone": Arm(_LONE),
    "reread": Arm((*_LONE, *_READ, *_LIKELIEST)),
    "reread-long": Arm((*_LONE, *_READ, *_LIKELIEST, *_LONG)),
}


def _imitated(form: str) -> Arm:
    """Imitate the expert for as many of its tokens as the form takes."""
    flags = (*IMITATED, "--expert", EXPERTS["good"], "--expert-tokens", f"<tokens of {form}>")
    return Arm(flags, "benchmark", "distillation.json", (form,))


def _scored(*trained: str, form: str = "") -> Arm:
    policies = {name: f"<{name}>" for name in trained}
    if form:
        policies[f"imitated-{form}"] = f"<imitated-{form}>/final/policy"
    return scored_by(policies)


ARMS: Mapping[str, Arm] = {
    **_TRAINED,
    **{f"imitated-{form}": _imitated(form) for form in FORMS},
    "scored-screen": _scored("lone", *FORMS),
    **{f"scored-{form}": _scored("alone", "consulted", "lone", form, form=form) for form in FORMS},
}


@dataclass(frozen=True)
class Run(contests.Run):
    """One command of the protocol; its contest is ``consult``."""

    @property
    def what(self) -> Arm:
        return ARMS[self.arm]


def planned() -> Iterator[Run]:
    """Yield all runs in order, as far as results say which these are."""
    for seed in SCREEN:
        yield from (Run("consult", arm, seed) for arm in ("lone", *FORMS, "scored-screen"))
    if (form := chosen(stored())) is not None:
        for seed in SEEDS:
            arms = ("alone", "consulted", "lone", form, f"imitated-{form}", f"scored-{form}")
            yield from (Run("consult", arm, seed) for arm in arms)


def chosen(done: Mapping[Run, Mapping[str, Any]]) -> str | None:
    """Return the form that goes on from the screen; None before it is over."""
    rows = [done.get(Run("consult", "scored-screen", seed)) for seed in SCREEN]
    if not all(rows):
        return None
    first, second = (float(np.mean([row["after"][form] for row in rows if row])) for form in FORMS)
    return FORMS[1] if second - first >= _TIE else FORMS[0]


def stored() -> dict[Run, dict[str, Any]]:
    """Return the finished runs and their results."""
    return runs.stored(RESULTS, Run)


def train(run: Run, out: Path) -> dict[str, Any]:
    """Run the command, after the runs that it needs, and return the line to store."""
    return contests.train(run, out)
