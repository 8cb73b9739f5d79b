"""Tables of a suite's results for a terminal of 80 columns."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from coterie.evaluation.compare.suite_metrics import Figures, Pair, PassAtK
from coterie.evaluation.evaluation import Resampled
from coterie.evaluation.table import (
    figure_cell,
    figure_with_interval,
    interval_cell,
    make_table,
    short_label,
    with_legend,
)


def accuracy_table(rows: Sequence[Figures], title: str, *, sets: int) -> Table:
    """One line per system: deployable systems, then oracles, which use the gold answer."""
    priced = any(row.money is not None for row in rows)
    # Only one of them fits; results.json has both.
    macro = sets > 1 and not priced
    headings = [
        *("avg", "95 %", *(["macro"] if macro else []), "over best policy", "tokens"),
        *(["/1k"] if priced else []),
        "s",
    ]

    def line(row: Figures) -> tuple[str, list[str]]:
        mark = "*" if row.over_best.excludes_zero else " "
        label = short_label(row.system.label)
        return f"[dim]{label}[/dim]" if row.system.oracle else label, [
            figure_cell(row.micro.value),
            interval_cell(row.micro),
            *([figure_cell(row.macro.value)] if macro else []),
            f"{figure_cell(row.over_best.value, 3, '+')} {interval_cell(row.over_best, '+')}{mark}",
            f"{row.tokens:.0f}",
            *([f"{row.money:.3g}"] if row.money is not None else []),
            "" if math.isnan(row.seconds) else f"{row.seconds:.2f}",
        ]

    deployable, oracles = (
        [line(row) for row in rows if row.system.oracle == oracle] for oracle in (False, True)
    )
    table = make_table(title, "system", headings, deployable)
    table.add_section()
    for label, cells in oracles:
        table.add_row(label, *cells)
    per = "/1k: price of 1,000 answers; " if priced else ""
    means = "macro: mean over sets; " if macro else ""
    return with_legend(
        table,
        "over best policy: less the best single policy, so a single one is at most 0",
        f"*: the interval leaves out 0; {means}{per}tokens: sampled",
        "s: seconds until an answer is there, while --batch episodes are played at once",
    )


def difference_table(pairs: Mapping[tuple[str, str], Resampled]) -> Table:
    """One line per pair of systems: the second less the first, paired by question."""

    def line(first: str, second: str, change: Resampled) -> tuple[str, list[str]]:
        mark = "*" if change.excludes_zero else " "
        cells = [figure_cell(change.value, 3, "+"), interval_cell(change, "+") + mark]
        return short_label(f"{second} - {first}"), cells

    return make_table(
        "differences of avg, paired by question (*: the interval leaves out 0)",
        "pair",
        ("difference", "95 %"),
        [line(*names, change) for names, change in pairs.items()],
    )


def pass_table(passes: PassAtK, title: str) -> Table:
    """Pass@k at powers of two and at the largest k."""
    samples = max(map(len, passes.policies.values()))
    chosen = sorted({*(2**i for i in range(12) if 2**i < samples), samples})
    lines: dict[str, tuple[Sequence[Resampled], str]] = {
        short_label(name): (values, "") for name, values in passes.policies.items()
    }
    if len(passes.policies) > 1 and passes.team:
        lines["team, k each"] = passes.team, ""
        lines[f"best policy, {len(passes.policies)}k"] = passes.control, ""
        if passes.gain:
            lines["difference"] = passes.gain, "+"
    return make_table(
        title,
        "",
        [f"k={k}" for k in chosen],
        [
            (
                label,
                [
                    figure_with_interval(values[k - 1] if k <= len(values) else None, sign)
                    for k in chosen
                ],
            )
            for label, (values, sign) in lines.items()
        ],
    )


def pair_table(pairs: Sequence[Pair], title: str) -> Table:
    """How far the errors of each pair of policies differ."""
    names = {
        "union": "either right",
        "gain": "gain",
        "gain_bound": "max gain",
        "both_wrong": "both wrong",
        "independent_union": "independent",
        "phi": "phi",
    }

    def cell(pair: Pair, name: str) -> str:
        text = figure_cell(pair.measured[name].value, 2)
        return f"{text} {interval_cell(pair.measured[name])}" if name == "gain" else text

    table = make_table(
        title,
        "pair",
        names.values(),
        [
            (short_label(f"{pair.first} + {pair.second}", 24), [cell(pair, name) for name in names])
            for pair in pairs
        ],
    )
    return with_legend(
        table,
        "gain: either right, less the better policy; max gain: its upper bound",
        "independent: either right, were errors independent; phi: their correlation",
    )


def calibration_tables(by_policy: Mapping[str, Mapping[str, Any]]) -> Iterator[Table]:
    """Calibration of stated confidence and of agreement for each policy, and variance."""
    lines: list[tuple[str, list[str]]] = []
    for name, measures in by_policy.items():
        for index, kind in enumerate(k for k in ("stated", "agreement") if k in measures):
            values = measures[kind]
            cells = [
                kind,
                f"{values['output_ratio']:.0%}",
                figure_with_interval(values["ece"]) or "undefined",
                figure_with_interval(values["auroc"]) or "undefined",
                figure_cell(values["brier"]),
            ]
            lines.append(("" if index else short_label(name), cells))
    if lines:
        headings = ("confidence", "given", "ECE", "AUROC", "Brier")
        yield make_table("confidence (ECE: 10 bins [a, b))", "policy", headings, lines)
    spread = {name: measures["variance"] for name, measures in by_policy.items()}
    rows = [
        (short_label(name), [figure_cell(variance.between), figure_cell(variance.within)])
        for name, variance in spread.items()
    ]
    table = make_table("variance of correctness", "policy", ("between", "within"), rows)
    yield with_legend(table, "between questions, and within them between samples")
