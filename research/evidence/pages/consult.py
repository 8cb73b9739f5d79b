"""Tables of research/2026-11-consult-and-reread.md."""

from collections.abc import Iterator

from coterie.evaluation.metrics.intervals import t_interval
from evidence.studies import stored
from evidence.tables import change, cpu, dots, each, mean, picture, section, select


def lines() -> Iterator[str]:
    """Yield the screen, and the arms with what they cost."""
    of_arms = select(stored("consulting.jsonl"))
    screen = [row["after"] for row in of_arms["scored-screen"].values()]
    lines = [[arm, each([row[arm] for row in screen])] for arm in ("lone", "reread", "reread-long")]
    yield from section("The screen", ("arm", "right alone"), lines)
    form = "reread-long"
    scored = {seed: row["after"] for seed, row in of_arms[f"scored-{form}"].items()}
    gains: dict[str, list[float]] = {}
    lines = []
    for arm in ("alone", "consulted", "lone", form, f"imitated-{form}"):
        less = [row[form] - row[arm] for row in scored.values()] if arm != form else []
        rows = [row for seed, row in of_arms[arm].items() if seed in scored]
        costs = (
            mean((row["after"]["steps"] for row in rows), 0),
            mean((row["after"].get("expert_tokens", 0) / 1000 for row in rows), 0),
            cpu(rows),
            " ".join(sorted({row["commit"][:7] for row in rows})),
        )
        lines.append([arm, each([row[arm] for row in scored.values()]), change(less), *costs])
        if less:
            gains[f"− {arm}"] = less
    title = f"Right alone after training, {len(scored)} seeds"
    head = f"arm | by seed | {form} − it | steps | expert tokens, k | CPU s | commits"
    yield from section(title, head.split(" | "), lines)
    bound = t_interval(gains["− alone"]).low
    yield from ("", f"Lower end of {form} − alone: {bound:.3f}; asked: above .10.")
    dots(gains, "reread.png", f"Right alone: {form} − arm")
    yield from picture("reread.png", "Consult and reread")
