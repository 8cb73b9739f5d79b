"""Tables of research/2026-11-peer-hints.md and a picture of docs/evidence.md, of stored results."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.envs.core_teaching.evaluation import EVALUATION
from coterie.evaluation.compare.pictures import drawing
from coterie.evaluation.metrics.intervals import bootstrap, t_interval
from evidence import peers
from evidence.cells import change, each, mean, signed
from evidence.peers import DECIDING, LENGTH, ROLES, RUNGS, TAUGHT, Run, stored
from evidence.runs import ROOT, Row, differences, fell, missing_lines, put, rate

PAGE = ROOT / "research/2026-11-peer-hints.md"
PICTURE = ROOT / "docs/evidence/gains.png"
BASELINE = ROOT / "envs/core_teaching/alone.json"
_ORDER = ("plain", "alone-6", TAUGHT, "own-hint", "core")

Stored = Mapping[Run, Row]


def write() -> None:
    """Write tables and picture into the page."""
    rows = stored()
    put(PAGE, ["", *_tables(rows), *missing_lines(peers), "", ""])
    draw(rows)
    plain = arms(rows, "complementary", LENGTH).get("plain", {})
    if len(plain) == len(DECIDING["complementary", LENGTH]):
        BASELINE.write_text(json.dumps(alone(plain), indent=2) + "\n", encoding="utf-8")


def alone(plain: Mapping[int, Row]) -> dict[str, Any]:
    """What the table of a run by the defaults shows beside itself: the means over seeds of what
    plain ends with."""
    metrics: dict[str, list[float]] = {}
    for row in plain.values():
        problems = list(range(len(row["right"][ROLES[0]])))
        # Pass@k asks how many of a problem's three answers are right, not which.
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


def arms(stored: Stored, rung: str, steps: int) -> dict[str, dict[int, Row]]:
    """Return arm -> seed -> row, for the seeds that decide."""
    rows: dict[str, dict[int, Row]] = {}
    for run, row in stored.items():
        if (run.rung, run.steps) == (rung, steps) and run.seed in DECIDING[rung, steps]:
            rows.setdefault(run.arm, {})[run.seed] = row
    return rows


def difference(ours: Mapping[int, Row], plain: Mapping[int, Row], role: str) -> str:
    """Format the difference from plain, by seed, and by problem over these seeds."""
    seeds = sorted(ours.keys() & plain.keys())
    if not seeds:
        return ""
    right = [
        np.concatenate([_per_problem(row[seed], role) for seed in seeds]) for row in (ours, plain)
    ]
    problems = right[0] - right[1]
    over = bootstrap(problems[:, None], lambda mean: mean[..., 0], resamples=2000)
    over_seeds = change(differences(ours, plain, role))
    return f"{over_seeds}; ({signed(over.low)}, {signed(over.high)})"


def _per_problem(row: Row, role: str) -> np.ndarray:
    """Return the share of right answers to each held-out problem."""
    right = np.array([*row["right"][role]], int)
    return right * len(right) / row["after"][role][1]


def verdicts(stored: Stored) -> Iterator[str]:
    """Rows of a table: whether each condition for the default holds, fails or is open."""
    for (rung, steps), among in DECIDING.items():
        # What the lower end of each role's difference must exceed.
        least = 0.0 if rung in ("complementary", "disjoint") else -0.02
        of_arms = arms(stored, rung, steps)
        ours, plain = of_arms.get(TAUGHT, {}), of_arms.get("plain", {})
        seeds = ours.keys() & plain.keys()
        lows = [t_interval(differences(ours, plain, role)).low for role in ROLES]
        good = all(low > least for low in lows) and not any(fell(ours[seed]) for seed in seeds)
        state = f"open: {len(seeds)} of {len(among)} seeds"
        if len(seeds) == len(among):
            state = "**holds**" if good else "**fails**"
        bound = signed(least) if least else "0"
        yield f"| {rung}, {steps} steps: above {bound}, none falls apart | {state} |"


def _tables(stored: Stored) -> list[str]:
    head = f"| what would make *{TAUGHT}* the default | |"
    lines = ["### Where it stands", "", head, "|---|---|", *verdicts(stored), ""]
    lines += [
        "Pass@1 after training: **mean** (each seed in order). Differences from plain: mean [95 % "
        "over seeds]; (95 % over problems). Tokens and CPU seconds are a run's."
    ]
    for (rung, steps), among in DECIDING.items():
        if of_arms := arms(stored, rung, steps):
            lines += ["", f"### {rung.capitalize()}, {steps} steps", "", *_table(of_arms, among)]
    picture = "![Gain of peer distillation](../docs/evidence/gains.png)"
    return [*lines, "", *_correlations(stored), "", picture]


def _table(of_arms: Mapping[str, Mapping[int, Row]], planned: Sequence[int]) -> list[str]:
    lines = [
        "| arm | seeds | before | alice | bob | alice − plain | bob − plain | fell apart "
        "| tokens, M | CPU s | vote of 6: alice, bob, both |",
        f"|{'---|' * 11}",
    ]
    for arm in (arm for arm in _ORDER if arm in of_arms):
        rows = of_arms[arm]
        order = [rows[seed] for seed in sorted(rows)]
        plain = of_arms.get("plain", {}) if arm != "plain" else {}
        lacking = "" if len(rows) == len(planned) else f" of {len(planned)}"
        broken = [f"{role} {seed}" for seed in sorted(rows) for role in fell(rows[seed])]
        votes = (mean([row["votes"][who] for row in order]) for who in (*ROLES, "team"))
        cells = [
            arm,
            f"{len(rows)}{lacking}",
            " / ".join(mean([rate(row, role, "before") for row in order]) for role in ROLES),
            *(each([rate(row, role) for row in order]) for role in ROLES),
            *(difference(rows, plain, role) for role in ROLES),
            ", ".join(broken) or "none",
            f"{np.mean([row['tokens'] for row in order]) / 1e6:.2f}",
            _mean_of(order, "cpu_s", lambda value: f"{value:.0f}"),
            ", ".join(votes),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


Point = tuple[str, str, float, float]
"""Rung, role, what may foretell the gain, the gain over plain."""


def points(stored: Stored, foretell: Callable[[Row, str], float | None]) -> list[Point]:
    """Return a point for each pair of runs of a rung at the default length.

    Args:
        stored: the stored rows.
        foretell: (row of the taught arm, role) -> what may foretell the gain; None: unknown.
    """
    gains: list[Point] = []
    for rung in RUNGS:
        rows = arms(stored, rung, LENGTH)
        ours, plain = (rows.get(arm, {}) for arm in (TAUGHT, "plain"))
        for seed in sorted(ours.keys() & plain.keys()):
            for role in ROLES:
                if (x := foretell(ours[seed], role)) is not None:
                    gains.append((rung, role, x, rate(ours[seed], role) - rate(plain[seed], role)))
    return gains


def _foretellers(stored: Stored) -> dict[str, list[Point]]:
    return {
        "share of problems that only the peer solves": points(
            stored, lambda row, role: row["peer_only"][role]
        ),
        # For both roles together.
        "hints that helped less those that hurt": points(
            stored, lambda row, role: row["hint_lift"]
        ),
    }


def _correlations(stored: Stored) -> list[str]:
    lines: list[str] = []
    for name, pairs in _foretellers(stored).items():
        x, gain = [point[2] for point in pairs], [point[3] for point in pairs]
        if len({*x}) > 2 and len({*gain}) > 2:
            value = signed(float(np.corrcoef(x, gain)[0, 1]))
            lines.append(
                f"Correlation of the gain with the {name} before training: {value} ({len(x)} pairs "
                "of runs and roles)."
            )
    return lines


def draw(stored: Stored, path: Path = PICTURE) -> None:
    """Draw the gain against its possible predictor, measured before training."""
    with drawing(path, 1, 2, figsize=(8, 3.2), layout="constrained", sharey=True) as axes:
        for axis, (name, pairs) in zip(axes, _foretellers(stored).items()):
            for colour, rung in enumerate(RUNGS):
                for marker, role in zip("os", ROLES):
                    dots = [(x, y) for r, who, x, y in pairs if (r, who) == (rung, role)]
                    if dots:
                        axis.plot(*zip(*dots), marker, color=f"C{colour}", label=f"{rung}, {role}")
            axis.axhline(0, color="grey", linewidth=0.8)
            axis.set_xlabel(name, fontsize=8)
            axis.tick_params(labelsize=8)
        axes[0].legend(fontsize=7, frameon=False)
        axes[0].set_ylabel("Pass@1: peer distillation − plain", fontsize=8)


def _mean_of(rows: Sequence[Row], key: str, shown: Callable[[float], str]) -> str:
    values = [row[key] for row in rows if row[key] is not None]
    return shown(float(np.mean(values))) if values else ""
