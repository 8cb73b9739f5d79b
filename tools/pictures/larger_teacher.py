"""A model taught by a larger one's probabilities, and by rewards, from the stored runs of
research/2026-11-models-that-reason.md."""

import json
from pathlib import Path

from pictures.svg import Picture

DATA = Path(__file__).parents[2] / "docs/evidence/models-that-reason.jsonl"
_TOP, _BOTTOM, _WIDE, _TOKENS = 112, 330, 250, 70_000
_ARMS = (("brief-taught", "taught", "blue"), ("brief-rewards", "rewards", "orange"))
_PANELS = ((62, 1, "right", 0.2), (366, 2, "states an answer", 0.6))
"""Left edge, column of the stored evaluations, title, lowest value; the highest is .4 above."""


def larger_teacher() -> Picture:
    """Draw held-out Pass@1 by sampled tokens for both arms; beside it, stated answers."""
    runs = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    draw = Picture("Taught by a larger model, or by rewards", 640, 402)
    words = "Qwen2.5-Coder 0.5B on SVAMP: held-out answers by thousand sampled tokens"
    draw.words(24, 62, words, "soft", 14)
    for left, column, title, lowest in _PANELS:
        _panel(draw, runs, left, column, title, lowest)
    seeds = len({run["seed"] for run in runs if run["arm"] == _ARMS[0][0]})
    words = f"Seeds: {seeds}; 80 problems of the test split, two answers to each."
    draw.words(24, 385, words, "soft", 14)
    return draw


def _panel(
    draw: Picture, runs: list[dict], left: int, column: int, title: str, lowest: float
) -> None:
    def place(tokens: float, value: float) -> tuple[float, float]:
        x = left + _WIDE * tokens / _TOKENS
        return x, _BOTTOM - (_BOTTOM - _TOP) * (value - lowest) / 0.4

    draw.words(left, _TOP - 18, title, "bold", 16)
    for value in (lowest, lowest + 0.2, lowest + 0.4):
        draw.line([place(0, value), place(_TOKENS, value)], "grid thin")
        draw.words(left - 8, place(0, value)[1] + 5, f"{value:.1f}", "soft end", 13.5)
    for thousands in (0, 20, 40, 60):
        x, y = place(1000 * thousands, lowest)
        draw.words(x, y + 20, str(thousands), "soft middle", 13.5)
    chosen = {arm: [run["held-out"] for run in runs if run["arm"] == arm] for arm, *_ in _ARMS}
    highest = max(chosen, key=lambda arm: chosen[arm][0][-1][column])
    for arm, label, tone in _ARMS:
        for held in chosen[arm]:
            draw.line([place(point[0], point[column]) for point in held], f"s-{tone}", 3.4, tone)
        x, y = place(chosen[arm][-1][-1][0], chosen[arm][-1][-1][column])
        words = f"{label} .{1000 * chosen[arm][-1][-1][column]:03.0f}"
        draw.words(
            x + 20, y - 12 if arm == highest else y + 34, words, f"end bold f-{tone} halo", 14
        )
