"""How models learn from rewards on a laptop, from the stored runs of docs/first-real-model.md."""

import json
from collections.abc import Sequence
from pathlib import Path

from pictures.svg import Picture

DOCS = Path(__file__).parents[2] / "docs"
_TOP, _BOTTOM, _HIGHEST = 112, 330, 0.8
_MOMENTS = (("before", "before"), ("warmed-up", "warmed up"), ("after", "rewarded"))
_BLOCK = 5
"""Steps to a point of a stored curve of models that reason."""


def first_real_model() -> Picture:
    """Draw held-out Pass@1 before training, after the warm-up and after it; beside it, the right
    answers of each training step."""
    runs = json.loads((DOCS / "first-real-model.json").read_text(encoding="utf-8"))
    points = [[run[name][0] for name, _ in _MOMENTS] for run in runs]
    curves = [run["right"] for run in runs]
    steps = len(curves[0])
    marks = {step: str(step) for step in (1, steps // 2, steps)}
    words = [word for _, word in _MOMENTS]
    return _drawn("SmolLM2-135M: imitation, then reward", words, points, curves, marks)


def first_reasoning_model() -> Picture:
    """Draw held-out Pass@1 before and after training; beside it, the right answers of training, by
    five steps."""
    file = DOCS / "evidence/models-that-reason.jsonl"
    stored = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    runs = [run for run in stored if run["arm"] == "quick-short"]
    points = [[run[when]["pass@1"] for when in ("before", "after")] for run in runs]
    curves = [run["curve"]["measured/solver/correct"] for run in runs]
    last = min(run["steps"] for run in runs)
    marks = {
        block: f"{first}–{min(first + _BLOCK - 1, last)}"
        for block, first in enumerate(range(1, last + 1, _BLOCK), 1)
    }
    title = "Qwen2.5-Coder 0.5B: reward alone"
    return _drawn(title, ("before", "rewarded"), points, curves, marks)


def _drawn(
    title: str,
    moments: Sequence[str],
    points: Sequence[Sequence[float]],
    curves: Sequence[Sequence[float]],
    marks: dict[int, str],
) -> Picture:
    """Draw two panels.

    Args:
        title: of the picture.
        moments: names of the evaluations.
        points: held-out Pass@1 of each run at each of them.
        curves: shares of right answers of each run while it trains.
        marks: place in a curve, counted from 1 -> its label.
    """
    draw = Picture(title, 640, 402)
    draw.words(24, 62, "Share of right answers", "soft", 14)
    for left, wide, name in ((62, 210, "held out"), (336, 276, "training, by step")):
        draw.words(left, _TOP - 18, name, "bold f-blue", 16)
        for value in (0.0, 0.2, 0.4, 0.6):
            draw.line([(left, _height(value)), (left + wide, _height(value))], "grid thin")
            if left < 100:
                draw.words(left - 8, _height(value) + 5, f"{value:.1f}", "soft end", 13.5)
    places = [80 + 174 * place / (len(moments) - 1) for place in range(len(moments))]
    for values in points:
        draw.line(list(zip(places, map(_height, values))), "s-blue thin")
    means = [sum(values) / len(values) for values in zip(*points)]
    draw.line(list(zip(places, map(_height, means))), "s-blue", 3.4, "blue")
    for x, value, word in zip(places, means, moments):
        draw.words(x, _height(value) - 12, f".{1000 * value:03.0f}", "middle bold halo", 14)
        draw.words(x, _BOTTOM + 20, word, "soft middle", 13.5)
    count = min(map(len, curves))
    xs = [336 + 276 * (place + 0.5) / count for place in range(count)]
    for values in curves:
        draw.line(list(zip(xs, map(_height, values))), "s-orange thin")
    mean = [sum(values) / len(values) for values in zip(*curves)]
    draw.line(list(zip(xs, map(_height, mean))), "s-orange", 0, "orange")
    for place, label in marks.items():
        draw.words(xs[place - 1], _BOTTOM + 20, label, "soft middle", 13.5)
    draw.words(24, 385, f"{len(points)} seeds: thin; their mean: bold.", "soft", 14)
    return draw


def _height(value: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value / _HIGHEST
