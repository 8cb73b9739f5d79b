"""Tables of research/2026-11-real-models.md."""

from collections.abc import Iterator, Mapping

import numpy as np

from coterie.evaluation.metrics.deferral import random_deferral
from coterie.evaluation.metrics.intervals import t_interval
from coterie.evaluation.table import without_zero
from evidence.measures import SAMPLES, THRESHOLDS, held_out_parts, rate_of_kind
from evidence.real_problems import KINDS, SETS
from evidence.studies import Row, studies
from evidence.tables import (
    Rows,
    change,
    cpu,
    dots,
    each,
    mean,
    picture,
    plus_minus,
    section,
    select,
    signed,
    table,
)

_OWN = {"alice": "plus", "bob": "times"}
"""Role -> the kind of problem that it is warmed up on."""
_NAMES = {"warm": "warmed up", "asked": "consulted"}


def lines() -> Iterator[str]:
    """Yield the screen, the forms of teaching, deferral, consultation and the cost."""
    study = studies()["real"]
    main = study.runs[-1]
    rows = study.stored().values()
    parts = {
        part: {
            arm.removeprefix(f"{part}-"): of_arm
            for arm, of_arm in select(rows, main["seeds"]).items()
            if arm.startswith(f"{part}-")
        }
        for part in ("teach", "read", "pair", "defer", "consult")
    }
    (screen,) = (row for row in rows if row["seed"] not in main["seeds"])
    yield from ("", "### The screen", "", f"The warm-up has {main['warmup']} steps.", "")
    cells = ([r, *(without_zero(rate_of_kind(screen, r, k), 3) for k in KINDS)] for r in _OWN)
    yield from table(("role", *KINDS), cells)
    yield from _teaching(parts["teach"], "Teaching", "real-teaching.png")
    yield from _teaching(parts["read"], "Teaching, once hints are followed", "real-read.png")
    yield from _teaching(parts["pair"], "Teaching, SmolLM2 in both seats", "real-pair.png")
    yield from _real_deferral(parts["defer"])
    yield from _real_consultation(parts["consult"], parts["teach"]["warm"])
    of_arm: dict[str, list[Row]] = {}
    for row in rows:
        of_arm.setdefault(row["arm"], []).append(row)
    lines = [
        (
            *(arm, str(len(own)), cpu(own), f"{np.mean([r['asking_cpu_s'] for r in own]):,.0f}"),
            ", ".join(sorted({row["commit"] for row in own})),
        )
        for arm, own in of_arm.items()
    ]
    yield from ("", "### Cost", "")
    yield from ("CPU seconds of a run; those that were resumed are not counted.", "")
    yield from table(("arm", "runs", "trained", "asked", "commits"), lines)


def _teaching(of_arms: Mapping[str, Rows], title: str, drawn: str) -> Iterator[str]:
    gains: dict[str, list[float]] = {}
    for role, own in _OWN.items():
        peers = next(kind for kind in KINDS if kind != own)
        lines: list[list[str]] = []
        for arm in (arm for arm in ("warm", "alone", "other", "taught") if arm in of_arms):
            rows = of_arms[arm]
            less = [_less(of_arms, arm, than, role, peers) for than in ("alone", "other")]
            tokens = f"{np.mean([row['tokens'] for row in rows.values()]):,.0f}"
            right = (_of_kind(rows, role, kind) for kind in (peers, own))
            lines.append([_NAMES.get(arm, arm), *right, *less, "" if arm == "warm" else tokens])
        head = f"arm | {peers}, the peer's | {own}, its own | {peers}: − alone | − other | tokens"
        yield from section(f"{title}: {role}", head.split(" | "), lines)
        for name in ("other", "taught"):
            gains[f"{name}: {role}"] = _gaps(of_arms, name, "alone", role, peers)
    if any(gains.values()):
        known = {name: values for name, values in gains.items() if values}
        dots(known, drawn, "Pass@1 on the peer's kind: arm − alone")
        yield from picture(drawn, "Gain over alone")
    columns = [(name, kind) for kind in KINDS for name in SETS]
    lines = []
    for role in _OWN:
        for arm, rows in of_arms.items():
            rates = [
                mean(rate_of_kind(row, role, kind, name) for row in rows.values())
                for name, kind in columns
            ]
            lines.append([f"{role}, {_NAMES.get(arm, arm)}", *rates])
    yield from ("", *table(["role, arm", *(f"{name}, {kind}" for name, kind in columns)], lines))


