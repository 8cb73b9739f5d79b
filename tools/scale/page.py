"""Tables and picture of docs/scale.md, from its stored results: ``python -m scale.page``."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coterie.comparison.pictures import drawing
from scale import constants
from scale.scenarios import RESULTS, ROUTES

PAGE = RESULTS.parents[1] / "scale.md"
PICTURE = RESULTS.parent / "steps.png"
PHASES = ("sampling", "tail", "learner", "weights", "driver")
_PLACE = re.compile(r"(<!-- simulated: (\w+) -->\n).*?(<!-- end of simulated -->)", re.DOTALL)
Row = dict[str, Any]


def stored() -> list[Row]:
    """All rows of the results."""
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def filled(page: str, rows: Sequence[Row]) -> str:
    """``page`` with every table as the results have it."""
    tables = {
        "steps": steps, "routes": routes, "spans": spans, "episodes": episodes,
        "constants": lambda _: constants.table(),
    }  # fmt: skip
    return _PLACE.sub(lambda m: f"{m[1]}\n{tables[m[2]](rows)}\n\n{m[3]}", page)


def pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Every case with GPUs of its own for engines and learners, and the same on shared ones."""
    return list(zip(rows[:72:2], rows[1:72:2]))


def steps(rows: Sequence[Row]) -> str:
    """What a step takes, and what of it."""
    lines = [
        "| model | tuning | policies | GPUs | learner + engines, of a base | step, s | "
        + " | ".join(PHASES)
        + " | tokens/s | GPUs busy | shared GPUs: step, s |",
        "|---|---|---|---|---|" + "---|" * 9,
    ]
    for apart, shared in pairs(rows):
        cells = [apart["size"], apart["tuning"], f"{apart['policies']}", f"{apart['gpus']:,}"]
        beside = f"{shared['step_s']:,.0f}" if "phases" in shared else "impossible"
        if "phases" not in apart:
            cells += [f"impossible: {apart['impossible']}", *[""] * 8, beside]
        else:
            of, step = apart["split"], sum(apart["phases"].values())
            wide = f" x {of['spans']}" if of["spans"] > 1 else ""
            shares = {name: apart["phases"][name] / step for name in PHASES}
            cells += [f"{of['learner']} + {of['replicas']}{wide}", f"{step:,.0f}"]
            cells += [
                f"**{100 * one:.0f} %**" if one == max(shares.values()) else f"{100 * one:.0f} %"
                for one in shares.values()
            ]
            rate = apart["tokens"] / step
            cells += [f"{rate:,.0f}", f"{100 * apart['busy']:.0f} %", beside]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def routes(rows: Sequence[Row]) -> str:
    """Who is asked, and what sampling takes."""
    chosen = rows[72 : 72 + 2 * len(ROUTES)]
    lines = [
        "| who is asked | sampling, s | most asked, of its share | all prompts begin alike: s | |",
        "|---|---|---|---|---|",
    ]
    for own, alike in zip(chosen[::2], chosen[1::2]):
        cells = [own["route"], f"{_sampled(own):,.0f}", f"{own['most_asked']:.2f}"]
        cells += [f"{_sampled(alike):,.0f}", f"{alike['most_asked']:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def spans(rows: Sequence[Row]) -> str:
    """Replicas against tensor parallelism."""
    chosen = rows[72 + 2 * len(ROUTES) :][:8]
    few, many = chosen[0]["episodes"], chosen[1]["episodes"]
    lines = [
        f"| engines | {few:,} episodes: sampling, s | tail, s | {many:,} episodes: sampling, s "
        "| tail, s |",
        "|---|---|---|---|---|",
    ]
    for small, large in zip(chosen[::2], chosen[1::2]):
        cells = [f"{small['split']['replicas']} on {small['split']['spans']}"]
        for row in (small, large):
            cells += [f"{_sampled(row):,.0f}", f"{row['phases']['tail']:,.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def episodes(rows: Sequence[Row]) -> str:
    """A step that grows with the cluster."""
    first = next(
        row for row in rows
        if (row["size"], row["tuning"], row["policies"], row["gpus"]) == ("4B", "lora", 2, 1000)
    )  # fmt: skip
    lines = [
        "| episodes a step | step, s | tail | driver | driver's core, s | tokens/s | GPUs busy |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in (first, *rows[-2:]):
        step = sum(row["phases"].values())
        cells = [f"{row['episodes']:,}", f"{step:,.0f}"]
        cells += [f"{100 * row['phases'][name] / step:.0f} %" for name in ("tail", "driver")]
        cells += [f"{row['driver_s']:,.0f}", f"{row['tokens'] / step:,.0f}"]
        cells.append(f"{100 * row['busy']:.0f} %")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _sampled(row: Row) -> float:
    return row["phases"]["sampling"] + row["phases"]["tail"]


def draw(rows: Sequence[Row], path: Path = PICTURE) -> None:
    """What a step is made of, for every case that can be."""
    with drawing(path, 1, 2, figsize=(10, 5.6), layout="constrained") as axes:
        for axis, size in zip(axes, ("4B", "32B")):
            cases = [one for one, _ in pairs(rows) if one["size"] == size]
            for place, row in enumerate(cases):
                if "phases" not in row:
                    axis.text(0.01, place, row["impossible"], va="center", fontsize=7, color="0.4")
                    continue
                left, step = 0.0, sum(row["phases"].values())
                for colour, name in enumerate(PHASES):
                    share = row["phases"][name] / step
                    label = name if row is next(r for r in cases if "phases" in r) else None
                    axis.barh(place, share, left=left, color=f"C{colour}", label=label)
                    left += share
                axis.text(1.01, place, f"{step:,.0f} s", va="center", fontsize=7)
            names = [f"{r['tuning']}, {r['policies']} on {r['gpus']:,}" for r in cases]
            axis.set_yticks(range(len(cases)), names, fontsize=7)
            axis.invert_yaxis()
            axis.set_xlim(0, 1.14)
            axis.set_xticks([0, 0.5, 1])
            axis.set_title(f"{size}: share of a step (simulated)", fontsize=9, loc="left")
            for side in ("top", "right"):
                axis.spines[side].set_visible(False)
        axes[0].legend(fontsize=7, ncols=5, loc="upper left", bbox_to_anchor=(0, -0.05))


def main() -> None:
    rows = stored()
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    draw(rows)


if __name__ == "__main__":
    main()
