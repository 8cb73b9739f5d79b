"""Tables of research/2026-11-core-as-published.md and research/2026-11-eapo-as-published.md."""

from collections.abc import Iterator

from coterie.evaluation.metrics.intervals import t_interval
from coterie.evaluation.table import mean_over_seeds
from evidence.measures import EAPO, ROLES, TERMS
from evidence.studies import Row, stored, studies
from evidence.tables import broken, by_role, changes, cpu, mean, millions, section, select, table


def core_lines() -> Iterator[str]:
    """Yield a table of CoRe as published for each problem set."""
    study = studies()["published"]
    for cell in study.runs:
        rung, steps = cell["rung"], cell["steps"]
        of_arms = select(study.stored().values(), rung=rung, steps=steps)
        lines: list[list[str]] = []
        for arm in study.arms:
            rows = of_arms[arm]
            gaps = changes(of_arms["published"], rows) if arm != "published" else ["", ""]
            paid = [
                ", ".join(mean((r["paid"][role][term] for r in rows.values()), 2) for role in ROLES)
                for term in TERMS
            ]
            costs = (broken(rows), millions(rows), cpu(rows.values()))
            lines.append([arm, str(len(rows)), *by_role(rows), *gaps, *paid, *costs])
        head = (
            "arm | seeds | alice | bob | published − it: alice | bob | exploration paid: alice, bob"
            " | cross-model paid: alice, bob | fell apart | tokens, M | CPU s"
        )
        yield from section(f"{rung}, {steps} steps", head.split(" | "), lines)


def eapo_lines() -> Iterator[str]:
    """Yield the table of EAPO as published beside training alone."""
    of_arms = select(stored("eapo-published.jsonl"))
    lines: list[list[str]] = []
    for arm in ("published", "alone"):
        rows = of_arms[arm].values()
        means = (_over_seeds([_known(row, name) for row in rows]) for name in EAPO)
        tokens = ", ".join(f"{row['tokens'] / 1e6:.2f}" for row in rows)
        steps = ", ".join(str(row["steps"]) for row in rows)
        lines.append([arm, ", ".join(map(str, of_arms[arm])), *means, steps, tokens])
    yield from ("", *table(["arm", "seeds", *EAPO, "steps", "tokens, M"], lines))
    pairs = zip(of_arms["published"].values(), of_arms["alone"].values(), strict=True)
    gaps = [_known(ours, EAPO[0]) - _known(alone, EAPO[0]) for ours, alone in pairs]
    yield from ("", f"Published − alone, {EAPO[0]}: {_over_seeds(gaps, '+')}, {len(gaps)} seeds.")


def _known(row: Row, name: str) -> float:
    value = row["after"][name]
    return float("nan") if value is None else float(value)


def _over_seeds(values: list[float], sign: str = "") -> str:
    return mean_over_seeds(t_interval(values), sign)
