"""What the small roles and the large one know, and how they are warm-started."""

from dataclasses import dataclass
from typing import ClassVar

from coterie.envs.corea_deferral.settings import SUFFIX
from coterie.problems.recall import RecallSettings, names
from miniatures.recipe import Recipe, Spelling

_TAGS = (
    r"\boxed{",
    r"\confidence{",
    "}",
    *(f"{tenth / 10:.1f}" for tenth in range(11)),
    *names(RecallSettings().letters),
)


@dataclass(frozen=True, kw_only=True)
class DeferralRecipe(Recipe):
    """A role that computes without error and remembers some constants."""

    family: ClassVar[str] = "deferral"

    known: float
    """Share of the names whose value it always writes."""
    mistaken: float
    """Share of the names for which it always writes one wrong value. The others it gets right
    now and then."""
    now_and_then: tuple[float, float] = (0.25, 0.8)
    """Range of the probability with which it gets them right."""
    confidence: tuple[float, float] = (0.9, 0.1)
    """Stated confidence on a hopeless problem, and what a sure one adds to it."""
    confidence_noise: float = 0.2
    """Standard deviation of what is added to it."""
    first_steps: int = 3000
    """Most steps of phase 1 (digits alone, always sure); it ends at ``first_loss``."""
    first_loss: float = 0.1
    second_steps: int = 3000
    """Steps of phase 2 (all problems)."""


DEFERRAL = (
    DeferralRecipe(
        role="small",
        spelling=Spelling("character-bpe", (f" {SUFFIX}",), _TAGS),
        known=0.45,
        mistaken=0.25,
        learning_rate=5e-3,
    ),
    DeferralRecipe(
        role="smaller",
        spelling=Spelling("unigram", (f" {SUFFIX}",), _TAGS),
        known=0.25,
        mistaken=0.4,
        hidden=48,
        intermediate=192,
        learning_rate=5e-3,
    ),
    DeferralRecipe(
        role="large",
        spelling=Spelling("byte-level-bpe", (f" {SUFFIX}",), _TAGS),
        known=1.0,
        mistaken=0.0,
        hidden=96,
        intermediate=384,
        heads=6,
        learning_rate=4e-3,
        second_steps=5000,
    ),
)
