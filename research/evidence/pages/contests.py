"""Tables of research/2026-11-contests.md."""

from collections.abc import Iterator, Mapping, Sequence

from coterie.extras.papers.corea_systems import SYSTEMS
from evidence.studies import Row, stored
from evidence.tables import (
    Rows,
    change,
    differences,
    dots,
    each,
    fell,
    mean,
    millions,
    over_problems,
    picture,
    plus_minus,
    rate,
    section,
    select,
    table,
)

_EXPERTS = ("good", "half", "answer", "weak")


def lines() -> Iterator[str]:
    """Yield the tables of the five contests."""
    rows = stored("contests.jsonl")
    yield from _roles(rows)
    yield from _deferral(select(rows, contest="corea"))
    yield from _consultation(select(rows, contest="eapo"))
    yield from _together(select(rows, contest="together"))


def _roles(rows: Sequence[Row]) -> Iterator[str]:
    gains: dict[str, list[float]] = {}
    for contest in ("three", "unequal"):
        of_arms = select(rows, contest=contest)
        plain, ours = of_arms["plain"], of_arms["distillation"]
        head = "role | before | plain | distillation | distillation − plain | fell apart"
        lines: list[list[str]] = []
        for role in next(iter(plain.values()))["after"]:
            apart = [
                f"{arm} {seed}"
                for arm, of_arm in of_arms.items()
                for seed, row in of_arm.items()
                if role in fell(row)
            ]
            own = ([rate(row, role) for row in of_arm.values()] for of_arm in (plain, ours))
            before = mean(rate(row, role, "before") for row in plain.values())
            gap = over_problems(ours, plain, role)
            lines.append([role, before, *map(each, own), gap, ", ".join(apart) or "none"])
            gains[f"{contest}: {role}"] = differences(ours, plain, role)
        yield from section(f"{contest.capitalize()} roles", head.split(" | "), lines)
        yield ""
        yield (
            f"A run samples: plain {millions(plain)} million tokens, distillation {millions(ours)} "
            "million tokens."
        )
    dots(gains, "roles.png", "Pass@1: distillation − plain")
    yield from picture("roles.png", "Gain by role")


