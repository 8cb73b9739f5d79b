"""Tables of research/2026-11-models-that-reason.md."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from coterie.evaluation.table import without_zero
from evidence.measures import SAMPLES, WHEN
from evidence.studies import Row, studies
from evidence.tables import (
    Rows,
    change,
    cpu,
    each,
    mean_over_problems,
    plus_minus,
    section,
    select,
    signed,
    table,
)

_CONSULTED = ("avg@n/alone", "avg@n/assisted", "consult_rate")
_TAUGHT = ("pass@1/alice", "pass@1/bob", "pass@2/alice", "pass@2/bob", "team_pass@2")
_PARTS: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "solo": ("Rewards alone, and a teacher", "rewards", ("pass@1", "stated")),
    "brief": ("The same at half the size", "rewards", ("pass@1", "stated")),
    "consult": ("Consult", "alone", _CONSULTED),
    "half-consult": ("Consult, at half the size", "alone", _CONSULTED),
    "teach": ("Cross-teaching", "alone", _TAUGHT),
    "half-teach": ("Cross-teaching, at half the size", "alone", _TAUGHT),
    "pair": ("Pairs, before training", "", ("pass@1/alice", "pass@1/bob", "team_pass@1")),
}
"""First word of an arm -> title, the arm that the others are compared with, figures."""
_QUICK = "seed | before | after | change | stated | Pass@1 / stated | tokens | CPU minutes"
_CASCADE = ("accuracy", "ece", "auroc", "deferred", "random_gain", "saving", "loss")


def lines() -> Iterator[str]:
    """Yield a table for each part that has a run, deferral by problem set, and the cost."""
    rows = [*studies()["reason"].stored().values()]
    of_arm = select(rows)
    for part, (title, baseline, names) in _PARTS.items():
        arms = {
            arm.removeprefix(f"{part}-"): of_seed
            for arm, of_seed in of_arm.items()
            if arm.startswith(f"{part}-")
        }
        if arms:
            when = "after" if baseline else "before"
            cells = [_cells(arm, arms, baseline, names, when) for arm in arms]
            head = ("arm", *names, *([f"{names[0]} − {baseline}", "tokens"] if baseline else []))
            yield from section(title, head, cells)
    if quick := {arm: rows for arm, rows in of_arm.items() if arm.startswith("quick")}:
        yield from ("", "### In 45 minutes")
        for arm, own in quick.items():
            yield from _quick(arm, own)
    for size, half in (("", ""), ("half-", ", at half the size")):
        if compared := of_arm.get(f"{size}defer-compared"):
            yield from ("", f"### Answer or defer{half}")
            yield from _deferral(compared)
    if rows:
        spent = [
            [arm, str(len(own)), cpu(own.values()), ", ".join(sorted(_commits(own)))]
            for arm, own in of_arm.items()
        ]
        yield from section("Cost", ("arm", "runs", "CPU seconds", "commits"), spent)


def _cells(
    arm: str, arms: Mapping[str, Rows], baseline: str, names: Sequence[str], when: str
) -> list[str]:
    rows = arms[arm]
    cells = [arm, *(_figure(rows, name, when) for name in names)]
    if baseline:
        than = arms.get(baseline, {}) if arm != baseline else {}
        seeds = sorted(rows.keys() & than.keys())
        first = names[0]
        gaps = [rows[seed][when][first] - than[seed][when][first] for seed in seeds]
        tokens = [row["tokens"] for row in rows.values() if "tokens" in row]
        over = _over_problems(rows, than, seeds) if seeds else ""
        cells += [change(gaps) + over, f"{sum(tokens) / len(tokens):,.0f}" if tokens else ""]
    return cells


def _quick(arm: str, rows: Rows) -> Iterator[str]:
    """A table with a row for each seed, whose intervals are over its held-out problems."""
    cells = []
    for seed, row in rows.items():
        before_Q, after_Q = (np.array([*map(int, row["right"][when])]) / SAMPLES for when in WHEN)
        stated = [row[when]["stated"] for when in WHEN]
        among = [row[when]["pass@1"] / row[when]["stated"] for when in WHEN]
        cells.append(
            [
                str(seed),
                _with_interval(before_Q, _share),
                _with_interval(after_Q, _share),
                _with_interval(after_Q - before_Q, signed),
                " → ".join(map(_share, stated)),
                " → ".join(map(_share, among)),
                f"{row['tokens']:,}",
                f"{row['cpu_s'] / 60:.0f}" if row["cpu_s"] else "",
            ]
        )
    changes = [row["after"]["pass@1"] - row["before"]["pass@1"] for row in rows.values()]
    yield from ("", f"*{arm}*", "", *table(_QUICK.split(" | "), cells))
    yield from ("", f"Change over seeds: {change(changes)}.")
    between = [
        f"seed {seed} {_share(right)} after {tokens:,} tokens"
        for seed, row in rows.items()
        for tokens, right, _ in row.get("held-out", ())[1:-1]
    ]
    if between:
        yield from ("", f"Between, Pass@1: {', '.join(between)}.")


def _with_interval(values_Q: np.ndarray, shown: Callable[[float], str]) -> str:
    over = mean_over_problems(values_Q)
    return f"{shown(over.value)} ({shown(over.low)}, {shown(over.high)})"


def _share(value: float) -> str:
    return without_zero(value, 3)


def _over_problems(ours: Rows, theirs: Rows, seeds: Sequence[int]) -> str:
    """The 95 % interval of the difference over held-out problems, where answers are stored."""
    if not all("right" in row for rows in (ours, theirs) for row in rows.values()):
        return ""
    right = [
        [int(digit) for seed in seeds for digit in rows[seed]["right"]["after"]]
        for rows in (ours, theirs)
    ]
    over = mean_over_problems((np.array(right[0]) - np.array(right[1])) / SAMPLES)
    return f"; ({signed(over.low)}, {signed(over.high)})"


def _figure(rows: Rows, name: str, when: str) -> str:
    known = [row[when][name] for row in rows.values() if row[when].get(name) is not None]
    return each(known) if known else ""


def _deferral(rows: Rows) -> Iterator[str]:
    """A table for each problem set: seeds are runs of training, questions are the same."""
    first: Row = next(iter(rows.values()))
    for name, systems in first["sets"].items():
        cells = [
            [
                system,
                *(
                    plus_minus([row["sets"][name][system].get(key) for row in rows.values()])
                    for key in _CASCADE
                ),
            ]
            for system in systems
        ]
        yield from ("", f"*{name}*", "", *table(("system", *_CASCADE), cells))


def _commits(rows: Rows) -> set[str]:
    return {row["commit"] for row in rows.values()}
