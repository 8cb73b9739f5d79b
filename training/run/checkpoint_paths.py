"""The folders of a run's checkpoints: finding, ordering and naming them.

:mod:`coterie.training.run.checkpoint` reads and writes their content.
"""

import re
from pathlib import Path

_NAME = re.compile(r"(warmup|step)-(\d{6,})")


def name_of(step: int, *, warming: bool = False) -> str:
    """The name of the folder of the checkpoint after ``step`` steps, of the warm-up if
    ``warming``."""
    return f"{'warmup' if warming else 'step'}-{step:06d}"


def complete(root: Path) -> list[Path]:
    """All complete checkpoints under ``root``, the oldest first."""
    if not root.is_dir():
        return []
    found = (path for path in root.iterdir() if _NAME.fullmatch(path.name))
    return sorted(found, key=position_of)


def latest(root: Path) -> Path | None:
    """The newest checkpoint, if there is one."""
    return next(reversed(complete(root)), None)


def position_of(path: Path) -> tuple[bool, int]:
    """(whether it comes after the warm-up, step): checkpoints of a run sort by it."""
    stage, _, number = path.name.partition("-")
    return stage == "step" and int(number) > 0, int(number)


def step_in_words(path: Path) -> str:
    """``step 150``, ``warm-up step 20``."""
    stage, _, number = path.name.partition("-")
    return f"{'warm-up ' if stage == 'warmup' else ''}step {int(number)}"
