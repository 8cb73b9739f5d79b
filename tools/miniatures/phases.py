"""The two phases of every warm start: until it can do some of it, then all of it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from launch.tiny.example import Example
from launch.tiny.fitting import Fit, NoConvergence, Report

Draw = Callable[[], list[Example]]
"""Draws the examples of one step."""


class Phases(Protocol):
    """What a recipe says of them."""

    @property
    def warmup(self) -> int: ...
    @property
    def first_steps(self) -> int: ...
    @property
    def first_loss(self) -> float: ...
    @property
    def second_steps(self) -> int: ...


def first_phase(
    fit: Fit, recipe: Phases, stages: Sequence[Draw], report: Report, name: str
) -> None:
    """Learn stage after stage at a constant rate, each until the smoothed loss is low.

    Raises:
        NoConvergence: the steps of all stages together ran out.
    """
    reached = 0
    for step in range(recipe.first_steps):
        fit.step(stages[reached](), min(1.0, (step + 1) / max(1, recipe.warmup)))
        report(name, step + 1, recipe.first_steps, fit.smoothed)
        if fit.smoothed < recipe.first_loss:
            reached += 1
            if reached == len(stages):
                return
            fit.new_phase()
    raise NoConvergence(f"loss {fit.smoothed:.3f} after {recipe.first_steps} steps of phase 1")


def second_phase(fit: Fit, recipe: Phases, draw: Draw, report: Report, name: str) -> None:
    """Learn for a number of steps at a rate that falls linearly to a twentieth."""
    for step in range(recipe.second_steps):
        fit.step(draw(), max(1 - step / recipe.second_steps, 0.05))
        report(name, step + 1, recipe.second_steps, fit.smoothed)
