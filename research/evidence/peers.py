"""First protocol of the evidence: results of roles that teach each other, and of each alone.

A run is one training. A finished one is a line of docs/evidence/results.jsonl, as are those of the
rounds before (docs/LOG.md): each line has its command and its commit, and can be run again.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from coterie.cli.arguments import overlay
from coterie.extras.papers.sweep_commands import SweepCommand
from evidence import runs
from evidence.runs import ROOT, finish, outcomes, quoted, taught

RESULTS = ROOT / "docs/evidence/results.jsonl"
ROLES = ("alice", "bob")
LENGTH = 330
RUNGS = {
    "complementary": "chains?mix=0.5,0.5,0&min_length=5&max_length=5",
    "disjoint": "chains?mix=0.5,0.5,0&min_length=5&max_length=5",
    "default": "chains?mix=0.25,0.25,0.5",
    "between": "chains?mix=0.375,0.375,0.25&min_length=4&max_length=5",
    "recall": "recall?letters=1&named=0.15&unknown=0&min_length=3&max_length=4",
}
MODELS = {"disjoint": ("--agents.alice.model", "tiny:gina", "--agents.bob.model", "tiny:hugo")}
"""Of the roles, where they are not the environment's."""
ALONE = (
    *("--preset", "core-gated", "--env.k-hinted", "0", "--group-by", "problem+role"),
    *("--env.alpha", "0", "--env.w-explore", "0", "--env.lambda-cm", "0", "--env.lambda-ta", "0"),
    *("--env.r-teach", "0"),
)
DISTILLED = ("--env.reread", "wrong", "--algo.distillation.beta", "1")
ARMS = {
    "plain": (*ALONE, "--env.k-cold", "3"),
    "alone-6": (*ALONE, "--env.k-cold", "6"),
    "expected": (
        *(*ALONE, "--env.k-cold", "3", "--env.teacher", "prefer-peer", *DISTILLED),
        *("--env.reread", "unsolved", "--env.reread-least", "0.5"),
        *("--algo.distillation.likeliest", "64", "--algo.distillation.fade", "1"),
    ),
    "own-hint": (*ALONE, "--env.k-cold", "3", "--env.reread-hint", "own", *DISTILLED),
    "core": ("--preset", "core-gated"),
}
TAUGHT = "expected"
"""The arm that is compared with plain."""
DECIDING: Mapping[tuple[str, int], Sequence[int]] = {
    ("disjoint", LENGTH): range(80, 85),
    ("disjoint", 2 * LENGTH): range(80, 85),
    ("default", LENGTH): range(100, 112),
    ("between", LENGTH): (*range(80, 85), *range(100, 107)),
    ("recall", LENGTH): range(60, 72),
    ("complementary", LENGTH): range(60, 65),
    ("complementary", 2 * LENGTH): range(60, 70),
}
"""Seeds of each rung and length."""
BASELINES = {("disjoint", LENGTH): ("alone-6", "own-hint", "core")}
"""More arms; they decide nothing."""


@dataclass(frozen=True)
class Run:
    """One training of the protocol."""

    rung: str
    arm: str
    seed: int
    steps: int
    env: ClassVar[tuple[str, ...]] = ("--env", "core-teaching")
    """Flags before all others."""
    algo: ClassVar[tuple[str, ...]] = ("--algo", "gspo")
    """Flags behind those."""
    arms: ClassVar[Mapping[str, Sequence[str]]] = ARMS
    """Arm -> its flags."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the flags of the program, without the run's folder."""
        flags = (
            *(*self.env, *self.algo, "--seed", str(self.seed), "--steps", str(self.steps)),
            *("--problems.train", RUNGS[self.rung], "--problems.held-out", "512"),
            *("--no-episodes-log", *self.arms[self.arm], *MODELS.get(self.rung, ())),
        )
        return tuple(overlay(flags))

    @property
    def name(self) -> str:
        """Return the name of the run's folder."""
        return f"{self.rung}-{self.arm}-{self.steps}-{self.seed}"


def planned() -> Iterator[Run]:
    """Yield all runs of the protocol in order; the arms of a seed stay together."""
    for (rung, steps), seeds in DECIDING.items():
        arms = ("plain", TAUGHT, *BASELINES.get((rung, steps), ()))
        yield from (Run(rung, arm, seed, steps) for seed in seeds for arm in arms)


def stored() -> dict[Run, dict[str, Any]]:
    """Return the finished runs and their results."""
    return runs.stored(RESULTS, Run)


def train(run: Run, out: Path) -> dict[str, Any]:
    """Train, measure the roles' majority votes, and return the line to store."""
    folder = out / run.name
    flags = (*run.flags, "--run-dir", str(folder))
    spent = finish(SweepCommand("train", flags, folder, "summary.json"))
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    first, _ = outcomes(folder)
    return {
        **asdict(run),
        "command": " ".join(("python train.py", *(quoted(flag) for flag in run.flags))),
        **spent,
        **taught(folder),
        "peer_only": {role: _peer_only(first, role) for role in ROLES},
        "hint_lift": summary["before"].get("hint_lift"),
        "votes": _votes(run, folder),
    }


def _peer_only(correct: Mapping[str, Sequence[Sequence[int]]], role: str) -> float:
    """Share of problems that the role never solves and its peer does at least once."""
    (peer,) = set(ROLES) - {role}
    pairs = list(zip(correct[role], correct[peer], strict=True))
    return round(sum(not any(own) and any(other) for own, other in pairs) / len(pairs), 4)


def _votes(run: Run, folder: Path) -> dict[str, float]:
    """Return majority accuracy of six answers: from each role alone, and three from each."""
    problems = f"{RUNGS[run.rung]}&seed={1000 + run.seed}"
    policies = [f"{role}={folder}" for role in ROLES]
    flags = ("--questions", "256", "--samples", "6", "--resamples", "1", "--no-workflow")
    where = ("--problems", problems, "--seed", str(run.seed), "--out", str(folder / "votes"))
    arguments = ("suite", "--policies", *policies, *flags, *where)
    job = SweepCommand("benchmark", arguments, folder / "votes", "results.json", False)
    job.run()
    results = json.loads((job.folder / job.done).read_text(encoding="utf-8"))
    rows = results["suites"]["core"]["sets"][problems]["rows"]
    return {"alice": rows["vote/alice"], "bob": rows["vote/bob"], "team": rows["vote"]}
