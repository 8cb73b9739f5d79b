"""The runs behind docs/evidence.md: what is missing is trained, run by run, and stored.

    python tools/evidence.py --list              # what is missing, in the order of the protocol
    nice python tools/evidence.py --until 13:30  # trains it; begins no run after that time
    python tools/evidence.py --only default-core # those with this in their name
    python tools/evidence.py --tables            # makes the page's tables and picture anew

A finished run is a line of docs/evidence/results.jsonl and is never run again: another session goes
on with the next one. A run that was cut off goes on from its last checkpoint. Start it as often as
there are cores: a run is trained by one process only.
"""

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from coterie.comparison.sweep import Job
from coterie.datatypes.arguments import overlay
from evidence_runs import ROOT, finish, outcomes, quoted, taught, train_all

RESULTS = ROOT / "docs/evidence/results.jsonl"
ROLES = ("alice", "bob")
SEEDS = (20, 21, 22, 23, 24)
SCREEN_SEEDS = (3, 4)
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
    *("--preset", "core-tiny", "--env.k-hinted", "0", "--group-by", "problem+role"),
    *("--env.alpha", "0", "--env.w-explore", "0", "--env.lambda-cm", "0", "--env.lambda-ta", "0"),
    *("--env.r-teach", "0"),
)
DISTILLED = ("--env.reread", "wrong", "--algo.distillation.beta", "1")
ARMS = {
    "plain": (*ALONE, "--env.k-cold", "3"),
    "distillation": (*ALONE, "--env.k-cold", "3", "--env.teacher", "prefer-peer", *DISTILLED),
    "sure": (
        *(*ALONE, "--env.k-cold", "3", "--env.teacher", "prefer-peer", *DISTILLED),
        *("--env.reread-least", "0.5"),
    ),
    "fading": (
        *(*ALONE, "--env.k-cold", "3", "--env.teacher", "prefer-peer", *DISTILLED),
        *("--env.reread-least", "0.5", "--algo.distillation.fade", "1"),
    ),
    "expected": (
        *(*ALONE, "--env.k-cold", "3", "--env.teacher", "prefer-peer", *DISTILLED),
        *("--env.reread", "unsolved", "--env.reread-least", "0.5"),
        *("--algo.distillation.likeliest", "64", "--algo.distillation.fade", "1"),
    ),
    "core": ("--preset", "core-tiny"),
    "own-hint": (*ALONE, "--env.k-cold", "3", "--env.reread-hint", "own", *DISTILLED),
    "alone-6": (*ALONE, "--env.k-cold", "6"),
}
_AFTER_COLD = (*ARMS["core"], "--group-by", "problem+role", "--env.learn-hinted-after", "cold")
# Forms that are looked at once, on seeds that confirm nothing.
_SCREENED = {
    "start": (*ARMS["distillation"], "--algo.distillation.reader", "start"),
    "after-cold": _AFTER_COLD,
    "after-cold-kl": (*_AFTER_COLD, "--algo.kl-coefficient", "0.04"),
}
GONE = ("sharing", "contrast", "gold-hint", "reward", "current")
"""Screened arms whose settings are gone. Each stored row has its command and its commit."""
_BOTH = ("plain", "distillation")
# Of the first two rounds, which had failed, what was run; and the screen. Within a block, all arms
# of a seed before the next seed.
EARLIER: Sequence[tuple[str, Sequence[str], int, Sequence[int]]] = (
    ("complementary", (*_BOTH, "core"), LENGTH, SEEDS),
    ("complementary", _BOTH, 2 * LENGTH, SEEDS[:3]),
    ("default", _BOTH, LENGTH, SEEDS),
    ("between", ("plain",), LENGTH, SEEDS[:1]),
    ("recall", _BOTH, LENGTH, SEEDS),
    ("recall", ("plain", "sure"), LENGTH, (*range(25, 30), *SCREEN_SEEDS)),
    ("complementary", ("plain", "sure"), LENGTH, range(25, 30)),
    ("complementary", (*_BOTH, *_SCREENED, *GONE), LENGTH, SCREEN_SEEDS),
)


@dataclass(frozen=True)
class Run:
    """One training of the protocol."""

    rung: str
    arm: str
    seed: int
    steps: int

    @property
    def flags(self) -> tuple[str, ...]:
        """As for ``train.py``, but for where the run goes."""
        flags = (
            *("--env", "core-teaching", "--algo", "gspo", "--seed", str(self.seed)),
            *("--steps", str(self.steps), "--problems.train", RUNGS[self.rung]),
            *("--problems.held-out", "512", "--no-episodes-log", *(ARMS | _SCREENED)[self.arm]),
            *MODELS.get(self.rung, ()),
        )
        return tuple(overlay(flags))

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.rung}-{self.arm}-{self.steps}-{self.seed}"


