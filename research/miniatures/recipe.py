"""What every tiny role has: a spelling, what it is good and bad at, a warm start and a gate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple


@dataclass(frozen=True)
class Spelling:
    """A tokenizer: how it is learned, and what it never cuts."""

    kind: Literal["byte-level-bpe", "character-bpe", "unigram"]
    phrases: tuple[str, ...] = ()
    """Longer pieces of text that are one token each, as they stand."""
    tags: tuple[str, ...] = ()
    """Marks that are one token each, with and without a space before them."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One role. The optimisation settings are far from usual ones on purpose: with rope_theta 1e4
    and initial weights of 0.02 a model of this size stays at chance. The learning rate is constant
    in phase 1 and falls linearly to a twentieth in phase 2."""

    role: str
    family: Literal["teaching", "deferral", "consulting", "allround"]
    """The module of ``miniatures`` with the role's texts and measurements."""
    spelling: Spelling
    gate: Mapping[str, tuple[float, float]]
    """Measurement, or difference of two, -> its least and largest value."""

    strong: str = ""
    """Operations that the role computes without error, in the order in which it learns them."""
    weak: str = ""
    """Operations with a wrong habit at each table entry."""
    wrong: tuple[float, float] = (0.1, 0.85)
    """Range of the probability with which an entry's wrong value is written. The right value keeps
    the rest, so that reinforcement learning can find it."""
    known: float = 0.0
    """Share of the names whose value the role always writes."""
    mistaken: float = 0.0
    """Share of the names for which it always writes one wrong value. It gets the others right now
    and then."""

    hidden: int = 64
    heads: int = 4
    learning_rate: float = 4e-3
    """At 1e-2 batches this small stay on the plateau."""
    warmup: int = 0
    """Steps of phase 1 in which the rate rises linearly."""
    batch: int = 16
    """Examples a step; small batches leave the plateau sooner."""
    gradual: bool = False
    """Whether phase 1 begins with one operation and adds the next when ``first_loss`` is met."""
    first_steps: int = 3000
    """Most steps of phase 1 (strong operations alone); it ends at ``first_loss``."""
    first_loss: float = 0.1
    second_steps: int = 3000
    """Steps of phase 2 (everything)."""
    seed: int = 0


@dataclass(frozen=True)
class Example:
    """One supervised pair of texts; the answer is followed by an end-of-sequence token."""

    prompt: str
    answer: str


Draw = Callable[[], list[Example]]
"""Draws the examples of one step."""


class Phases(NamedTuple):
    """The two phases of a warm start."""

    first: str
    """Name of phase 1."""
    stages: Sequence[Draw]
    """Of phase 1, each learned until the smoothed loss is low."""
    second: str
    """Name of phase 2."""
    draw: Draw
    """Draws the examples of phase 2."""


Ask = Callable[[Sequence[str], int, int], list[str]]
"""Called with prompts, a seed and the most new tokens; samples a text for each prompt."""
