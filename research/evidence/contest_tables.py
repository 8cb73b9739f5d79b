"""Tables of research/2026-11-contests.md and pictures of docs/evidence.md, from stored results."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from coterie.evaluation.compare.pictures import drawing
from coterie.evaluation.metrics.intervals import t_interval
from coterie.evaluation.table import without_zero
from coterie.extras.papers.corea_systems import SYSTEMS
from evidence import contests
from evidence.cells import change, each, mean, plus_minus
from evidence.contests import EXPERTS, SEEDS, Run, stored
from evidence.peer_tables import difference
from evidence.runs import ROOT, Row, differences, fell, missing_lines, put, rate

PAGE = ROOT / "research/2026-11-contests.md"
PICTURES = ROOT / "docs/evidence"

Stored = Mapping[Run, Row]

_FIGURES = {
    "accuracy": "accuracy",
    "ece": "ECE",
    "auroc": "AUROC",
    "deferred": "deferred",
    "random_gain": "over random",
    "helped": "made right",
    "harmed": "made wrong",
    "saving": "saved",
    "loss": "lost",
}
_LOSSES = ("1%", "2%", "5%")
_LARGE = {
    "knows-all": "a large model that knows all",
    "errs": "a large model that errs on every fourth answer",
    "knows-other": "a model that knows other things, and less",
}


def write() -> None:
    """Write tables and pictures into the page."""
    rows = stored()
    parts = (_taught, _cascades, _consulted, _imitated_first, _together)
    lines = [line for part in parts for line in part(rows)]
    put(PAGE, [*lines, *missing_lines(contests), ""])


def arms(stored: Stored, contest: str) -> dict[str, dict[int, Row]]:
    """Return arm -> seed -> row."""
    rows: dict[str, dict[int, Row]] = {}
    for run, row in stored.items():
        if run.contest == contest:
            rows.setdefault(run.arm, {})[run.seed] = row
    return rows


def _taught(stored: Stored) -> Iterator[str]:
    gains: dict[str, list[float]] = {}
    for contest in ("three", "unequal"):
        of_arms = arms(stored, contest)
        plain, ours = (of_arms.get(arm, {}) for arm in ("plain", "distillation"))
        seeds = sorted(plain.keys() & ours.keys())
        if not seeds:
            continue
        yield from ("", f"### {contest.capitalize()} roles{_share(seeds)}", "")
        yield "| role | before | plain | distillation | distillation − plain | fell apart |"
        yield "|---|---|---|---|---|---|"
        for role in plain[seeds[0]]["after"]:
            broken = [
                f"{arm} {s}"
                for arm, rows in of_arms.items()
                for s in seeds
                if role in fell(rows[s])
            ]
            cells = [
                role,
                mean([rate(plain[seed], role, "before") for seed in seeds]),
                *(each([rate(rows[seed], role) for seed in seeds]) for rows in (plain, ours)),
                difference(ours, plain, role),
                ", ".join(broken) or "none",
            ]
            yield f"| {' | '.join(cells)} |"
            gains[f"{contest}: {role}"] = differences(ours, plain, role)
        spent = (
            f"{arm} {np.mean([rows[s]['tokens'] for s in seeds]) / 1e6:.2f} million tokens"
            for arm, rows in (("plain", plain), ("distillation", ours))
        )
        yield from ("", f"A run samples: {', '.join(spent)}.")
    if gains:
        draw(gains, "roles.png", "Pass@1: distillation − plain")
        yield from ("", "![Gain by role](../docs/evidence/roles.png)")


def _cascades(stored: Stored) -> Iterator[str]:
    of_arms = arms(stored, "corea")
    for large, title in _LARGE.items():
        rows = of_arms.get(large, {})
        if not rows:
            continue
        seeds = sorted(rows)
        after = [rows[seed]["after"] for seed in seeds]
        yield from ("", f"### Deferral to {title}{_share(seeds)}", "")
        yield f"| system | {' | '.join(_FIGURES.values())} | accuracy: COREA − it |"
        yield f"|{'---|' * (len(_FIGURES) + 2)}"
        for name in (name for name in SYSTEMS if name in after[0]):
            cells = (plus_minus([systems[name][key] for systems in after]) for key in _FIGURES)
            ours, theirs = (
                [systems[who]["accuracy"] for systems in after] for who in ("corea", name)
            )
            ahead = "" if name == "corea" else _ahead(ours, theirs)
            yield f"| {SYSTEMS[name]} | {' | '.join((*cells, ahead))} |"
        if large == "knows-all":
            yield from _equal_accuracy(after)


def _equal_accuracy(after: Sequence[Row]) -> Iterator[str]:
    """Yield each system's saving at equal accuracy, and how much more COREA saves."""
    saved = {
        name: [[systems[name].get(f"saving@{loss}") for systems in after] for loss in _LOSSES]
        for name in SYSTEMS
        if f"saving@{_LOSSES[0]}" in after[0].get(name, {})
    }
    saved["random"] = [
        [random_saving(systems, int(loss.rstrip("%")) / 100) for systems in after]
        for loss in _LOSSES
    ]
    text = (
        "Saved at an accuracy so many points below the large model's, and how much more by COREA:"
    )
    yield from ("", text, "")
    yield "| system | 1 | 2 | 5 | COREA − it: 1 | 2 | 5 |"
    yield f"|{'---|' * 7}"
    for name, columns in saved.items():
        own = (plus_minus(values) for values in columns)
        ahead = (_ahead(saved["corea"][place], values) for place, values in enumerate(columns))
        cells = (*own, *(ahead if name != "corea" else ("", "", "")))
        yield f"| {SYSTEMS[name]} | {' | '.join(cells)} |"
    dots = {
        SYSTEMS[name]: [x for x in columns[1] if x is not None] for name, columns in saved.items()
    }
    draw(dots, "saved.png", "cost saved, 2 points below the large model")
    yield from ("", "![Saved at equal accuracy](../docs/evidence/saved.png)")


