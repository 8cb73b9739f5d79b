"""Numbers, tables and pictures of the evidence."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from coterie.evaluation.compare.pictures import drawing
from coterie.evaluation.metrics.intervals import Resampled, mean_intervals, t_interval
from coterie.evaluation.table import without_zero
from evidence.measures import ROLES
from evidence.studies import RESULTS, Row

Rows = Mapping[int, Row]
"""Seed -> stored line."""
# Loss of accuracy that counts as falling apart: against the start, and against the best block.
_BELOW_START, _BELOW_BEST = 0.05, 0.10


def select(stored: Iterable[Row], seeds: Iterable[int] = (), **where: object) -> dict[str, Rows]:
    """Return arm -> seed -> line, of the lines with these values.

    Args:
        stored: stored lines.
        seeds: the seeds to keep; all if there are none.
        where: field of a line -> its value.
    """
    wanted = {*seeds}
    found: dict[str, dict[int, Row]] = {}
    for row in stored:
        matches = all(row[key] == value for key, value in where.items())
        if matches and (not wanted or row["seed"] in wanted):
            found.setdefault(row["arm"], {})[row["seed"]] = row
    return {arm: dict(sorted(rows.items())) for arm, rows in found.items()}


def rate(row: Row, role: str, when: str = "after") -> float:
    """Return Pass@1 on the held-out problems."""
    right, answers = row[when][role]
    return right / answers


def differences(ours: Rows, theirs: Rows, role: str) -> list[float]:
    """Return Pass@1 of ours − theirs after training, for each seed of both in order."""
    seeds = sorted(ours.keys() & theirs.keys())
    return [rate(ours[seed], role) - rate(theirs[seed], role) for seed in seeds]


def fell(row: Row) -> list[str]:
    """Return the roles that have fallen apart by the definition of docs/evidence.md."""
    return [
        role
        for role in row["curve"]
        if rate(row, role) < rate(row, role, "before") - _BELOW_START
        or row["curve"][role][-1] < max(row["curve"][role]) - _BELOW_BEST
    ]


def signed(value: float) -> str:
    """Format with three decimals and a sign."""
    return f"{'+' if value >= 0 else '−'}{without_zero(abs(value), 3)}"


def mean(values: Iterable[float], digits: int = 3) -> str:
    """Format the mean of ``values``, at least one."""
    return without_zero(float(np.mean([*values])), digits)


def each(values: Sequence[float]) -> str:
    """Format the mean, and each value in order: ``**.550** (.500 .600)``."""
    return f"**{mean(values)}** ({' '.join(without_zero(value, 3) for value in values)})"


def change(differences: Sequence[float]) -> str:
    """Format the mean and its 95 % interval by t: ``+.100 [−.050, +.250]``; a single difference has
    no interval."""
    if not differences:
        return ""
    interval = t_interval(differences)
    spread = "" if np.isnan(interval.low) else f" [{signed(interval.low)}, {signed(interval.high)}]"
    return signed(interval.value) + spread


def plus_minus(values: Sequence[float | None]) -> str:
    """Format the mean ± half of its 95 % interval by t: ``.500 ± .020``, of the known values; where
    some are unknown, with their number (``(4 of 5)``)."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    interval = t_interval(known)
    counted = "" if len(known) == len(values) else f" ({len(known)} of {len(values)})"
    half = interval.high - interval.value
    spread = "" if np.isnan(half) else f" ± {without_zero(half, 3)}"
    return f"{without_zero(interval.value, 3)}{spread}{counted}"


def over_problems(ours: Rows, theirs: Rows, role: str) -> str:
    """Format the difference by seed, and its interval over the problems of these seeds."""
    seeds = sorted(ours.keys() & theirs.keys())
    right = [np.concatenate([_per_problem(row[s], role) for s in seeds]) for row in (ours, theirs)]
    gap_Q = right[0] - right[1]
    over = mean_over_problems(gap_Q)
    by_seed = change(differences(ours, theirs, role))
    return f"{by_seed}; ({signed(over.low)}, {signed(over.high)})"


