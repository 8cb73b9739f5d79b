"""A model taught by a larger one's probabilities, and by rewards, from the stored runs of
research/2026-11-models-that-reason.md."""

import json
from pathlib import Path

from pictures.svg import Picture

DATA = Path(__file__).parents[2] / "docs/evidence/models-that-reason.jsonl"
_TOP, _BOTTOM, _WIDE, _TOKENS = 112, 330, 250, 70_000
_ARMS = (("brief-taught", "taught", "blue"), ("brief-rewards", "rewards", "orange"))
_PANELS = ((62, 1, "right", 0.8), (366, 2, "states an answer", 1.0))
"""Left edge, column of the stored evaluations, title, highest value."""


def larger_teacher() -> Picture:
    """Draw held-out Pass@1 by sampled tokens for both arms; beside it, stated answers."""
    runs = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    draw = Picture("Taught by a larger model, or by rewards", 640, 402)
    words = "Qwen2.5-Coder 0.5B on SVAMP: held-out answers by thousand sampled tokens"
    draw.words(24, 62, words, "soft", 14)
    for left, column, title, highest in _PANELS:
        _panel(draw, runs, left, column, title, highest)
    seeds = {run["seed"] for run in runs if run["arm"] == _ARMS[0][0]}
    draw.words(24, 385, f"{len(seeds)} seed{'s' * (len(seeds) > 1)}.", "soft", 14)
    return draw


def _panel(
    draw: Picture, runs: list[dict], left: int, column: int, title: str, highest: float
) -> None:
    def place(tokens: float, value: float) -> tuple[float, float]:
        return left + _WIDE * tokens / _TOKENS, _BOTTOM - (_BOTTOM - _TOP) * value / highest

    draw.words(left, _TOP - 18, title, "bold", 16)
    for fifth in range(0, 5, 2 if highest < 1 else 1):
        value = highest * fifth / 4
        draw.line([place(0, value), place(_TOKENS, value)], "grid thin")
        draw.words(left - 8, place(0, value)[1] + 5, f"{value:.1f}", "soft end", 13.5)
    for thousands in (0, 20, 40, 60):
        draw.words(place(1000 * thousands, 0)[0], _BOTTOM + 20, str(thousands), "soft middle", 13.5)
    for arm, label, tone in _ARMS:
        for run in runs:
            if run["arm"] == arm:
                points = [place(held[0], held[column]) for held in run["held-out"]]
                draw.line(points, f"s-{tone}", 3.4, tone)
                last = run["held-out"][-1][column]
                words = f"{label} .{1000 * last:03.0f}" if last < 1 else f"{label} 1"
                draw.words(*points[-1], words, "end bold halo", 14)
