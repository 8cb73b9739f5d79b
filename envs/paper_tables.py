"""What a paper's table is, as data: what is trained, how it is put together, and at which size.

``EnvSpec.tables`` names a protocol's; ``benchmark.py sweep`` runs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

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
    bars: tuple[str, ...] = ()
    """Columns that are also drawn as bars, a bar for each row; the paper has such a figure."""
    note: str = ""
    """What a reader must know of its rows, printed below it."""


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
        return tuple(
            self.named(replacement)
            for word in words
            for replacement in self.words.get(word, (word,))
        )

    def named(self, word: str) -> str:
        """One word with its models and data sets."""
        for old, new in self.names.items():
            word = word.replace(old, new)
        return word

    def variant(self, variant: Variant, name: str, label: str = "") -> Variant:
        """The variant under another name, and label where one is given."""
        head = self.distill if variant.program == "distill" else ("--preset", self.preset)
        flags = (*head, *self.said(variant.flags))
        return replace(variant, name=name, label=label or variant.label, flags=flags)

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