def mean_over_problems(values_Q: npt.ArrayLike) -> Resampled:
    """The mean of a value for each problem, with its 95 % interval over the problems."""
    (over,) = mean_intervals(np.reshape(values_Q, (-1, 1)), resamples=2000)
    return over


def _per_problem(row: Row, role: str) -> np.ndarray:
    """Share of right answers to each held-out problem."""
    right = np.array([*row["right"][role]], int)
    return right * len(right) / row["after"][role][1]


def by_role(rows: Rows) -> list[str]:
    """Format each role's Pass@1 after training."""
    return [each([rate(row, role) for row in rows.values()]) for role in ROLES]


def changes(ours: Rows, theirs: Rows) -> list[str]:
    """Format each role's difference."""
    return [change(differences(ours, theirs, role)) for role in ROLES]


def broken(rows: Rows) -> str:
    """List what has fallen apart, as role and seed."""
    return ", ".join(f"{role} {seed}" for seed, row in rows.items() for role in fell(row)) or "none"


def millions(rows: Rows) -> str:
    """Format the mean of sampled tokens in millions."""
    return f"{np.mean([row['tokens'] for row in rows.values()]) / 1e6:.2f}"


def cpu(rows: Iterable[Row]) -> str:
    """Format the mean of processor seconds, where they are known."""
    known = [row["cpu_s"] for row in rows if row["cpu_s"] is not None]
    return f"{np.mean(known):,.0f}" if known else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    line = f"|{'---|' * len(head)}"
    return [f"| {' | '.join(head)} |", line, *(f"| {' | '.join(cells)} |" for cells in rows)]


def section(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a heading and a table."""
    return ["", f"### {title}", "", *table(head, rows)]


def picture(name: str, what: str) -> list[str]:
    """Return the lines that show a picture of docs/evidence."""
    return ["", f"![{what}](../docs/evidence/{name})"]


def put(page: Path, lines: Sequence[str]) -> None:
    """Put lines into their place in a page."""
    place = re.compile(r"(<!-- results -->\n).*(<!-- end of results -->)", re.DOTALL)
    text = page.read_text(encoding="utf-8")
    page.write_text(place.sub(lambda m: m[1] + "\n".join(lines) + m[2], text), encoding="utf-8")


def dots(values: Mapping[str, Sequence[float]], name: str, label: str) -> None:
    """Draw one line per name: a dot per seed, with mean and interval."""
    size = (6, 0.6 + 0.32 * len(values))
    with drawing(RESULTS / name, figsize=size, layout="constrained") as axis:
        for place, measured in enumerate(values.values()):
            interval = t_interval(measured)
            axis.plot(measured, [place + 0.15] * len(measured), ".", color="C0", alpha=0.5)
            axis.plot([interval.low, interval.high], [place] * 2, color="C0")
            axis.plot(interval.value, place, "o", color="C0")
        axis.set_yticks(range(len(values)), list(values), fontsize=8)
        axis.invert_yaxis()
        axis.axvline(0, color="grey", linewidth=0.8)
        axis.set_xlabel(label, fontsize=8)
        axis.tick_params(labelsize=8)


Point = tuple[str, str, float, float]
"""Problem set, role, what may foretell the gain, the gain."""


def scatter(points: Mapping[str, Sequence[Point]], name: str, label: str) -> None:
    """Draw the gain against each of its possible predictors."""
    rungs = list(dict.fromkeys(point[0] for some in points.values() for point in some))
    size = {"figsize": (8, 3.2), "layout": "constrained", "sharey": True}
    with drawing(RESULTS / name, 1, len(points), **size) as axes:
        for axis, (predictor, pairs) in zip(axes, points.items()):
            for colour, rung in enumerate(rungs):
                for marker, role in zip("os", ROLES):
                    own = [(x, y) for r, who, x, y in pairs if (r, who) == (rung, role)]
                    if own:
                        axis.plot(*zip(*own), marker, color=f"C{colour}", label=f"{rung}, {role}")
            axis.axhline(0, color="grey", linewidth=0.8)
            axis.set_xlabel(predictor, fontsize=8)
            axis.tick_params(labelsize=8)
        axes[0].legend(fontsize=7, frameon=False)
        axes[0].set_ylabel(label, fontsize=8)
