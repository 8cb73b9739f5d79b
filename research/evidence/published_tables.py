"""Tables of research/2026-11-core-as-published.md, of stored results."""

from collections.abc import Iterator, Mapping

import numpy as np

from coterie.evaluation.table import without_zero
from evidence import published
from evidence.cells import change, each
from evidence.peers import LENGTH, ROLES
from evidence.published import ARMS, SEEDS, TERMS, Run
from evidence.runs import ROOT, Row, differences, fell, missing_lines, put, rate

PAGE = ROOT / "research/2026-11-core-as-published.md"

Rows = Mapping[int, Row]


def write() -> None:
    """Write the tables into the page."""
    put(PAGE, [*_tables(), *missing_lines(published), ""])


def _tables() -> Iterator[str]:
    done = published.stored()
    for rung, seeds in SEEDS.items():
        rows_of = {
            arm: {s: done[run] for s in seeds if (run := Run(rung, arm, s, LENGTH)) in done}
            for arm in ARMS
        }
        if not any(rows_of.values()):
            continue
        yield from ("", f"### {rung}, {LENGTH} steps", "")
        yield (
            "| arm | seeds | alice | bob | published − it: alice | bob | exploration paid: alice, "
            "bob | cross-model paid: alice, bob | fell apart | tokens, M | CPU s |"
        )
        yield f"|{'---|' * 11}"
        for arm, rows in rows_of.items():
            if rows:
                yield f"| {' | '.join(_cells(arm, rows, rows_of['published']))} |"


def _cells(arm: str, rows: Rows, first: Rows) -> list[str]:
    other = arm != "published"
    broken = [f"{role} {seed}" for seed in sorted(rows) for role in fell(rows[seed])]
    spent = [row["cpu_s"] for row in rows.values() if row["cpu_s"] is not None]
    return [
        *(arm, str(len(rows))),
        *(each([rate(rows[seed], role) for seed in sorted(rows)]) for role in ROLES),
        *(change(differences(first, rows, role)) if other else "" for role in ROLES),
        *(", ".join(_paid(rows, role, term) for role in ROLES) for term in TERMS),
        ", ".join(broken) or "none",
        f"{np.mean([row['tokens'] for row in rows.values()]) / 1e6:.2f}",
        f"{np.mean(spent):.0f}" if spent else "",
    ]


def _paid(rows: Rows, role: str, term: str) -> str:
    return without_zero(float(np.mean([row["paid"][role][term] for row in rows.values()])), 2)
