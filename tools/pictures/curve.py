"""Training with a peer and alone at equal tokens, from the stored runs of docs/evidence.md."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pictures.svg import Picture

DATA = Path(__file__).parents[2] / "docs/evidence/results.jsonl"
_RUNG, _STEPS, _BLOCK = "complementary", 330, 30
_SEEDS = range(60, 65)
_TOP, _BOTTOM, _WIDE = 112, 330, 250
_ARMS = (("expected", "taught", "", 3.4), ("plain", "alone", " dash", 0.0))


def learning_curve() -> Picture:
    """Draw right traces of alice and bob by step: each seed thin, their mean bold."""
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    runs = [
        row
        for row in rows
        if row["rung"] == _RUNG and row["steps"] == _STEPS and row["seed"] in _SEEDS
    ]
    draw = Picture("Each knows half: taught by a peer, and alone", 640, 402)
    draw.words(24, 62, f"Share of right traces, over {_STEPS} training steps", "soft", 14)
    for left, role, tone in ((62, "alice", "blue"), (366, "bob", "orange")):
        _panel(draw, runs, left, role, tone)
    arms = {arm for arm, *_ in _ARMS}
    tokens = [row["tokens"] for row in runs if row["arm"] in arms]
    millions = sum(tokens) / len(tokens) / 1e6
    words = f"Five seeds, {millions:.2f} million sampled tokens each; numbers: held-out Pass@1."
    draw.words(24, 385, words, "soft", 14)
    return draw


def _panel(draw: Picture, runs: Sequence[Any], left: int, role: str, tone: str) -> None:
    def place(step: float, value: float) -> tuple[float, float]:
        x = left + _WIDE * step / _STEPS
        return x, _BOTTOM - (_BOTTOM - _TOP) * (value - 0.5) / 0.5

    draw.words(left, _TOP - 18, role, f"bold f-{tone}", 16)
    for value in (0.5, 0.75, 1.0):
        draw.line([place(0, value), place(_STEPS, value)], "grid thin")
        if left < 100:
            draw.words(left - 8, place(0, value)[1] + 5, f"{value:.2f}", "soft end", 13.5)
    for step in (0, 100, 200, 300):
        draw.words(place(step, 0)[0], _BOTTOM + 20, str(step), "soft middle", 13.5)
    centres = [_BLOCK * (block + 0.5) for block in range(_STEPS // _BLOCK)]
    for arm, label, dash, dots in _ARMS:
        chosen = [row for row in runs if row["arm"] == arm]
        curves = [row["curve"][role] for row in chosen]
        for values in curves:
            draw.line([*map(place, centres, values)], f"s-{tone} thin{dash}")
        mean = [sum(values) / len(values) for values in zip(*curves)]
        draw.line([*map(place, centres, mean)], f"s-{tone}{dash}", dots, tone)
        right = [row["after"][role][0] / row["after"][role][1] for row in chosen]
        above = arm == "expected"
        x, y = place(_STEPS, mean[-1])
        words = f"{label} .{1000 * sum(right) / len(right):.0f}"
        draw.words(x, y - 12 if above else y + 28, words, "end bold halo", 14)
