"""Table of research/2026-11-consult-and-reread.md and a picture of docs/evidence.md, of stored
results."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from coterie.evaluation.metrics.intervals import t_interval
from evidence import consulting
from evidence.cells import change, each, mean
from evidence.consulting import FORMS, SCREEN, SEEDS, Run
from evidence.contest_tables import draw
from evidence.runs import ROOT, Row, missing_lines, put

PAGE = ROOT / "research/2026-11-consult-and-reread.md"

Stored = Mapping[Run, Row]


def write() -> None:
    """Write table and picture into the page."""
    done = consulting.stored()
    put(PAGE, [*_screen(done), *_arms(done), *missing_lines(consulting), ""])


def rates(done: Stored, arm: str, form: str) -> dict[int, float]:
    """Return seed -> avg@4 alone of an arm, for seeds that are scored."""
    scored = {seed: done.get(_run(f"scored-{form}", seed)) for seed in SEEDS}
    return {seed: row["after"][arm] for seed, row in scored.items() if row is not None}


def _run(arm: str, seed: int) -> Run:
    return Run("consult", arm, seed)


def _screen(done: Stored) -> Iterator[str]:
    rows = [row for seed in SCREEN if (row := done.get(_run("scored-screen", seed))) is not None]
    if not rows:
        return
    yield from ("", "### The screen", "", "| arm | right alone |", "|---|---|")
    for arm in ("lone", *FORMS):
        yield f"| {arm} | {each([row['after'][arm] for row in rows])} |"


def _arms(done: Stored) -> Iterator[str]:
    if (form := consulting.chosen(done)) is None:
        return
    arms = ("alone", "consulted", "lone", form, f"imitated-{form}")
    of_arms = {arm: rates(done, arm, form) for arm in arms}
    if not of_arms[form]:
        return
    yield from ("", f"### Right alone after training, {len(of_arms[form])} seeds", "")
    yield f"| arm | by seed | {form} − it | steps | expert tokens, k | CPU s | commits |"
    yield f"|{'---|' * 7}"
    gains: dict[str, list[float]] = {}
    for arm, right in of_arms.items():
        less = [] if arm == form else _less(of_arms[form], right)
        rows = [row for seed in right if (row := done.get(_run(arm, seed))) is not None]
        yield f"| {arm} | {each(list(right.values()))} | {change(less)} | {_costs(rows)} |"
        if less:
            gains[f"− {arm}"] = less
    bound = t_interval(gains["− alone"]).low if len(of_arms[form]) > 1 else float("nan")
    yield from ("", f"Lower end of {form} − alone: {bound:.3f}; asked: above .10.")
    draw(gains, "reread.png", f"Right alone: {form} − arm")
    yield from ("", "![Consult and reread](../docs/evidence/reread.png)")


def _less(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


def _costs(rows: Sequence[Row]) -> str:
    """Means of steps, of expert tokens and of processor seconds, where known; commits."""
    cpu = [row["cpu_s"] for row in rows if row["cpu_s"] is not None]
    return " | ".join(
        (
            mean([row["after"]["steps"] for row in rows], 0),
            mean([row["after"].get("expert_tokens", 0) / 1000 for row in rows], 0),
            f"{np.mean(cpu):.0f}" if cpu else "",
            " ".join(sorted({row["commit"][:7] for row in rows})),
        )
    )
