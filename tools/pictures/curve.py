"""What training together brings beside training alone, from runs that are stored here."""

import json
from pathlib import Path
from typing import Any

from pictures.svg import Picture

DATA = Path(__file__).with_name("learning_curve.json")
_TOP, _BOTTOM, _WIDE = 112, 330, 250
_ARMS = (("together", "", 3.4), ("alone", " dash", 0.0))


def learning_curve() -> Picture:
    """Held-out Pass@1 of alice and bob: a thin line a seed, a bold one for their mean."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    draw = Picture("Each knows half: together, and alone", 640, 402)
    draw.words(24, 62, "Pass@1 on held-out problems without hints, over training steps", "soft", 14)
    for left, role, tone in ((62, "alice", "blue"), (366, "bob", "orange")):
        _panel(draw, data, left, role, tone)
    tokens = sum(map(sum, data["sampled_tokens"].values())) / 6e6
    draw.words(24, 385, f"Three seeds, {tokens:.2f} million sampled tokens each.", "soft", 14)
    return draw


def _panel(draw: Picture, data: Any, left: int, role: str, tone: str) -> None:
    def place(step: int, value: float) -> tuple[float, float]:
        x = left + _WIDE * step / data["steps"][-1]
        return x, _BOTTOM - (_BOTTOM - _TOP) * (value - 0.5) / 0.5

    draw.words(left, _TOP - 18, role, f"bold f-{tone}", 16)
    for value in (0.5, 0.75, 1.0):
        draw.line([place(0, value), place(data["steps"][-1], value)], "grid thin")
        if left < 100:
            draw.words(left - 8, place(0, value)[1] + 5, f"{value:.2f}", "soft end", 13.5)
    for step in (0, 100, 200):
        draw.words(place(step, 0)[0], _BOTTOM + 20, str(step), "soft middle", 13.5)
    for arm, dash, dots in _ARMS:
        seeds = data["pass@1"][role][arm]
        for values in seeds:
            draw.line([*map(place, data["steps"], values)], f"s-{tone} thin{dash}")
        mean = [sum(values) / len(values) for values in zip(*seeds)]
        draw.line([*map(place, data["steps"], mean)], f"s-{tone}{dash}", dots, tone)
        x, y = place(data["steps"][-1], mean[-1] if arm == "together" else 0.5)
        draw.words(x, y - 12, f"{arm} .{1000 * mean[-1]:.0f}", "end bold halo", 14)
