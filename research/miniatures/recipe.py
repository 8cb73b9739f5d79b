"""What every tiny role has: a name, an architecture, a spelling, and a warm start's settings."""

from dataclasses import dataclass
from typing import ClassVar, Literal

Architecture = Literal["qwen3", "llama", "qwen2"]


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

    family: ClassVar[str]
    """The module of ``miniatures`` that warm-starts and gates the role."""

    role: str
    spelling: Spelling
    architecture: Architecture = "qwen3"
    hidden: int = 64
    layers: int = 2
    intermediate: int = 256
    heads: int = 4
    kv_heads: int = 2
    rope_theta: float = 100.0
    initial_std: float = 0.13
    learning_rate: float = 4e-3
    """At 1e-2 batches this small stay on the plateau."""
    warmup: int = 0
    """Steps of phase 1 in which the rate rises linearly."""
    batch: int = 16
    """Examples a step; small batches leave the plateau sooner."""
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
