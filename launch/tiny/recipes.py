"""What each tiny role is, what it is good and bad at, and how it is warm-started."""

from dataclasses import dataclass
from typing import Literal

from vocabulary import UserError

Architecture = Literal["qwen3", "llama", "qwen2"]


@dataclass(frozen=True)
class Recipe:
    """One role. The optimisation settings are far from usual ones on purpose: with rope_theta 1e4
    and initial weights of 0.02 a model of this size stays at chance."""

    role: str
    architecture: Architecture
    strong: str
    """Operations that the role computes without error."""
    weak: str
    """Operations with a wrong habit at each table entry."""
    wrong: tuple[float, float] = (0.1, 0.85)
    """Range of the probability with which an entry's wrong value is written. The right value keeps
    the rest, so that reinforcement learning can find it."""
    hidden: int = 64
    layers: int = 2
    intermediate: int = 256
    heads: int = 4
    kv_heads: int = 2
    rope_theta: float = 100.0
    initial_std: float = 0.13
    learning_rate: float = 4e-3
    """Constant in phase 1; falls linearly to a twentieth in phase 2. At 1e-2 batches this small
    stay on the plateau."""
    gradual: bool = False
    """Whether phase 1 begins with one operation and adds the next when ``first_loss`` is met."""
    warmup: int = 0
    """Steps of phase 1 in which the rate rises linearly."""
    batch: int = 16
    """Examples a step; small batches leave the plateau sooner."""
    first_steps: int = 3000
    """Most steps of phase 1 (strong operations alone, no hints); it ends at ``first_loss``."""
    first_loss: float = 0.1
    second_steps: int = 2500
    """Steps of phase 2 (all operations)."""
    hinted: float = 0.4
    """Share of phase 2's batches that show a hint."""
    scrambled: float = 0.6
    """Share of a hint's values that are random, so that reading pays and computing does not."""
    seed: int = 0


RECIPES = {
    recipe.role: recipe
    for recipe in (
        Recipe(role="alice", architecture="qwen3", strong="+-", weak="@#", learning_rate=5e-3),
        Recipe(role="bob", architecture="qwen3", strong="@#", weak="+-", learning_rate=5e-3),
        Recipe(
            role="carol",
            architecture="qwen3",
            strong="+#",
            weak="-@",
            wrong=(0.05, 0.65),
            gradual=True,
            warmup=150,
        ),
    )
}


def recipe_of(role: str) -> Recipe:
    """The recipe of one role by name."""
    if role not in RECIPES:
        raise UserError(f"unknown tiny role {role!r}; known: {', '.join(RECIPES)}")
    return RECIPES[role]
