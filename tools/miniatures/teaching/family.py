"""What ``launch.tiny.build`` asks of a family of roles."""

from launch.tiny.teaching.curriculum import warm_start
from launch.tiny.teaching.gate import GATES, Gate, Measured, complaints
from launch.tiny.teaching.measuring import measure
from launch.tiny.teaching.recipes import TeachingRecipe

__all__ = ["Measured", "complaints", "gate_of", "measure", "warm_start"]


def gate_of(recipe: TeachingRecipe) -> Gate:
    """The bounds for one role."""
    return GATES.get(recipe.role, Gate())
