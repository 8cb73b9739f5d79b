"""Which checkpoints a run has; what is in them is read by :mod:`coterie.training.checkpoint`."""

import re
from pathlib import Path

_NAME = re.compile(r"(warmup|step)-(\d{6,})")


def complete(root: Path) -> list[Path]:
    """All that are whole, the oldest first."""
    if not root.is_dir():
        return []
    return sorted((path for path in root.iterdir() if _NAME.fullmatch(path.name)), key=place_of)


def latest(root: Path) -> Path | None:
    """The newest checkpoint, if there is one."""
    return next(reversed(complete(root)), None)


def place_of(path: Path) -> tuple[bool, int]:
    """Where it stands in its run: the warm-up comes before step 1."""
    stage, _, number = path.name.partition("-")
    return stage == "step" and int(number) > 0, int(number)


def words_of(path: Path) -> str:
    """``step 150``, ``warm-up step 20``."""
    stage, _, number = path.name.partition("-")
    return f"{'warm-up ' if stage == 'warmup' else ''}step {int(number)}"
