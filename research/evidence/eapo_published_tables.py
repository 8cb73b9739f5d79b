"""Tables of research/2026-11-eapo-as-published.md, of stored results."""

from collections.abc import Iterator, Mapping

from coterie.evaluation.compare.output import mean_over_seeds
from coterie.evaluation.metrics.intervals import t_interval
from coterie.evaluation.table import without_zero
from evidence import eapo_published
from evidence.eapo_published import ARMS, MEASURES, SEEDS, Run
from evidence.runs import ROOT, Row, missing_lines, put

PAGE = ROOT / "research/2026-11-eapo-as-published.md"

Rows = Mapping[int, Row]


def write() -> None:
    """Write the tables into the page."""
    put(PAGE, [*_tables(), *missing_lines(eapo_published), ""])


def _tables() -> Iterator[str]:
    done = eapo_published.stored()
    rows_of = {arm: {s: done[run] for s in SEEDS if (run := Run(arm, s)) in done} for arm in ARMS}
    if not any(rows_of.values()):
        return
    yield from ("", f"| arm | seeds | {' | '.join(MEASURES)} | steps | tokens, M |")
    yield f"|{'---|' * (len(MEASURES) + 4)}"
    for arm, rows in rows_of.items():
        if rows:
            yield f"| {' | '.join(_cells(arm, rows))} |"
    published, alone, (first, *_) = rows_of["published"], rows_of["alone"], MEASURES
    both = sorted(published.keys() & alone.keys())
    differences = [_after(published[s], first) - _after(alone[s], first) for s in both]
    if both:
        seeds = f"{len(both)} seeds"
        yield from ("", f"Published − alone, {first}: {_mean(differences, '+')}, {seeds}.")


def _cells(arm: str, rows: Rows) -> list[str]:
    seeds = sorted(rows)
    return [
        *(arm, ", ".join(map(str, seeds))),
        *(_mean([_after(rows[s], name) for s in seeds]) for name in MEASURES),
        ", ".join(str(rows[s]["steps"]) for s in seeds),
        ", ".join(f"{rows[s]['tokens'] / 1e6:.2f}" for s in seeds),
    ]


def _after(row: Row, name: str) -> float:
    value = row["after"][name]
    return float("nan") if value is None else float(value)


def _mean(values: list[float], sign: str = "") -> str:
    estimate = t_interval(values)
    if len(values) < 2:
        return without_zero(estimate.value, 3)
    return mean_over_seeds(estimate, sign)
