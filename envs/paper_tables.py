"""Types for a paper's tables as data: the runs, their assembly, and their size.

``EnvSpec.tables`` names the tables of an environment; ``benchmark.py sweep`` runs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Columns = Mapping[str, tuple[str, ...]]
"""Heading -> metric of the runs' final evaluation; with a comparison, the path of keys in its
results.json, where ``{row}`` stands for the row."""


@dataclass(frozen=True)
class Variant:
    """A configuration that is trained once for each seed."""

    name: str
    """Names the runs; tables with the same variant share them."""
    label: str
    flags: tuple[str, ...]
    program: Literal["train", "distill"] = "train"
    """``train.py``, or ``benchmark.py distill``."""


@dataclass(frozen=True)
class Table:
    """The variants of a table and their assembly, or the reason why there is no miniature."""

    title: str
    """The subject of the paper's table."""
    variants: tuple[Variant, ...] = ()
    columns: Columns = field(default_factory=dict)
    base: str = ""
    """Label of a row for the models before training; empty: no such row."""
    each: int = 0
    """Variants for each data set, if there are several data sets; 0: there is one."""
    comparison: tuple[str, ...] = ()
    """Arguments of ``benchmark.py``, run once for each seed; ``{NAME}`` is a variant's run."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """Row in the comparison's results -> label."""
    instead: str = ""
    """The substitutes for the paper's models and data."""
    why_not: str = ""
    """Why there is no miniature; empty: there is one."""
    bars: tuple[str, ...] = ()
    """Columns that are also drawn as bar charts, as in a figure of the paper."""
    note: str = ""
    """A note that is printed below the table."""


@dataclass(frozen=True)
class Scale:
    """Replacements in a miniature's commands that give the paper's models and sizes."""

    preset: str
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Word -> its replacements; empty: the word is dropped."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Part of a word -> its replacement."""
    distill: tuple[str, ...] = ()
    """Flags of ``benchmark.py distill``."""

    def said(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Replace the words of a command."""
        return tuple(
            self.named(replacement)
            for word in words
            for replacement in self.words.get(word, (word,))
        )

    def named(self, word: str) -> str:
        """Replace the names of models and data sets in a word."""
        for old, new in self.names.items():
            word = word.replace(old, new)
        return word

    def variant(self, variant: Variant, name: str, label: str = "") -> Variant:
        """Return the variant at this scale, with another name and, if given, another label."""
        head = self.distill if variant.program == "distill" else ("--preset", self.preset)
        flags = (*head, *self.said(variant.flags))
        return replace(variant, name=name, label=label or variant.label, flags=flags)

    def table(self, small: Table, paper: str, first: tuple[Variant, ...] = ()) -> Table:
        """Return the table at this scale.

        Args:
            small: the miniature.
            paper: prefix of its variants' names, which the preset's name replaces.
            first: further variants that are trained before, for the comparison.
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
