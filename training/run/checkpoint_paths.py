"""The checkpoints of a run by name; :mod:`coterie.training.run.checkpoint` reads their content."""

import re
from pathlib import Path

_NAME = re.compile(r"(warmup|step)-(\d{6,})")


def complete(root: Path) -> list[Path]:
    """All complete checkpoints under ``root``, the oldest first."""
    if not root.is_dir():
        return []
    return sorted((path for path in root.iterdir() if _NAME.fullmatch(path.name)), key=place_of)


def latest(root: Path) -> Path | None:
    """The newest checkpoint, if there is one."""
    return next(reversed(complete(root)), None)


def place_of(path: Path) -> tuple[bool, int]:
    """A key that sorts checkpoints of a run: (whether after the warm-up, step)."""
    stage, _, number = path.name.partition("-")
    return stage == "step" and int(number) > 0, int(number)


def words_of(path: Path) -> str:
    """``step 150``, ``warm-up step 20``."""
    stage, _, number = path.name.partition("-")
    return f"{'warm-up ' if stage == 'warmup' else ''}step {int(number)}"
