"""Pictures of an evaluation as data; whoever shows them draws them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bars:
    """Bars of parts that sum to one, under each other."""

    title: str
    note: str
    """A sentence that says how to read it."""
    bars: list[tuple[str, list[tuple[str, float]]]]
    """(label, [(part, its share)])."""


@dataclass(frozen=True)
class Dots:
    """Dots over the unit square, where the diagonal is what should be."""

    title: str
    note: str
    x_label: str
    y_label: str
    sets: list[tuple[str, list[tuple[float, float, float]]]]
    """(label, [(x, y, share of the whole)]): the share is a dot's area."""


Picture = Bars | Dots
