"""A differentiable forward pass of the Llama family for training on short rows."""

from coterie.agents.models.forward.llama import TreeForward

__all__ = ["TreeForward"]
