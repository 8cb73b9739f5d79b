"""Tables of research/2026-11-controls.md."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from coterie.evaluation.metrics.intervals import t_interval
from coterie.evaluation.table import without_zero
from evidence.measures import ROLES
from evidence.pages.peer_hints import peer_seeds
from evidence.studies import stored
from evidence.tables import (
    Rows,
    broken,
    by_role,
    changes,
    cpu,
    differences,
    dots,
    fell,
    mean,
    millions,
    picture,
    rate,
    section,
    select,
    signed,
)


def lines() -> Iterator[str]:
    """Yield the tables of other hints and of CoRe's second round."""
    gains: dict[str, list[float]] = {}
    for rung, steps in (("disjoint", 330), ("recall", 330), ("disjoint", 660)):
        of_arms = _controlled(rung, steps, ("plain", "expected", "other-same", "other-cross"))
        head = (
            "arm | seeds | alice | bob | alice − plain | bob − plain | expected − it: alice | bob "
            "| part of the gain: alice, bob | rows read: alice, bob | fell apart | tokens, M"
        )
        title = f"Hints of other problems: {rung}, {steps} steps"
        yield from section(title, head.split(" | "), [_other(arm, of_arms) for arm in of_arms])
        if (rung, steps) == ("disjoint", 330):
            for arm in ("expected", "other-same", "other-cross"):
                for role in ROLES:
                    gains[f"{arm}: {role}"] = differences(of_arms[arm], of_arms["plain"], role)
    dots(gains, "other-hints.png", "Pass@1: arm − plain, disjoint, 330 steps")
    yield from picture("other-hints.png", "Gain behind other hints")

    screened = select(stored("controls.jsonl"), (3, 4))
    lines = [_both(arm, screened[arm], {}) for arm in ("both-core", "both-own")]
    yield from section("Both: the screen (disjoint, 330 steps)", _BOTH, lines)
    gains = {}
    for rung, steps in (
        *(("disjoint", 330), ("disjoint", 660), ("default", 330), ("recall", 330)),
        *(("default", 660), ("recall", 660)),
    ):
        of_arms = _controlled(rung, steps, ("expected", "both-own"))
        expected, both = of_arms["expected"], of_arms["both-own"]
        # What the lower end of both − expected must exceed.
        bound = -0.05 if steps == 330 else -0.02
        state = "fails" if fails(both, expected, bound) else "not failed"
        text = f"lower ends above {signed(bound)}, none falls apart: **{state}**"
        lines = [_both("expected", expected, {}), _both("both-own", both, expected)]
        yield from section(f"Both: {rung}, {steps} steps; {text}", _BOTH, lines)
        for role in ROLES:
            gains[f"{rung}, {steps}: {role}"] = differences(both, expected, role)
    dots(gains, "both.png", "Pass@1: with CoRe's second round − the default")


def fails(ours: Rows, theirs: Rows, bound: float) -> bool:
    """Return whether a role may lose more than ``bound`` or has fallen apart."""
    lows = [t_interval(differences(ours, theirs, role)).low for role in ROLES]
    return min(lows) <= bound or any(fell(row) for row in ours.values())


def _controlled(rung: str, steps: int, arms: Sequence[str]) -> dict[str, Rows]:
    """Arm -> seed -> line, for the seeds that the last arm has; of either study."""
    cell = {"rung": rung, "steps": steps}
    rows = [*stored("results.jsonl"), *stored("controls.jsonl")]
    of_arms = select(rows, peer_seeds(rung, steps), **cell)
    seeds = of_arms[arms[-1]].keys()
    return {arm: {s: row for s, row in of_arms[arm].items() if s in seeds} for arm in arms}


def _other(arm: str, of_arms: Mapping[str, Rows]) -> list[str]:
    rows, plain, expected = of_arms[arm], of_arms["plain"], of_arms["expected"]
    less, more, part, read = ["", ""], ["", ""], "", ""
    if arm != "plain":
        less = changes(rows, plain)
    if arm.startswith("other"):
        more = changes(expected, rows)
        part = ", ".join(part_of_gain(rows, plain, expected, role) for role in ROLES)
        read = ", ".join(rows_read(rows, role) for role in ROLES)
    ours = [arm, str(len(rows)), *by_role(rows), *less, *more]
    return [*ours, part, read, broken(rows), millions(rows)]


def part_of_gain(rows: Rows, plain: Rows, expected: Rows, role: str) -> str:
    """Format the share of the gain of *expected* that an arm has."""
    own, least, most = (
        np.mean([rate(row, role) for row in of_arm.values()]) for of_arm in (rows, plain, expected)
    )
    return without_zero(float((own - least) / (most - least)), 2)


def rows_read(rows: Rows, role: str) -> str:
    """Format the share of the rows to be read again for which there was a hint."""
    wanted, shown = np.sum([row["read"][role] for row in rows.values()], axis=0)
    return without_zero(float(shown / wanted), 2)


_BOTH = (
    *("arm", "seeds", "alice", "bob", "alice − expected", "bob − expected"),
    *("rescued by a hint: before, after", "without it: before, after"),
    *("fell apart", "tokens, M", "CPU s"),
)


def _both(arm: str, rows: Rows, theirs: Rows) -> list[str]:
    rescued = [_rescued(rows, name) for name in ("rescue_rate", "retry_rate")]
    spent = (broken(rows), millions(rows), cpu(rows.values()))
    return [arm, str(len(rows)), *by_role(rows), *changes(rows, theirs), *rescued, *spent]


def _rescued(rows: Rows, name: str) -> str:
    """Mean before training and after; the first study did not store it."""
    values: list[str] = []
    for when in ("before", "after"):
        known = [row["rescues"][when][name] for row in rows.values() if "rescues" in row]
        known = [value for value in known if value is not None]
        values += [mean(known, 2)] if known else []
    return ", ".join(values)
