"""What a paper's preset and table are, as data: each setting with where it stands, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal


@dataclass(frozen=True)
class Setting:
    """One setting of a preset."""

    value: Any
    source: str
    """Where it stands: in the paper (``section 5, table 3``), or in what that builds on."""
    why: str = ""
    """Why our default is another one."""
    paper: str = ""
    """What the paper says where the preset departs from it, or where it says two things."""
    departs: str = ""
    """Why it departs."""


@dataclass(frozen=True)
class Departure:
    """A difference between presets and paper that no setting expresses."""

    what: str
    paper: str
    here: str
    why: str


@dataclass(frozen=True)
class Preset:
    """A paper's setting."""

    paper: str
    env: str
    algo: str
    models: Mapping[str, str]
    """Role -> hub id; a team of other roles takes the rest and names its own models."""
    settings: Mapping[str, Setting]
    """By dotted name (``env.k_cold``); ``agents.tuning`` is every role's."""
    algos: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    """Algorithm -> what the paper sets of it."""
    train_role: tuple[str, ...] = ()
    """Who learns; empty: whoever learns in this environment by default."""
    anywhere: bool = False
    """Whether it holds in every environment; ``env`` is then what it takes by itself."""


# The papers name AdamW and no decay rates.
ADAMW = {
    "learner.betas": Setting(
        (0.9, 0.999), "PyTorch, which the frameworks leave alone", "the tiny team's"
    )
}
TINY = "the size of the tiny team's models"


Columns = Mapping[str, tuple[str, ...]]
"""Heading -> metric of the runs' final evaluation; with a comparison, the keys under which its
results.json holds the figure, ``{row}`` in place of the row."""


@dataclass(frozen=True)
class Variant:
    """One thing that is trained, once a seed."""

    name: str
    """Names its runs; tables that share a variant share them."""
    label: str
    flags: tuple[str, ...]
    program: Literal["train", "distill"] = "train"
    """``train.py``, or ``benchmark.py distill``."""


@dataclass(frozen=True)
class Table:
    """Variants, and how they are put together; or why that cannot be."""

    title: str
    """What the paper's table shows."""
    variants: tuple[Variant, ...] = ()
    columns: Columns = field(default_factory=dict)
    base: str = ""
    """Label of a row for the models before training; empty: none."""
    each: int = 0
    """Variants of one data set, where there are several; 0: one data set for all."""
    comparison: tuple[str, ...] = ()
    """Arguments of ``benchmark.py``, run once a seed; ``{NAME}`` is a variant's run."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """Row in the comparison's results -> label."""
    instead: str = ""
    """What stands for what the paper took."""
    why_not: str = ""
    """Why there is no miniature of it; empty: there is."""


@dataclass(frozen=True)
class Scale:
    """What stands in place of a miniature's own words, so that it runs as the paper did."""

    preset: str
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Word -> words; none: left out."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Part of a word -> what stands there."""
    distill: tuple[str, ...] = ()
    """Flags of ``benchmark.py distill``."""

    def said(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The words of a command."""
        return tuple(self.named(one) for word in words for one in self.words.get(word, (word,)))

    def named(self, word: str) -> str:
        """One word with its models and data sets."""
        for old, new in self.names.items():
            word = word.replace(old, new)
        return word

    def variant(self, one: Variant, name: str, label: str = "") -> Variant:
        """The variant under another name, and label where one is given."""
        head = self.distill if one.program == "distill" else ("--preset", self.preset)
        flags = (*head, *self.said(one.flags))
        return replace(one, name=name, label=label or one.label, flags=flags)

    def table(self, small: Table, paper: str, first: tuple[Variant, ...] = ()) -> Table:
        """The table whose variants are called after their paper, at the size of the preset.

        Args:
            small: the miniature.
            paper: what its variants' names begin with.
            first: trained before them, for the comparison.
        """
        if small.why_not:
            return small
        names = {v.name: v.name.replace(paper, self.preset, 1) for v in small.variants}
        head, *rest = small.comparison or ("",)
        words = self.said(tuple(rest))
        for old, new in names.items():
            words = tuple(word.replace(f"{{{old}}}", f"{{{new}}}") for word in words)
        return replace(
            small,
            variants=(*first, *(self.variant(v, names[v.name]) for v in small.variants)),
            columns={
                self.named(heading): tuple(map(self.named, keys))
                for heading, keys in small.columns.items()
            },
            comparison=(head, "--preset", self.preset, *words) if head else (),
            instead="",
        )