@dataclass(frozen=True)
class Round:
    """An arm that is compared with plain, so that it may become the default."""

    arm: str
    seeds: Mapping[tuple[str, int], Sequence[int]]
    """Of each rung and length."""
    baselines: Sequence[str] = ()
    """More arms on the first of these; they decide nothing."""

    @property
    def runs(self) -> Iterator[Run]:
        """All of it, in order: those that decide first, and the arms of a seed together."""
        for (rung, steps), seeds in self.seeds.items():
            yield from (
                Run(rung, arm, seed, steps) for seed in seeds for arm in ("plain", self.arm)
            )
        (rung, steps), seeds = next(iter(self.seeds.items()))
        yield from (Run(rung, arm, seed, steps) for seed in seeds for arm in self.baselines)


_DECIDING = (
    *(("complementary", LENGTH), ("complementary", 2 * LENGTH)),
    *(("default", LENGTH), ("between", LENGTH), ("recall", LENGTH)),
)


# A later round's arm was found in why the one before it failed.
ROUNDS = (
    Round("distillation", dict.fromkeys(_DECIDING, SEEDS)),
    Round("sure", dict.fromkeys(_DECIDING, range(25, 30))),
    # Of twelve seeds and four more rungs, until it had failed.
    Round("fading", {("recall", LENGTH): range(40, 45)}),
    Round(
        "expected",
        {
            ("recall", LENGTH): range(60, 72),
            # Until it had failed, and for the record half of what came next.
            ("complementary", 2 * LENGTH): range(60, 70),
            ("complementary", LENGTH): range(60, 65),
        },
    ),
    # The same arm, with a pair that the question can be asked of. Recall stands from before.
    Round(
        "expected",
        {
            **dict.fromkeys((("disjoint", LENGTH), ("disjoint", 2 * LENGTH)), range(80, 85)),
            ("default", LENGTH): range(80, 85),
        },
        baselines=("alone-6", "core", "own-hint"),
    ),
    # Where five seeds cannot tell 0 from -.02.
    Round(
        "expected",
        {
            ("default", LENGTH): range(100, 112),
            ("between", LENGTH): (*range(80, 85), *range(100, 107)),
        },
    ),
)


def latest(rung: str, steps: int = LENGTH) -> Sequence[int]:
    """Seeds of the last round in which it was run."""
    return next(of.seeds[rung, steps] for of in reversed(ROUNDS) if (rung, steps) in of.seeds)


def planned() -> Iterator[Run]:
    """All runs of the protocol, in order: those of the last round first."""
    for of in reversed(ROUNDS[2:]):
        yield from of.runs
    for rung, arms, steps, seeds in EARLIER:
        yield from (Run(rung, arm, seed, steps) for seed in seeds for arm in arms)


def stored(path: Path = RESULTS) -> dict[Run, dict[str, Any]]:
    """What is finished."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    rows = [json.loads(line) for line in lines]
    return {Run(*(row[key] for key in ("rung", "arm", "seed", "steps"))): row for row in rows}


def write(stored: Mapping[Run, Any], missing: Sequence[Run]) -> None:
    """Make tables and picture of the page anew."""
    import evidence_tables

    evidence_tables.write(stored, missing)


def train(run: Run, out: Path) -> dict[str, Any]:
    """Train it, let its roles vote, and give the line that is stored."""
    folder = out / run.name
    flags = (*run.flags, "--run-dir", str(folder))
    spent = finish(Job("train", flags, folder, "summary.json"))
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
    """Accuracy of six answers' majority, of each role alone and of three from each."""
    problems = f"{RUNGS[run.rung]}&seed={1000 + run.seed}"
    policies = [f"{role}={folder}" for role in ROLES]
    flags = ("--questions", "256", "--samples", "6", "--resamples", "1", "--no-workflow")
    where = ("--problems", problems, "--seed", str(run.seed), "--out", str(folder / "votes"))
    arguments = ("suite", "--policies", *policies, *flags, *where)
    job = Job("benchmark", arguments, folder / "votes", "results.json", False)
    job.run()
    found = json.loads((job.folder / job.done).read_text(encoding="utf-8"))
    rows = found["suites"]["core"]["sets"][problems]["rows"]
    return {"alice": rows["vote/alice"], "bob": rows["vote/bob"], "team": rows["vote"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="show what is missing, and train none")
    parser.add_argument("--tables", action="store_true", help="make docs/evidence.md's tables anew")
    parser.add_argument("--only", default="", help="of the runs those with this in their name")
    parser.add_argument("--until", default="23:59", help="begin no run after this time, HH:MM")
    parser.add_argument("--out", type=Path, default=ROOT / "runs/evidence", help="where runs go")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import evidence
    import evidence_contests

    # A protocol is a module with RESULTS, planned, stored, train and write.
    for protocol in (evidence, evidence_contests):
        done = protocol.stored()
        missing = [run for run in protocol.planned() if run not in done]
        wanted = [run for run in missing if asked.only in run.name]
        if asked.tables:
            protocol.write(done, missing)
        elif asked.list:
            print("".join(f"{run.name}\n" for run in wanted), end="")
        else:
            asked.out.mkdir(parents=True, exist_ok=True)
            train_all(protocol, wanted, asked.out, asked.until)


if __name__ == "__main__":
    main()
