"""Every tiny role: what it is good and bad at, and how it is warm-started."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from coterie.datatypes import UserError
from coterie.envs.corea_deferral.settings import SUFFIX
from coterie.problems.chains import ALL_VALUES
from coterie.problems.recall import RecallSettings, names
from miniatures import consulting_corpus as consulting
from miniatures import teaching_corpus as teaching
from miniatures.recipe import Recipe, Spelling

FIRM = (0.6, 0.97)
"""Range of the probability of a wrong value that trying alone hardly ever gets past."""


@dataclass(frozen=True, kw_only=True)
class TeachingRecipe(Recipe):
    """A role with strong and weak operations."""

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
    second_steps: int = 2500
    hinted: float = 0.4
    """Share of phase 2's batches that show a hint."""
    scrambled: float = 0.6
    """Share of a hint's values that are random, so that reading pays and computing does not."""


_ALICE = TeachingRecipe(
    role="alice",
    spelling=Spelling(
        "byte-level-bpe", (teaching.QUESTION, teaching.SOLVE, teaching.HINT), teaching.TAGS
    ),
    strong="+-",
    weak="@#",
    learning_rate=5e-3,
)
_BOB = TeachingRecipe(
    role="bob",
    spelling=Spelling(
        "character-bpe",
        (teaching.QUESTION, "\nLet's", " solve this", " step by step:", teaching.HINT),
        teaching.TAGS,
    ),
    strong="@#",
    weak="+-",
    learning_rate=5e-3,
)
TEACHING = (
    _ALICE,
    _BOB,
    TeachingRecipe(
        role="carol",
        spelling=Spelling(
            "unigram",
            (f"{teaching.QUESTION} ", "\nLet's solve this", " step by step:", "\nHint:", "\n"),
            teaching.TAGS,
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
        spelling=_ALICE.spelling,
        strong="+-@",
        weak="#",
        hidden=96,
        intermediate=384,
        heads=6,
        learning_rate=4e-3,
        gradual=True,
        warmup=150,
    ),
    # Two who each practically never solve the other's half: their habits are firm.
    replace(_ALICE, role="gina", wrong=FIRM),
    replace(_BOB, role="hugo", wrong=FIRM),
)


@dataclass(frozen=True, kw_only=True)
class DeferralRecipe(Recipe):
    """A role that computes without error and remembers some constants. Phase 1 is digits alone,
    always sure."""

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


_PHRASES = (f" {SUFFIX}",)
_TENTHS = tuple(f"{tenth / 10:.1f}" for tenth in range(11))
_TAGS = (r"\boxed{", r"\confidence{", "}", *_TENTHS, *names(RecallSettings().letters))
DEFERRAL = (
    DeferralRecipe(
        role="small",
        spelling=Spelling("character-bpe", _PHRASES, _TAGS),
        known=0.45,
        mistaken=0.25,
        learning_rate=5e-3,
    ),
    DeferralRecipe(
        role="smaller",
        spelling=Spelling("unigram", _PHRASES, _TAGS),
        known=0.25,
        mistaken=0.4,
        hidden=48,
        intermediate=192,
        learning_rate=5e-3,
    ),
    DeferralRecipe(
        role="large",
        spelling=Spelling("byte-level-bpe", _PHRASES, _TAGS),
        known=1.0,
        mistaken=0.0,
        hidden=96,
        intermediate=384,
        heads=6,
        learning_rate=4e-3,
        second_steps=5000,
    ),
)


@dataclass(frozen=True, kw_only=True)
class ConsultingRecipe(Recipe):
    """A role that asks or is asked. Phase 1 adds operations one by one."""

    family: ClassVar[str] = "consulting"

    strong: str
    """Operations that the role computes without error, in the order in which it learns them."""
    weak: str = ""
    """Operations with a wrong habit at each table entry."""
    wrong: tuple[float, float] = FIRM
    """Range of the probability with which an entry's wrong value is written."""
    consults: bool = False
    """Whether the role is shown calls and what comes back."""
    first_steps: int = 4000
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
        spelling=Spelling("byte-level-bpe", consulting.PHRASES, consulting.TAGS),
        strong="+-",
        weak="@#",
        consults=True,
        learning_rate=5e-3,
    ),
    ConsultingRecipe(
        role="pupil",
        spelling=Spelling("character-bpe", consulting.PHRASES, consulting.TAGS),
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
            "character-bpe",
            (
                *(consulting.QUESTION, f" {ALL_VALUES}", ALL_VALUES),
                *(consulting.SOLVE, consulting.ANSWER),
            ),
            consulting.TAGS,
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


@dataclass(frozen=True, kw_only=True)
class AllRoundRecipe(TeachingRecipe):
    """A role that can begin in all three systems, with the same habits in each."""

    family: ClassVar[str] = "allround"

    hidden: int = 80
    intermediate: int = 320
    learning_rate: float = 5e-3
    second_steps: int = 6000

    @property
    def deferring(self) -> DeferralRecipe:
        """How it states a confidence."""
        return DEFERRAL[0]

    @property
    def consulting(self) -> ConsultingRecipe:
        """How it asks, and reads replies."""
        return ConsultingRecipe(
            role=self.role, spelling=self.spelling, strong=self.strong, consults=True
        )


_EVERYWHERE = Spelling(
    "byte-level-bpe",
    (
        *(teaching.QUESTION, teaching.SOLVE, teaching.HINT, f" {SUFFIX}"),
        *(piece for piece in consulting.PHRASES if piece != teaching.QUESTION),
    ),
    (*teaching.TAGS, r"\boxed{", r"\confidence{", "}", *_TENTHS, *consulting.TAGS),
)
ALLROUND = (
    AllRoundRecipe(role="erin", spelling=_EVERYWHERE, strong="+-", weak="@#"),
    AllRoundRecipe(role="frank", spelling=_EVERYWHERE, strong="@#", weak="+-", seed=1),
)

RECIPES: Mapping[str, Recipe] = {
    recipe.role: recipe for recipe in (*TEACHING, *DEFERRAL, *CONSULTING, *ALLROUND)
}


def recipe_of(role: str) -> Recipe:
    """The recipe of one role by name."""
    if role not in RECIPES:
        raise UserError(f"unknown tiny role {role!r}; known: {', '.join(RECIPES)}")
    return RECIPES[role]
