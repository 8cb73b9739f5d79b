"""What ``launch.tiny.build`` asks of a family of roles."""

from launch.tiny.deferral.curriculum import warm_start
from launch.tiny.deferral.gate import GATES, Gate, Measured, complaints
from launch.tiny.deferral.measuring import measure
from launch.tiny.deferral.recipes import DeferralRecipe

__all__ = ["Measured", "complaints", "gate_of", "measure", "warm_start"]


def gate_of(recipe: DeferralRecipe) -> Gate:
    """The bounds for one role."""
    return GATES[recipe.role]
