"""What each role is good and bad at, and how it is warm-started."""

from dataclasses import dataclass
from typing import ClassVar

from miniatures.recipe import Recipe, Spelling
from miniatures.teaching.corpus import HINT, QUESTION, SOLVE, TAGS


@dataclass(frozen=True, kw_only=True)
class TeachingRecipe(Recipe):
    """A role with strong and weak operations. The learning rate is constant in phase 1 and falls
    linearly to a twentieth in phase 2; ``warmup`` belongs to phase 1."""

    family: ClassVar[str] = "teaching"

    strong: str
    """Operations that the role computes without error."""
    weak: str
    """Operations with a wrong habit at each table entry."""
    wrong: tuple[float, float] = (0.1, 0.85)
    """Range of the probability with which an entry's wrong value is written. The right value keeps
    the rest, so that reinforcement learning can find it."""
    gradual: bool = False
    """Whether phase 1 begins with one operation and adds the next when ``first_loss`` is met."""
    first_steps: int = 3000
    """Most steps of phase 1 (strong operations alone, no hints); it ends at ``first_loss``."""
    first_loss: float = 0.1
    second_steps: int = 2500
    """Steps of phase 2 (all operations)."""
    hinted: float = 0.4
    """Share of phase 2's batches that show a hint."""
    scrambled: float = 0.6
    """Share of a hint's values that are random, so that reading pays and computing does not."""


TEACHING = (
    TeachingRecipe(
        role="alice",
        spelling=Spelling("byte-level-bpe", (QUESTION, SOLVE, HINT), TAGS),
        strong="+-",
        weak="@#",
        learning_rate=5e-3,
    ),
    TeachingRecipe(
        role="bob",
        spelling=Spelling(
            "character-bpe", (QUESTION, "\nLet's", " solve this", " step by step:", HINT), TAGS
        ),
        strong="@#",
        weak="+-",
        learning_rate=5e-3,
    ),
    TeachingRecipe(
        role="carol",
        spelling=Spelling(
            "unigram",
            (f"{QUESTION} ", "\nLet's solve this", " step by step:", "\nHint:", "\n"),
            TAGS,
        ),
        strong="+#",
        weak="-@",
        wrong=(0.05, 0.65),
        gradual=True,
        warmup=150,
    ),
    # No peer of the three: a larger model that knows more, to compare a team with.
    TeachingRecipe(
        role="dora",
        spelling=Spelling("byte-level-bpe", (QUESTION, SOLVE, HINT), TAGS),
        strong="+-@",
        weak="#",
        hidden=96,
        intermediate=384,
        heads=6,
        learning_rate=4e-3,
        gradual=True,
        warmup=150,
    ),
)
