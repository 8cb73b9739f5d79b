"""What a paper's table is, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    comparison: tuple[str, ...] = ()
    """Arguments of ``benchmark.py``, run once a seed; ``{NAME}`` is a variant's run."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """Row in the comparison's results -> label."""
    instead: str = ""
    """What stands for what the paper took."""
    why_not: str = ""
    """Why there is no miniature of it; empty: there is."""