def _deferral(of_arms: Mapping[str, Rows]) -> Iterator[str]:
    figures = {
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
    larges = {
        "knows-all": "a large model that knows all",
        "errs": "a large model that errs on every fourth answer",
        "knows-other": "a model that knows other things, and less",
    }
    for large, title in larges.items():
        after = [row["after"] for row in of_arms[large].values()]
        lines: list[list[str]] = []
        for name in (name for name in SYSTEMS if name in after[0]):
            cells = [plus_minus([systems[name][key] for systems in after]) for key in figures]
            gaps = [systems["corea"]["accuracy"] - systems[name]["accuracy"] for systems in after]
            lines.append([SYSTEMS[name], *cells, "" if name == "corea" else change(gaps)])
        head = ("system", *figures.values(), "accuracy: COREA − it")
        yield from section(f"Deferral to {title}", head, lines)
        if large == "knows-all":
            yield from _equal_accuracy(after)


def _equal_accuracy(after: Sequence[Row]) -> Iterator[str]:
    """Each system's saving at equal accuracy, and how much more COREA saves."""
    losses = (1, 2, 5)
    saved = {
        name: [[systems[name].get(f"saving@{loss}%") for systems in after] for loss in losses]
        for name in SYSTEMS
        if "saving@1%" in after[0].get(name, {})
    }
    saved["random"] = [[random_saving(systems, loss / 100) for systems in after] for loss in losses]
    yield ""
    yield "Saved at an accuracy so many points below the large model's, and how much more by COREA:"
    lines: list[list[str]] = []
    for name, columns in saved.items():
        ahead = [_ahead(ours, values) for ours, values in zip(saved["corea"], columns)]
        ahead = ["", "", ""] if name == "corea" else ahead
        lines.append([SYSTEMS[name], *map(plus_minus, columns), *ahead])
    yield from ("", *table(("system", "1", "2", "5", "COREA − it: 1", "2", "5"), lines))
    known = {SYSTEMS[n]: [x for x in columns[1] if x is not None] for n, columns in saved.items()}
    dots(known, "saved.png", "cost saved, 2 points below the large model")
    yield from picture("saved.png", "Saved at equal accuracy")


def random_saving(systems: Row, loss: float) -> float:
    """Return the share of the cost that random deferral saves, ``loss`` below the large model."""
    never, always, whole = (systems[name] for name in ("never", "always", "llm"))
    share = 1 - loss / (always["accuracy"] - never["accuracy"])
    cost = never["cost"] + share * (always["cost"] - never["cost"])
    return 1 - cost / whole["cost"]


def _ahead(ours: Sequence[float | None], theirs: Sequence[float | None]) -> str:
    """The difference where both values are known."""
    pairs = ((our, their) for our, their in zip(ours, theirs))
    return change([a - b for a, b in pairs if a is not None and b is not None])


def _consultation(of_arms: Mapping[str, Rows]) -> Iterator[str]:
    """Consulting an expert beside imitating it, at once or before training alone."""

    def right(policy: str, arm: str = "scored") -> list[float]:
        return [row["after"][policy] for row in of_arms[arm].values()]

    gains: dict[str, list[float]] = {}
    lines: list[list[str]] = []
    for kind, imitated in (*((kind, kind) for kind in _EXPERTS), ("half", "right")):
        own, theirs = right(kind), right(f"imitated-{imitated}")
        tokens = mean((row["after"]["expert_tokens"] / 1e6 for row in of_arms[kind].values()), 2)
        name, shown, learned = f"{kind}, right solutions alone", "", ""
        if kind == imitated:
            name, shown, learned = kind, each(own), _ahead(own, right("alone"))
        lines.append([name, tokens, shown, each(theirs), _ahead(own, theirs), learned])
        gains[name] = [consulted - copied for consulted, copied in zip(own, theirs)]
    yield from ("", "### Consultation beside imitation", "")
    yield from (f"Right alone, avg@4; without any expert {each(right('alone'))}.", "")
    head = "expert | its tokens, M | consulted | imitated | − imitated | − alone"
    yield from table(head.split(" | "), lines)
    dots(gains, "consulted.png", "avg@4: consulted − imitated")
    yield from picture("consulted.png", "Consulted less imitated")

    yield from ("", "### Consultation beside imitation first", "")
    yield f"Imitated as far as consulting is told: {each(right('imitated-told', 'scored-then'))}."
    lines = []
    for kind, name, then in (
        ("answer", "answer", "answer"),
        ("weak", "weak", "weak"),
        ("good", "good, as far as it is told", "told"),
    ):
        theirs = right(f"then-{then}", "scored-then")
        lines.append([name, each(theirs), _ahead(right(kind), theirs)])
    yield from ("", *table(("expert", "imitated, then alone", "consulted − that"), lines))


def _together(of_arms: Mapping[str, Rows]) -> Iterator[str]:
    """Each system trained alone beside the pipeline of the three."""

    def values(arm: str, system: str, figure: str) -> list[float]:
        return [row["after"][system][figure] for row in of_arms[arm].values()]

    whole = values("of-pipeline", "corea", "accuracy")
    lines: list[list[str]] = []
    for arm in (arm for arm in of_arms if arm.startswith("of-")):
        pair = values(arm, "corea", "accuracy")
        alone = (plus_minus(values(arm, system, "accuracy")) for system in ("l1", "llm"))
        cost = (plus_minus(values(arm, "corea", figure)) for figure in ("deferred", "cost"))
        less = "" if arm == "of-pipeline" else _ahead(pair, whole)
        lines.append([arm.removeprefix("of-"), *alone, plus_minus(pair), *cost, less])
    head = "trained | erin alone | frank alone | erin, else frank | deferred | cost | − pipeline"
    yield from section("The three together", head.split(" | "), lines)
