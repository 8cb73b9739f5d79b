"""How the models of docs/first-real-model.md learn, from their stored runs."""

import json
from collections.abc import Sequence
from pathlib import Path

from pictures.svg import Picture

DOCS = Path(__file__).parents[2] / "docs"
_TOP, _BOTTOM, _HIGHEST = 112, 330, 0.8
_MOMENTS = (("before", "before"), ("warmed-up", "warmed up"), ("after", "rewarded"))
_LEFT, _HELD_OUT, _RIGHT, _TRAINING = 62, 210, 336, 276
"""Left edge and width of each half."""
_BLOCK = 5
"""Steps whose mean is stored."""

Curves = Sequence[Sequence[float]]
"""For each run, values in order."""


def first_real_model() -> Picture:
    """Draw held-out Pass@1 of SmolLM2 before training, after the warm-up and after it; beside it,
    the right answers of each training step."""
    runs = json.loads((DOCS / "first-real-model.json").read_text(encoding="utf-8"))
    points = [[run[name][0] for name, _ in _MOMENTS] for run in runs]
    words = [word for _, word in _MOMENTS]
    curves = [run["right"] for run in runs]
    steps = len(curves[0])
    marks = {place: str(place + 1) for place in (0, steps // 2 - 1, steps - 1)}
    return _picture("SmolLM2-135M: imitation, then reward", points, words, curves, marks)


def half_a_billion() -> Picture:
    """Draw held-out Pass@1 of Qwen2.5-Coder 0.5B before and after training; beside it, the right
    answers of each five training steps."""
    lines = (DOCS / "evidence/models-that-reason.jsonl").read_text(encoding="utf-8").splitlines()
    runs = [run for run in map(json.loads, lines) if run["arm"] == "quick-late"]
    points = [[run[when]["pass@1"] for when in ("before", "after")] for run in runs]
    curves = [run["curve"]["measured/solver/correct"] for run in runs]
    marks = {place: str(_BLOCK * (place + 1)) for place in range(1, len(curves[0]), 2)}
    title = "Qwen2.5-Coder 0.5B on SVAMP: rewards alone"
    return _picture(title, points, ["before", "after"], curves, marks)


def _picture(
    title: str, points: Curves, words: Sequence[str], curves: Curves, marks: dict[int, str]
) -> Picture:
    """Draw two halves: ``points`` at the moments ``words``, and ``curves`` with ``marks`` below
    some of their places."""
    draw = Picture(title, 640, 402)
    draw.words(24, 62, "Share of right answers", "soft", 14)
    halves = (
        (_LEFT, _HELD_OUT, "held out"),
        (_RIGHT, _TRAINING, "training, by step"),
    )
    for left, wide, name in halves:
        draw.words(left, _TOP - 18, name, "bold f-blue", 16)
        for value in (0.0, 0.2, 0.4, 0.6):
            draw.line([(left, _height(value)), (left + wide, _height(value))], "grid thin")
            if left == _LEFT:
                draw.words(left - 8, _height(value) + 5, f"{value:.1f}", "soft end", 13.5)
    gap = (_HELD_OUT - 36) / (len(words) - 1)
    places = [_LEFT + 18 + gap * moment for moment in range(len(words))]
    for values in points:
        draw.line(list(zip(places, map(_height, values))), "s-blue thin")
    means = [sum(values) / len(values) for values in zip(*points)]
    draw.line(list(zip(places, map(_height, means))), "s-blue", 3.4, "blue")
    for x, value, word in zip(places, means, words):
        draw.words(x, _height(value) - 12, f".{1000 * value:03.0f}", "middle bold halo", 14)
        draw.words(x, _BOTTOM + 20, word, "soft middle", 13.5)
    count = len(curves[0])
    xs = [_RIGHT + _TRAINING * (place + 0.5) / count for place in range(count)]
    for values in curves:
        draw.line(list(zip(xs, map(_height, values))), "s-orange thin")
    mean = [sum(values) / len(values) for values in zip(*curves)]
    draw.line(list(zip(xs, map(_height, mean))), "s-orange", 0, "orange")
    for place, label in marks.items():
        draw.words(xs[place], _BOTTOM + 20, label, "soft middle", 13.5)
    draw.words(24, 385, f"{len(points)} seeds: thin; their mean: bold.", "soft", 14)
    return draw


def _height(value: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value / _HIGHEST
