"""Settings to JSON and back."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from coterie.training.config.serialize import override, to_plain


@dataclass(frozen=True)
class Inner:
    weights: tuple[float, ...] = (0.2, 0.05)
    name: str | None = None


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    place: Path = Path("a/b")
    steps: int = 3
    more: tuple[Inner, ...] = ()
    best: Inner | None = None


def test_plain_data_comes_back_as_it_was() -> None:
    changed = Outer(
        Inner((1.0, 2.0, 3.0), "x"), Path("c"), 7, (Inner(), Inner((0.5,))), Inner(name="z")
    )
    assert override(Outer(), json.loads(json.dumps(to_plain(changed)))) == changed
    assert override(Outer(), {"inner": {"name": "y"}}) == Outer(Inner(name="y"))
