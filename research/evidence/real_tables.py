"""Tables of research/2026-11-real-models.md and pictures of docs/evidence.md, of stored results."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from coterie.evaluation.metrics.deferral import random_deferral
from coterie.evaluation.metrics.intervals import t_interval
from coterie.evaluation.table import without_zero
from evidence import real_models
from evidence.cells import change, each, plus_minus, signed
from evidence.contest_tables import draw
from evidence.real_models import OWN, SEEDS, Stored
from evidence.real_problems import KINDS, SETS
from evidence.real_results import SAMPLES, THRESHOLDS, of_problems, rate
from evidence.runs import ROOT, Row, missing_lines, put

PAGE = ROOT / "research/2026-11-real-models.md"
_CALIBRATION = {
    "ece": "ECE",
    "brier": "Brier",
    "auroc": "AUROC",
    "area": "over random",
    "stated": "states one",
}
_NAMES = {"warm": "warmed up", "imitated": "imitated", "asked": "consulted"}

Rows = Mapping[int, Row]


def write() -> None:
    """Write tables and pictures into the page."""
    done = real_models.stored()
    parts = (_screen, _teaching, _deferred, _consulted, _costs)
    put(PAGE, [*(line for part in parts for line in part(done)), *missing_lines(real_models), ""])


def arms(done: Stored, part: str) -> dict[str, dict[int, Row]]:
    """Return arm, without the part's name -> seed -> row, without the screen."""
    rows: dict[str, dict[int, Row]] = {}
    for run, row in sorted(done.items(), key=lambda item: item[0].seed):
        if run.arm.startswith(f"{part}-") and run.seed in SEEDS:
            rows.setdefault(run.arm.removeprefix(f"{part}-"), {})[run.seed] = row
    return rows


def _screen(done: Stored) -> Iterator[str]:
    for run, row in done.items():
        if run.seed != real_models.SCREEN:
            continue
        yield from ("", "### The screen", "")
        yield f"The warm-up has {real_models.warm_up_steps(done)} steps."
        yield from ("", f"| role | {' | '.join(KINDS)} |", f"|{'---|' * (1 + len(KINDS))}")
        for role in OWN:
            cells = (without_zero(rate(row, role, kind), 3) for kind in KINDS)
            yield f"| {role} | {' | '.join(cells)} |"


def _teaching(done: Stored) -> Iterator[str]:
    yield from _taught(arms(done, "teach"), "Teaching", "real-teaching.png")
    yield from _taught(arms(done, "read"), "Teaching, once hints are followed", "real-read.png")
    yield from _taught(arms(done, "pair"), "Teaching, SmolLM2 in both seats", "real-pair.png")


def _taught(of_arms: Mapping[str, Rows], title: str, picture: str) -> Iterator[str]:
    order = ("warm", "alone", "other", "taught")
    gains: dict[str, list[float]] = {}
    for role, own in OWN.items():
        peers = next(kind for kind in KINDS if kind != own)
        if not of_arms:
            return
        yield from ("", f"### {title}: {role}{_share(of_arms)}", "")
        learned = f"{peers}, the peer's | {own}, its own | {peers}: − alone | − other"
        yield f"| arm | {learned} | tokens |"
        yield f"|{'---|' * 6}"
        for arm in (arm for arm in order if arm in of_arms):
            rows = of_arms[arm]
            less = [_less(rows, of_arms, than, arm, role, peers) for than in ("alone", "other")]
            tokens = (
                "" if arm == "warm" else f"{_mean(row['tokens'] for row in rows.values()):,.0f}"
            )
            cells = (
                *(_NAMES.get(arm, arm), *(_each(rows, role, kind) for kind in (peers, own))),
                *(*less, tokens),
            )
            yield f"| {' | '.join(cells)} |"
        for name in ("other", "taught"):
            gains[f"{name}: {role}"] = _gaps(of_arms, name, "alone", role, peers)
    if any(gains.values()):
        draw(_known(gains), picture, "Pass@1 on the peer's kind: arm − alone")
        yield from ("", f"![Gain over alone](../docs/evidence/{picture})")
    yield from _by_set(of_arms)


def _by_set(of_arms: Mapping[str, Rows]) -> Iterator[str]:
    columns = [(name, kind) for kind in KINDS for name in SETS]
    yield from ("", f"| role, arm | {' | '.join(f'{n}, {k}' for n, k in columns)} |")
    yield f"|{'---|' * (1 + len(columns))}"
    for role in OWN:
        for arm, rows in of_arms.items():
            cells = (
                without_zero(_mean(rate(row, role, kind, name) for row in rows.values()), 3)
                for name, kind in columns
            )
            yield f"| {role}, {_NAMES.get(arm, arm)} | {' | '.join(cells)} |"


