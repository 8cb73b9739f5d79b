"""Runs as they stood before they ended."""

import shutil
from pathlib import Path


def cut_run(whole: Path, cut: Path, *, after: int) -> Path:
    """Copy a run as a kill leaves it whose last checkpoint is that of step ``after``."""
    shutil.copytree(whole, cut)
    for checkpoint in (cut / "checkpoints").glob("step-*"):
        if int(checkpoint.name.removeprefix("step-")) > after:
            shutil.rmtree(checkpoint)
    shutil.rmtree(cut / "final")
    (cut / "summary.json").unlink()
    return cut
