"""A suite's results for a terminal of 80 columns."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from evaluation.evaluation import Resampled
from evaluation.numbers import without_zero
from evaluation.suite.figures import Pair, PassAtK, Row

_LABEL = 32


def accuracy(rows: Sequence[Row], title: str, *, sets: int) -> Table:
    """One line per system: deployable ones, then oracles, which look at the gold answer."""
    shown = _table(title, "system")
    priced = any(row.money is not None for row in rows)
    # There is no room for both; results.json has them.
    macro = sets > 1 and not priced
    for heading in (
        "avg",
        "95 %",
        *(["macro"] if macro else []),
        "over best agent",
        "tokens",
        *(["/1k"] if priced else []),
        "s",
    ):
        shown.add_column(heading, justify="right", no_wrap=True)
    for oracle in (False, True):
        chosen = [row for row in rows if row.system.oracle == oracle]
        if oracle and chosen:
            shown.add_section()
        for row in chosen:
            mark = "*" if row.marked else " "
            shown.add_row(
                f"[dim]{_short(row.system.label)}[/dim]" if oracle else _short(row.system.label),
                _figure(row.micro.value, 3),
                _interval(row.micro),
                *([_figure(row.macro.value, 3)] if macro else []),
                f"{_signed(row.over_best.value)} {_interval(row.over_best, '+')}{mark}",
                f"{row.tokens:.0f}",
                *([f"{row.money:.3g}"] if row.money is not None else []),
                "" if math.isnan(row.seconds) else f"{row.seconds:.2f}",
            )
    return shown


def passing(found: PassAtK, title: str) -> Table:
    """Pass@k at powers of two and at the end."""
    samples = len(found.team)
    chosen = sorted({*(2**i for i in range(12) if 2**i < samples), samples})
    shown = _table(title, "")
    for k in chosen:
        shown.add_column(f"k={k}", justify="right", no_wrap=True)
    lines: dict[str, Sequence[Resampled]] = {
        _short(name): own for name, own in found.agents.items()
    }
    if len(found.agents) > 1:
        lines |= {
            "team, k each": found.team,
            f"best agent, {len(found.agents)}k": found.control,
        }
    for label, values in lines.items():
        cells = [values[k - 1] if k <= len(values) else None for k in chosen]
        shown.add_row(label, *(_cell(cell) for cell in cells))
    if found.gain and len(found.agents) > 1:
        gains = [found.gain[k - 1] if k <= len(found.gain) else None for k in chosen]
        shown.add_row("difference", *(_cell(cell, "+") for cell in gains))
    return shown


def decomposition(found: Sequence[Pair], title: str) -> Table:
    """How far the errors of each pair differ."""
    shown = _table(title, "pair")
    names = {
        "union": "either right",
        "gain": "gain",
        "gain_bound": "at most",
        "both_wrong": "both wrong",
        "independent_union": "if unrelated",
        "phi": "phi",
    }
    for heading in names.values():
        shown.add_column(heading, justify="right", no_wrap=True)
    for pair in found:
        cells = [
            f"{_figure(pair.measured[name].value)} {_interval(pair.measured[name])}"
            if name == "gain"
            else _figure(pair.measured[name].value)
            for name in names
        ]
        shown.add_row(_short(f"{pair.first} + {pair.second}", 24), *cells)
    return shown


def calibration(found: Mapping[str, Mapping[str, Any]], title: str) -> Table:
    """Confidences, stated and from agreement, and variance, agent by agent."""
    shown = _table(title, "agent")
    for heading in ("confidence", "given", "ECE", "AUROC", "Brier", "between", "within"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, one in found.items():
        spread = [_figure(one["variance"][key], 3) for key in ("between", "within")]
        kinds = [kind for kind in ("stated", "agreement") if kind in one]
        for kind in kinds or [""]:
            values = one.get(kind)
            cells = [""] * 4
            if values:
                cells = [
                    f"{values['output_ratio']:.0%}",
                    _plain_cell(values["ece"]),
                    _plain_cell(values["auroc"]),
                    _figure(_or_nan(values["brier"]), 3),
                ]
            shown.add_row(_short(name), kind, *cells, *spread)
            name, spread = "", ["", ""]
    return shown


def _table(title: str, first: str) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    # In a narrow terminal it is the labels that break, never the numbers.
    shown.add_column(first, overflow="fold")
    return shown


def _short(label: str, limit: int = _LABEL) -> str:
    return escape(label if len(label) <= limit else f"{label[: limit - 1]}…")


def _cell(value: Resampled | None, sign: str = "") -> str:
    if value is None or math.isnan(value.value):
        return ""
    text = _signed(value.value) if sign else _figure(value.value, 3)
    return f"{text} {_interval(value, sign)}"


def _plain_cell(value: Mapping[str, Any]) -> str:
    if value["value"] is None:
        return "undefined"
    low, high = (_figure(_or_nan(bound)) for bound in value["interval"])
    return f"{_figure(value['value'], 3)} \\[{low} {high}]"


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _interval(value: Resampled, sign: str = "") -> str:
    low, high = value.interval()
    return f"\\[{_figure(low, 2, sign)} {_figure(high, 2, sign)}]"


def _signed(value: float) -> str:
    return _figure(value, 3, "+")


def _figure(value: float, decimals: int = 2, sign: str = "") -> str:
    """Without the leading zero: .913, 1.000, +.02."""
    if math.isnan(value):
        return "–"
    return without_zero(value, decimals, sign)
