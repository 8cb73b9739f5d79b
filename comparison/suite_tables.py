"""Tables of a suite's results for a terminal of 80 columns."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from coterie.comparison.figures import Figures, Pair, PassAtK
from coterie.comparison.output import (
    figure_cell,
    figure_with_interval,
    interval_cell,
    make_table,
    short_label,
    with_legend,
)
from coterie.evaluation.evaluation import Resampled


def accuracy_table(found: Sequence[Figures], title: str, *, sets: int) -> Table:
    """One line per system: deployable systems, then oracles, which use the gold answer."""
    priced = any(one.money is not None for one in found)
    # Only one of them fits; results.json has both.
    macro = sets > 1 and not priced
    headings = [
        *("avg", "95 %", *(["macro"] if macro else []), "over best policy", "tokens"),
        *(["/1k"] if priced else []),
        "s",
    ]

    def line(one: Figures) -> tuple[str, list[str]]:
        mark = "*" if one.marked else " "
        label = short_label(one.system.label)
        return f"[dim]{label}[/dim]" if one.system.oracle else label, [
            figure_cell(one.micro.value),
            interval_cell(one.micro),
            *([figure_cell(one.macro.value)] if macro else []),
            f"{figure_cell(one.over_best.value, 3, '+')} {interval_cell(one.over_best, '+')}{mark}",
            f"{one.tokens:.0f}",
            *([f"{one.money:.3g}"] if one.money is not None else []),
            "" if math.isnan(one.seconds) else f"{one.seconds:.2f}",
        ]

    deployable, oracles = (
        [line(one) for one in found if one.system.oracle == oracle] for oracle in (False, True)
    )
    table = make_table(title, "system", headings, deployable)
    table.add_section()
    for label, cells in oracles:
        table.add_row(label, *cells)
    legend = "over best policy: less the best single policy; *: the interval leaves out 0"
    per = "/1k: price of 1,000 answers; " if priced else ""
    means = "macro: mean over sets; " if macro else ""
    return with_legend(table, legend, f"{means}tokens: sampled; {per}s: seconds of one answer")


def pass_table(found: PassAtK, title: str) -> Table:
    """Pass@k at powers of two and at the largest k."""
    samples = max(map(len, found.policies.values()))
    chosen = sorted({*(2**i for i in range(12) if 2**i < samples), samples})
    lines: dict[str, tuple[Sequence[Resampled], str]] = {
        short_label(name): (own, "") for name, own in found.policies.items()
    }
    if len(found.policies) > 1 and found.team:
        lines["team, k each"] = found.team, ""
        lines[f"best policy, {len(found.policies)}k"] = found.control, ""
        if found.gain:
            lines["difference"] = found.gain, "+"
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


def pair_table(found: Sequence[Pair], title: str) -> Table:
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
            (short_label(f"{one.first} + {one.second}", 24), [cell(one, name) for name in names])
            for one in found
        ],
    )
    return with_legend(
        table,
        "gain: either right, less the better policy; max gain: its upper bound",
        "independent: either right, were errors independent; phi: their correlation",
    )


def calibration_tables(found: Mapping[str, Mapping[str, Any]]) -> Iterator[Table]:
    """Calibration of stated confidence and of agreement for each policy, and variance."""
    lines: list[tuple[str, list[str]]] = []
    for name, one in found.items():
        for place, kind in enumerate(k for k in ("stated", "agreement") if k in one):
            values = one[kind]
            cells = [
                kind,
                f"{values['output_ratio']:.0%}",
                figure_with_interval(values["ece"]) or "undefined",
                figure_with_interval(values["auroc"]) or "undefined",
                figure_cell(values["brier"]),
            ]
            lines.append(("" if place else short_label(name), cells))
    if lines:
        headings = ("confidence", "given", "ECE", "AUROC", "Brier")
        yield make_table("confidence (ECE: 10 bins [a, b))", "policy", headings, lines)
    spread = {name: one["variance"] for name, one in found.items()}
    rows = [
        (short_label(name), [figure_cell(one.between), figure_cell(one.within)])
        for name, one in spread.items()
    ]
    table = make_table("variance of correctness", "policy", ("between", "within"), rows)
    yield with_legend(table, "between questions, and within them between samples")
