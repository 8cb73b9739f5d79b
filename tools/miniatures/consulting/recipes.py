"""What the two policies and the expert are good and bad at, and how they are warm-started."""

from dataclasses import dataclass
from typing import ClassVar

from coterie.problems.chains import ALL_VALUES
from miniatures.consulting.corpus import ANSWER, PHRASES, QUESTION, SOLVE, TAGS
from miniatures.recipe import Recipe, Spelling


@dataclass(frozen=True, kw_only=True)
class ConsultingRecipe(Recipe):
    """A role that asks or is asked. The learning rate is constant while operations are added one
    by one, and falls linearly to a twentieth afterwards; ``warmup`` belongs to the first part."""

    family: ClassVar[str] = "consulting"

    strong: str
    """Operations that the role computes without error, in the order in which it learns them."""
    weak: str = ""
    """Operations with a wrong habit at each table entry."""
    wrong: tuple[float, float] = (0.6, 0.97)
    """Range of the probability with which an entry's wrong value is written."""
    consults: bool = False
    """Whether the role is shown calls and what comes back."""
    first_steps: int = 4000
    """Most steps of phase 1; it ends at ``first_loss`` with all strong operations."""
    first_loss: float = 0.1
    second_steps: int = 3000
    """Steps of phase 2."""
    asking: float = 0.6
    """How often the policy asks where it may."""
    decomposed: float = 0.25
    """Share of its calls that ask for what is left after its own first steps."""
    unavailable: float = 0.3
    """Share of calls that nobody answers."""
    cut: float = 0.4
    """Share of replies of which only the first steps came; the policy goes on from there."""
    scrambled: float = 0.5
    """Share of a reply's values that are random, so that reading pays and computing does not."""


CONSULTING = (
    ConsultingRecipe(
        role="policy",
        spelling=Spelling("byte-level-bpe", PHRASES, TAGS),
        strong="+-",
        weak="@#",
        consults=True,
        learning_rate=5e-3,
    ),
    ConsultingRecipe(
        role="pupil",
        spelling=Spelling("character-bpe", PHRASES, TAGS),
        strong="+-",
        weak="@#",
        consults=True,
        hidden=80,
        intermediate=320,
        learning_rate=5e-3,
    ),
    ConsultingRecipe(
        role="expert",
        spelling=Spelling(
            "character-bpe", (QUESTION, f" {ALL_VALUES}", ALL_VALUES, SOLVE, ANSWER), TAGS
        ),
        strong="+-@#",
        hidden=96,
        intermediate=384,
        learning_rate=4e-3,
        warmup=150,
        first_steps=8000,
        second_steps=2000,
    ),
)
