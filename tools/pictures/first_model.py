"""How a first real model learns, from the stored runs of docs/first-real-model.md."""

import json
from pathlib import Path

from pictures.svg import Picture

DATA = Path(__file__).parents[2] / "docs/first-real-model.json"
_TOP, _BOTTOM, _HIGHEST = 112, 330, 0.8
_MOMENTS = (("before", "before"), ("warmed-up", "warmed up"), ("after", "rewarded"))


def first_real_model() -> Picture:
    """Draw held-out Pass@1 before training, after the warm-up and after it; beside it, the right
    answers of each training step."""
    runs = json.loads(DATA.read_text(encoding="utf-8"))
    draw = Picture("SmolLM2-135M: imitation, then reward", 640, 402)
    draw.words(24, 62, "Share of right answers", "soft", 14)
    for left, wide, title in ((62, 210, "held out"), (336, 276, "training, by step")):
        draw.words(left, _TOP - 18, title, "bold f-blue", 16)
        for value in (0.0, 0.2, 0.4, 0.6):
            draw.line([(left, _height(value)), (left + wide, _height(value))], "grid thin")
            if left < 100:
                draw.words(left - 8, _height(value) + 5, f"{value:.1f}", "soft end", 13.5)
    places = (80, 167, 254)
    points = [[run[name][0] for name, _ in _MOMENTS] for run in runs]
    for values in points:
        draw.line(list(zip(places, map(_height, values))), "s-blue thin")
    means = [sum(values) / len(values) for values in zip(*points)]
    draw.line(list(zip(places, map(_height, means))), "s-blue", 3.4, "blue")
    for x, value, (_, word) in zip(places, means, _MOMENTS):
        draw.words(x, _height(value) - 12, f".{1000 * value:03.0f}", "middle bold halo", 14)
        draw.words(x, _BOTTOM + 20, word, "soft middle", 13.5)
    curves = [run["right"] for run in runs]
    steps = len(curves[0])
    xs = [336 + 276 * (step + 0.5) / steps for step in range(steps)]
    for values in curves:
        draw.line(list(zip(xs, map(_height, values))), "s-orange thin")
    mean = [sum(values) / len(values) for values in zip(*curves)]
    draw.line(list(zip(xs, map(_height, mean))), "s-orange", 0, "orange")
    for step in (1, steps // 2, steps):
        draw.words(xs[step - 1], _BOTTOM + 20, str(step), "soft middle", 13.5)
    draw.words(24, 385, f"{len(runs)} seeds: thin; their mean: bold.", "soft", 14)
    return draw


def _height(value: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value / _HIGHEST