def _real_deferral(of_arms: Mapping[str, Rows]) -> Iterator[str]:
    measures = {
        "ece": "ECE",
        "brier": "Brier",
        "auroc": "AUROC",
        "area": "over random",
        "stated": "states one",
    }
    ours = of_arms["corea"]
    lines: list[list[str]] = []
    gains: dict[str, list[float]] = {}
    for arm, rows in of_arms.items():
        alone = (plus_minus([row["alone"][place] for row in rows.values()]) for place in (0, 1))
        known = {key: [row["calibration"][key] for row in rows.values()] for key in measures}
        lines.append([_NAMES.get(arm, arm), *alone, *map(plus_minus, known.values())])
        if arm != "corea":
            for key, name in measures.items():
                both = ((ours[seed], row) for seed, row in rows.items())
                gaps = [a["calibration"][key] - b["calibration"][key] for a, b in both]
                gains[f"{name} − {arm}"] = gaps
    yield from section("Deferral", ("arm", "small", "large", *measures.values()), lines)
    yield from ("", *(f"- COREA: {name}: {change(values)}" for name, values in gains.items()))
    dots(gains, "real-deferral.png", "COREA − the other")
    yield from picture("real-deferral.png", "COREA less the others")
    lines = []
    for arm, rows in of_arms.items():
        for place, threshold in enumerate(THRESHOLDS):
            points = [row["thresholds"][place] for row in rows.values()]
            chances = [
                float(random_deferral(row["alone"][0], row["alone"][1], point[1]))
                for row, point in zip(rows.values(), points)
            ]
            deferred, accuracy, cost = ([point[n] for point in points] for n in (1, 2, 3))
            shown = (mean(values) for values in (deferred, accuracy, chances, cost))
            lines.append([_NAMES.get(arm, arm), f"{threshold:g}", *shown])
    head = ("arm", "threshold", "deferred", "accuracy", "at random", "cost")
    yield from ("", *table(head, lines))


def _real_consultation(trained: Mapping[str, Rows], warm: Rows) -> Iterator[str]:
    # The policy is the warmed-up alice, who is measured among teachers.
    before = {
        seed: {**row, "right": {"policy": row["right"]["alice"]}} for seed, row in warm.items()
    }
    of_arms = {"warm": before, **trained}
    learned, known = _OWN["bob"], _OWN["alice"]
    lines: list[list[str]] = []
    for arm, rows in of_arms.items():
        less = [_less(of_arms, arm, than, "policy", learned) for than in ("alone", "imitated")]
        spent = [row["expert_tokens"] for row in rows.values() if "expert_tokens" in row]
        tokens = "" if arm == "warm" else f"{np.mean(spent):,.0f}"
        right = (_of_kind(rows, "policy", kind) for kind in (learned, known))
        lines.append([_NAMES.get(arm, arm), *right, *less, tokens])
    head = (
        f"arm | {learned}, learned | {known}, known | {learned}: − alone | − imitated | "
        "expert's tokens"
    )
    yield from section("Consultation", head.split(" | "), lines)
    gains = {
        f"consulted − {than}": _gaps(of_arms, "asked", than, "policy", learned)
        for than in ("alone", "imitated")
    }
    dots(gains, "real-consulted.png", f"right alone on {learned}")
    yield from picture("real-consulted.png", "Consulted less the others")


def _of_kind(rows: Rows, role: str, kind: str) -> str:
    return each([rate_of_kind(row, role, kind) for row in rows.values()])


def _gaps(of_arms: Mapping[str, Rows], arm: str, than: str, role: str, kind: str) -> list[float]:
    ours, theirs = of_arms.get(arm, {}), of_arms.get(than, {})
    seeds = sorted(ours.keys() & theirs.keys())
    return [rate_of_kind(ours[s], role, kind) - rate_of_kind(theirs[s], role, kind) for s in seeds]


def _less(of_arms: Mapping[str, Rows], arm: str, than: str, role: str, kind: str) -> str:
    """Difference with its interval over seeds, and that over problems."""
    gaps = _gaps(of_arms, arm, than, role, kind)
    if arm in ("warm", than) or not gaps:
        return ""
    return f"{change(gaps)}; {problems_of_kind(of_arms[arm], of_arms[than], role, kind)}"


def problems_of_kind(ours: Rows, theirs: Rows, role: str, kind: str) -> str:
    """Format the interval of the difference over problems, each with its mean over seeds."""
    by_seed = [
        [int(a) - int(b) for a, b in zip(ours[seed]["right"][role], theirs[seed]["right"][role])]
        for seed in sorted(ours.keys() & theirs.keys())
    ]
    gap_Q = np.mean(by_seed, axis=0) / SAMPLES
    chosen = [gap for gap, part in zip(gap_Q, held_out_parts(), strict=True) if part[1] == kind]
    interval = t_interval(chosen)
    return f"problems [{signed(interval.low)}, {signed(interval.high)}]"