def _deferred(done: Stored) -> Iterator[str]:
    of_arms = arms(done, "defer")
    if not of_arms:
        return
    yield from ("", f"### Deferral{_share(of_arms)}", "")
    yield f"| arm | small | large | {' | '.join(_CALIBRATION.values())} |"
    yield f"|{'---|' * (3 + len(_CALIBRATION))}"
    for arm, rows in of_arms.items():
        alone = (plus_minus([row["alone"][place] for row in rows.values()]) for place in (0, 1))
        measured = (
            plus_minus([row["calibration"][name] for row in rows.values()]) for name in _CALIBRATION
        )
        yield f"| {_NAMES.get(arm, arm)} | {' | '.join((*alone, *measured))} |"
    gains = {
        name: [
            of_arms["corea"][seed]["calibration"][key] - rows[seed]["calibration"][key]
            for seed in sorted(of_arms["corea"].keys() & rows.keys())
        ]
        for arm, rows in of_arms.items()
        for key, name in ((key, f"{_CALIBRATION[key]} − {arm}") for key in _CALIBRATION)
        if "corea" in of_arms and arm != "corea"
    }
    yield from ("", *(f"- COREA: {name}: {change(values)}" for name, values in gains.items()))
    if any(gains.values()):
        draw(_known(gains), "real-deferral.png", "COREA − the other")
        yield from ("", "![COREA less the others](../docs/evidence/real-deferral.png)")
    yield from ("", "| arm | threshold | deferred | accuracy | at random | cost |")
    yield f"|{'---|' * 6}"
    for arm, rows in of_arms.items():
        for place, threshold in enumerate(THRESHOLDS):
            points = [row["thresholds"][place] for row in rows.values()]
            chances = [
                float(random_deferral(small, large, row["thresholds"][place][1]))
                for row in rows.values()
                for small, large in (row["alone"],)
            ]
            deferred, accuracy, cost = (_mean(point[n] for point in points) for n in (1, 2, 3))
            figures = (deferred, accuracy, _mean(chances), cost)
            shown = " | ".join(without_zero(value, 3) for value in figures)
            yield f"| {_NAMES.get(arm, arm)} | {threshold:g} | {shown} |"


def _consulted(done: Stored) -> Iterator[str]:
    of_arms = arms(done, "consult")
    if not of_arms:
        return
    # The policy is the warmed-up alice, who is measured among teachers.
    before = {
        seed: {**row, "right": {"policy": row["right"]["alice"]}}
        for seed, row in arms(done, "teach").get("warm", {}).items()
    }
    of_arms = {"warm": before, **of_arms} if before else of_arms
    learned, known = OWN["bob"], OWN["alice"]
    yield from ("", f"### Consultation{_share(of_arms)}", "")
    measured = f"{learned}, learned | {known}, known | {learned}: − alone | − imitated"
    yield f"| arm | {measured} | expert's tokens |"
    yield f"|{'---|' * 6}"
    for arm, rows in of_arms.items():
        less = [
            _less(rows, of_arms, than, arm, "policy", learned) for than in ("alone", "imitated")
        ]
        spent = [row["expert_tokens"] for row in rows.values() if "expert_tokens" in row]
        tokens = f"{_mean(spent):,.0f}" if spent and arm != "warm" else ""
        cells = (
            *(_NAMES.get(arm, arm), *(_each(rows, "policy", kind) for kind in (learned, known))),
            *(*less, tokens),
        )
        yield f"| {' | '.join(cells)} |"
    gains = {
        f"consulted − {than}": _gaps(of_arms, "asked", than, "policy", learned)
        for than in ("alone", "imitated")
    }
    if any(gains.values()):
        draw(_known(gains), "real-consulted.png", f"right alone on {learned}")
        yield from ("", "![Consulted less the others](../docs/evidence/real-consulted.png)")


def _costs(done: Stored) -> Iterator[str]:
    of_arm: dict[str, list[Row]] = {}
    for run, row in done.items():
        of_arm.setdefault(run.arm, []).append(row)
    if not of_arm:
        return
    said = "CPU seconds of a run; those that were resumed are not counted."
    yield from ("", "### Cost", "", said, "")
    yield from ("| arm | runs | trained | asked | commits |", f"|{'---|' * 5}")
    for arm, rows in of_arm.items():
        trained = [row["cpu_s"] for row in rows if row["cpu_s"] is not None]
        cells = (
            f"{_mean(trained):,.0f}" if trained else "",
            f"{_mean(row['asking_cpu_s'] for row in rows):,.0f}",
            ", ".join(sorted({row["commit"] for row in rows})),
        )
        yield f"| {arm} | {len(rows)} | {' | '.join(cells)} |"


def _less(
    rows: Rows, of_arms: Mapping[str, Rows], than: str, arm: str, role: str, kind: str
) -> str:
    """Difference with its interval over seeds, and that over problems."""
    theirs = of_arms.get(than, {})
    if arm in ("warm", than) or not rows.keys() & theirs.keys():
        return ""
    over_seeds = change(_gaps(of_arms, arm, than, role, kind))
    return f"{over_seeds}; {by_problem(rows, theirs, role, kind)}"


def _gaps(of_arms: Mapping[str, Rows], arm: str, than: str, role: str, kind: str) -> list[float]:
    ours, theirs = of_arms.get(arm, {}), of_arms.get(than, {})
    seeds = sorted(ours.keys() & theirs.keys())
    return [rate(ours[s], role, kind) - rate(theirs[s], role, kind) for s in seeds]


def by_problem(ours: Rows, theirs: Rows, role: str, kind: str) -> str:
    """The interval of the difference over problems, each with its mean over seeds."""
    seeds = sorted(ours.keys() & theirs.keys())
    of_seed = [
        [int(a) - int(b) for a, b in zip(ours[seed]["right"][role], theirs[seed]["right"][role])]
        for seed in seeds
    ]
    gap_Q = np.mean(of_seed, axis=0) / SAMPLES
    chosen = [gap for gap, (_, kind_) in zip(gap_Q, of_problems(), strict=True) if kind_ == kind]
    interval = t_interval(chosen)
    return f"problems [{signed(interval.low)}, {signed(interval.high)}]"


def _each(rows: Rows, role: str, kind: str) -> str:
    return each([rate(row, role, kind) for row in rows.values()])


def _mean(values: Any) -> float:
    return float(np.mean([*values]))


def _known(gains: Mapping[str, list[float]]) -> dict[str, list[float]]:
    return {name: values for name, values in gains.items() if values}


def _share(of_arms: Mapping[str, Rows]) -> str:
    seeds = {seed for rows in of_arms.values() for seed in rows}
    return "" if len(seeds) == len(SEEDS) else f" ({len(seeds)} of {len(SEEDS)} seeds)"
