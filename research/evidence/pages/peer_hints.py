"""Tables of research/2026-11-peer-hints.md."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from coterie.envs.core_teaching.evaluation import EVALUATION
from coterie.evaluation.metrics.intervals import t_interval
from evidence.measures import ROLES
from evidence.studies import studies
from evidence.tables import (
    Point,
    Rows,
    broken,
    by_role,
    cpu,
    differences,
    fell,
    mean,
    millions,
    over_problems,
    picture,
    rate,
    scatter,
    section,
    select,
    signed,
)

_RUNGS = ("complementary", "disjoint", "default", "between", "recall")


def peer_seeds(rung: str, steps: int) -> Sequence[int]:
    """Return the seeds of a problem set: of so many steps, or of the shorter runs."""
    seeds = {(run["rung"], run["steps"]): run["seeds"] for run in studies()["peers"].runs}
    return seeds.get((rung, steps)) or seeds[rung, 330]


def peer_arms(rung: str, steps: int) -> dict[str, Rows]:
    """Return arm -> seed -> line of a problem set."""
    rows = studies()["peers"].stored().values()
    return select(rows, peer_seeds(rung, steps), rung=rung, steps=steps)


def lines() -> Iterator[str]:
    """Yield conditions, a table for each problem set and length, and correlations."""
    cells = [(run["rung"], run["steps"]) for run in studies()["peers"].runs]
    states = [verdict(rung, steps, peer_arms(rung, steps)) for rung, steps in cells]
    head = ("what would make *expected* the default", "state")
    yield from section("Where it stands", head, states)
    yield ""
    yield (
        "Pass@1 after training: **mean** (each seed in order). Differences from plain: mean [95 % "
        "over seeds]; (95 % over problems). Tokens and CPU seconds are a run's."
    )
    for rung, steps in cells:
        of_arms = peer_arms(rung, steps)
        order = [a for a in ("plain", "alone-6", "expected", "own-hint", "core") if a in of_arms]
        head = (
            "arm | seeds | before | alice | bob | alice − plain | bob − plain | fell apart | "
            "tokens, M | CPU s | vote of 6: alice, bob, both"
        )
        rows = [_peers(arm, of_arms) for arm in order]
        yield from section(f"{rung.capitalize()}, {steps} steps", head.split(" | "), rows)
    points = foretellers()
    yield ""
    for name, pairs in points.items():
        correlation = np.corrcoef([pair[2] for pair in pairs], [pair[3] for pair in pairs])[0, 1]
        yield (
            f"Correlation of the gain with the {name} before training: "
            f"{signed(float(correlation))} ({len(pairs)} pairs of runs and roles)."
        )
    scatter(points, "gains.png", "Pass@1: peer distillation − plain")
    yield from picture("gains.png", "Gain of peer distillation")


def verdict(rung: str, steps: int, of_arms: Mapping[str, Rows]) -> tuple[str, str]:
    """Return a condition for the default, and whether it holds."""
    # What the lower end of each role's difference must exceed.
    least = 0.0 if rung in ("complementary", "disjoint") else -0.02
    ours, plain = of_arms["expected"], of_arms["plain"]
    lows = [t_interval(differences(ours, plain, role)).low for role in ROLES]
    good = all(low > least for low in lows) and not any(map(fell, ours.values()))
    bound = signed(least) if least else "0"
    state = "**holds**" if good else "**fails**"
    return f"{rung}, {steps} steps: above {bound}, none falls apart", state


def _peers(arm: str, of_arms: Mapping[str, Rows]) -> list[str]:
    rows, plain = of_arms[arm], of_arms["plain"]
    known = rows.values()
    return [
        *(arm, str(len(rows))),
        " / ".join(mean(rate(row, role, "before") for row in known) for role in ROLES),
        *by_role(rows),
        *(over_problems(rows, plain, role) if arm != "plain" else "" for role in ROLES),
        *(broken(rows), millions(rows), cpu(known)),
        ", ".join(mean(row["votes"][who] for row in known) for who in (*ROLES, "team")),
    ]


def foretellers() -> dict[str, list[Point]]:
    """Return what may foretell the gain over plain -> a point for each run and role."""
    points: dict[str, list[Point]] = {
        "share of problems that only the peer solves": [],
        "hints that helped less those that hurt": [],
    }
    for rung in _RUNGS:
        of_arms = peer_arms(rung, 330)
        ours, plain = of_arms["expected"], of_arms["plain"]
        for seed in sorted(ours.keys() & plain.keys()):
            for role in ROLES:
                gain = rate(ours[seed], role) - rate(plain[seed], role)
                # The lift of hints is known of both roles together.
                known = (ours[seed]["peer_only"][role], ours[seed]["hint_lift"])
                for pairs, x in zip(points.values(), known):
                    if x is not None:
                        pairs.append((rung, role, x, gain))
    return points


def baseline() -> dict[str, Any]:
    """Return what a run by the defaults would reach without peers: the means over seeds."""
    plain = peer_arms("complementary", 330)["plain"]
    metrics: dict[str, list[float]] = {}
    for row in plain.values():
        problems = list(range(len(row["right"][ROLES[0]])))
        # Pass@k depends on how many of a problem's three answers are right, not on which.
        correct = {r: [[1] * int(n) + [0] * (3 - int(n)) for n in row["right"][r]] for r in ROLES}
        outcomes = {"problems": problems, "correct": correct, "hints": [], "leaked": []}
        for name, estimate in EVALUATION.estimate(outcomes, 1, 0).items():
            if np.isfinite(estimate.value):
                metrics.setdefault(name, []).append(estimate.value)
    return {
        "algo": "gspo",
        "command": "python train.py --env core-teaching --algo gspo --env.reread none "
        "--algo.distillation.beta 0",
        "seeds": sorted(plain),
        "metrics": {name: round(float(np.mean(values)), 4) for name, values in metrics.items()},
    }
