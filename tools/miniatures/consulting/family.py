"""What ``launch.tiny.build`` asks of a family of roles."""

from launch.tiny.consulting.curriculum import warm_start
from launch.tiny.consulting.gate import ExpertGate, Gate, Measured, PolicyGate, complaints
from launch.tiny.consulting.measuring import measure
from launch.tiny.consulting.recipes import ConsultingRecipe

__all__ = ["Measured", "complaints", "gate_of", "measure", "warm_start"]


def gate_of(recipe: ConsultingRecipe) -> Gate:
    """The bounds for one role."""
    return PolicyGate() if recipe.consults else ExpertGate()
