"""Tables of research/2026-11-controls.md and pictures of docs/evidence.md, of stored results."""

from collections.abc import Iterator, Mapping

import numpy as np

from coterie.evaluation.table import without_zero
from evidence import controls
from evidence.cells import change, each, mean, signed
from evidence.contest_tables import draw
from evidence.controls import BOTH, BOUNDS, LENGTH, LONG, OTHERS, SCREEN, STAGES, Run, Stored
from evidence.peers import ROLES
from evidence.runs import ROOT, Row, differences, fell, missing_lines, put, rate

PAGE = ROOT / "research/2026-11-controls.md"
_CONTROLLED = (("disjoint", LENGTH), ("recall", LENGTH), ("disjoint", LONG))

Rows = Mapping[int, Row]


def write() -> None:
    """Write tables and picture into the page."""
    done = controls.stored()
    put(PAGE, [*_part1(done), *_part2(done), *missing_lines(controls), ""])


def _part1(done: Stored) -> Iterator[str]:
    gains: dict[str, list[float]] = {}
    for rung, steps in _CONTROLLED:
        of_arms = {
            arm: controls.of(done, rung, arm, steps) for arm in ("plain", "expected", *OTHERS)
        }
        seeds = sorted({seed for arm in OTHERS for seed in of_arms[arm]})
        if not seeds:
            continue
        # All of the table is of the seeds that have the arm in the control's row.
        yield from ("", f"### Hints of other problems: {rung}, {steps} steps", "")
        yield (
            "| arm | seeds | alice | bob | alice − plain | bob − plain | expected − it: alice "
            "| bob | part of the gain: alice, bob | rows read: alice, bob | fell apart "
            "| tokens, M |"
        )
        yield f"|{'---|' * 12}"
        for arm, rows in of_arms.items():
            if arm not in OTHERS:
                rows = {seed: row for seed, row in rows.items() if seed in seeds}
            if rows:
                yield f"| {' | '.join(_cells(arm, rows, of_arms))} |"
        if (rung, steps) == _CONTROLLED[0]:
            plain = of_arms["plain"]
            for arm in ("expected", *OTHERS):
                known = {seed: row for seed, row in of_arms[arm].items() if seed in seeds}
                for role in ROLES:
                    gains[f"{arm}: {role}"] = differences(known, plain, role)
    if gains:
        draw(gains, "other-hints.png", "Pass@1: arm − plain, disjoint, 330 steps")
        yield from ("", "![Gain behind other hints](../docs/evidence/other-hints.png)")


def _cells(arm: str, rows: Rows, of_arms: Mapping[str, Rows]) -> list[str]:
    plain, expected = of_arms["plain"], of_arms["expected"]
    blank = ["", ""]
    return [
        *(arm, str(len(rows))),
        *(_each(rows, role) for role in ROLES),
        *(blank if arm == "plain" else _changes(rows, plain)),
        *(_changes(expected, rows) if arm in OTHERS else blank),
        ", ".join(_part(rows, of_arms, role) for role in ROLES) if arm in OTHERS else "",
        ", ".join(_read(rows, role) for role in ROLES) if arm in OTHERS else "",
        _broken(rows),
        f"{np.mean([row['tokens'] for row in rows.values()]) / 1e6:.2f}",
    ]


def _part(rows: Rows, of_arms: Mapping[str, Rows], role: str) -> str:
    """Share of the gain of *expected* that the arm has, over the seeds of all three."""
    seeds = rows.keys() & of_arms["plain"].keys() & of_arms["expected"].keys()
    if not seeds:
        return ""
    means = {
        name: np.mean([rate(arm_rows[seed], role) for seed in seeds])
        for name, arm_rows in (("it", rows), *of_arms.items())
        if name in ("it", "plain", "expected")
    }
    gain = means["it"] - means["plain"]
    return without_zero(float(gain / (means["expected"] - means["plain"])), 2)


def _read(rows: Rows, role: str) -> str:
    """Share of the rows to be read again for which there was a hint."""
    asked, shown = np.sum([row["read"][role] for row in rows.values()], axis=0)
    return without_zero(float(shown / max(asked, 1)), 2)


def _part2(done: Stored) -> Iterator[str]:
    screened = [Run("disjoint", arm, seed, LENGTH) for arm in BOTH for seed in SCREEN]
    if any(run in done for run in screened):
        yield from ("", "### Both: the screen (disjoint, 330 steps)", "", _HEAD, _LINE)
        for arm in BOTH:
            if rows := {run.seed: done[run] for run in screened if run in done and run.arm == arm}:
                yield f"| {' | '.join(_both(arm, rows, {}))} |"
    both = controls.chosen(done)
    gains: dict[str, list[float]] = {}
    for rung, steps in STAGES if both else ():
        of_arms = {arm: controls.of(done, rung, arm, steps) for arm in ("expected", str(both))}
        ours = of_arms[str(both)]
        if not ours:
            continue
        state = "fails" if (rung, steps) in controls.failed(done) else "not failed"
        text = f"lower ends above {signed(BOUNDS[steps])}, none falls apart: **{state}**"
        yield from ("", f"### Both: {rung}, {steps} steps; {text}", "", _HEAD, _LINE)
        for arm, rows in of_arms.items():
            shown = {seed: row for seed, row in rows.items() if seed in ours}
            theirs = of_arms["expected"] if arm == both else {}
            yield f"| {' | '.join(_both(arm, shown, theirs))} |"
        for role in ROLES:
            gains[f"{rung}, {steps}: {role}"] = differences(ours, of_arms["expected"], role)
    if gains:
        draw(gains, "both.png", "Pass@1: with CoRe's second round − the default")


_HEAD = (
    "| arm | seeds | alice | bob | alice − expected | bob − expected | rescued by a hint: before, "
    "after | without it: before, after | fell apart | tokens, M | CPU s |"
)
_LINE = f"|{'---|' * 11}"


def _both(arm: str, rows: Rows, theirs: Rows) -> list[str]:
    cpu = [row["cpu_s"] for row in rows.values() if row["cpu_s"] is not None]
    return [
        *(arm, str(len(rows))),
        *(_each(rows, role) for role in ROLES),
        *_changes(rows, theirs),
        *(_rescued(rows, name) for name in ("rescue_rate", "retry_rate")),
        _broken(rows),
        f"{np.mean([row['tokens'] for row in rows.values()]) / 1e6:.2f}",
        f"{np.mean(cpu):.0f}" if cpu else "",
    ]


def _rescued(rows: Rows, name: str) -> str:
    """Mean before training and after; the first protocol did not store it."""
    values: list[str] = []
    for when in ("before", "after"):
        known = [
            row["rescues"][when][name]
            for row in rows.values()
            if "rescues" in row and row["rescues"][when][name] is not None
        ]
        values += [mean(known, 2)] if known else []
    return ", ".join(values)


def _broken(rows: Rows) -> str:
    return ", ".join(f"{role} {seed}" for seed in sorted(rows) for role in fell(rows[seed])) or (
        "none"
    )


def _changes(ours: Rows, theirs: Rows) -> list[str]:
    return [change(differences(ours, theirs, role)) for role in ROLES]


def _each(rows: Rows, role: str) -> str:
    return each([rate(rows[seed], role) for seed in sorted(rows)])