def _consulted(stored: Stored) -> Iterator[str]:
    """Yield rows that compare consulting an expert with imitating as many of its tokens."""
    of_arms = arms(stored, "eapo")
    rows = of_arms.get("scored", {})
    if not rows:
        return
    seeds = sorted(rows)

    def right(policy: str) -> list[float]:
        return [rows[seed]["after"][policy] for seed in seeds]

    yield from ("", f"### Consultation beside imitation{_share(seeds)}", "")
    yield f"Right alone, avg@4; without any expert {each(right('alone'))}."
    yield ""
    yield "| expert | its tokens, M | consulted | imitated | − imitated | − alone |"
    yield f"|{'---|' * 6}"
    gains: dict[str, list[float]] = {}
    for kind, imitated in (*((kind, kind) for kind in EXPERTS), ("half", "right")):
        own, theirs = right(kind), right(f"imitated-{imitated}")
        asked = [of_arms[kind][seed] for seed in seeds if seed in of_arms.get(kind, {})]
        tokens = [row["after"]["expert_tokens"] / 1e6 for row in asked]
        millions = without_zero(float(np.mean(tokens)), 2) if tokens else ""
        name, shown, learned = (
            (kind, each(own), _ahead(own, right("alone")))
            if kind == imitated
            else (f"{kind}, right solutions alone", "", "")
        )
        cells = (millions, shown, each(theirs), _ahead(own, theirs), learned)
        yield f"| {name} | {' | '.join(cells)} |"
        gains[name] = [consulted - copied for consulted, copied in zip(own, theirs)]
    draw(gains, "consulted.png", "avg@4: consulted − imitated")
    yield from ("", "![Consulted less imitated](../docs/evidence/consulted.png)")


def _imitated_first(stored: Stored) -> Iterator[str]:
    """Yield rows that compare consulting an expert with imitating it before training alone."""
    of_arms = arms(stored, "eapo")
    rows, later = of_arms.get("scored", {}), of_arms.get("scored-then", {})
    seeds = sorted(rows.keys() & later.keys())
    if not seeds:
        return
    yield from ("", f"### Consultation beside imitation first{_share(seeds)}", "")
    shares = [later[seed]["after"]["imitated-told"] for seed in seeds]
    yield f"Imitated as far as consulting is told: {each(shares)}."
    yield from ("", "| expert | imitated, then alone | consulted − that |", f"|{'---|' * 3}")
    for kind, name, then in (
        ("answer", "answer", "answer"),
        ("weak", "weak", "weak"),
        ("good", "good, as far as it is told", "told"),
    ):
        own = [rows[seed]["after"][kind] for seed in seeds]
        theirs = [later[seed]["after"][f"then-{then}"] for seed in seeds]
        yield f"| {name} | {each(theirs)} | {_ahead(own, theirs)} |"


def _together(stored: Stored) -> Iterator[str]:
    """Yield rows that compare each system trained alone with the pipeline of the three."""
    of_arms = {
        a.removeprefix("of-"): rows for a, rows in arms(stored, "together").items() if "of-" in a
    }
    if "pipeline" not in of_arms:
        return
    seeds = sorted(of_arms["pipeline"])
    yield from ("", f"### The three together{_share(seeds)}", "")
    yield "| trained | erin alone | frank alone | erin, else frank | deferred | cost | − pipeline |"
    yield f"|{'---|' * 7}"

    def values(name: str, system: str, figure: str) -> list[float]:
        rows = of_arms[name]
        return [rows[seed]["after"][system][figure] for seed in seeds if seed in rows]

    whole = values("pipeline", "corea", "accuracy")
    for name in of_arms:
        pair = values(name, "corea", "accuracy")
        cells = [
            *(plus_minus(values(name, system, "accuracy")) for system in ("l1", "llm")),
            *(plus_minus(pair), plus_minus(values(name, "corea", "deferred"))),
            plus_minus(values(name, "corea", "cost")),
            "" if name == "pipeline" or len(pair) != len(whole) else _ahead(pair, whole),
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def random_saving(systems: Row, loss: float) -> float | None:
    """Return the share of the cost that random deferral saves, ``loss`` below the large model."""
    never, always, whole = (systems[name] for name in ("never", "always", "llm"))
    gap = always["accuracy"] - never["accuracy"]
    if gap <= 0:
        return None
    share = max(0.0, 1 - loss / gap)
    cost = never["cost"] + share * (always["cost"] - never["cost"])
    return 1 - cost / whole["cost"]


def _ahead(ours: Sequence[float | None], theirs: Sequence[float | None]) -> str:
    return change(
        [our - their for our, their in zip(ours, theirs) if our is not None and their is not None]
    )


def draw(values: Mapping[str, Sequence[float]], name: str, label: str) -> None:
    """Draw one line per name: a dot per seed, with mean and interval."""
    path = PICTURES / name
    with drawing(path, figsize=(6, 0.6 + 0.32 * len(values)), layout="constrained") as axis:
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


def _share(seeds: Sequence[int]) -> str:
    return "" if len(seeds) == len(SEEDS) else f" ({len(seeds)} of {len(SEEDS)} seeds)"
