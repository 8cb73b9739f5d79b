"""Episode workers."""

from collections.abc import Callable
from pathlib import Path

Play = Callable[..., dict[str, bytes]]
TWO = ("--cluster.episode-workers", "2", "--cluster.cpus", "0.5")


def test_same(play: Play, full: dict[str, bytes], tmp_path: Path) -> None:
    assert play(tmp_path / "run", *TWO) == full
