"""Cache folders, whose files later runs reuse."""

import os
from pathlib import Path

from coterie.datatypes import user_path

SOURCE = "converted-from.txt"
"""File in a converted checkpoint with the path of the GGUF file."""


def cache_folder() -> Path:
    """Return ``coterie`` under ``XDG_CACHE_HOME``, by default ``~/.cache``; nothing is created.

    Raises:
        UserError: no folder can have that name.
    """
    return user_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "coterie"


def converted_folder() -> Path:
    """Return the folder of checkpoints that were converted from GGUF files."""
    return cache_folder() / "gguf"


def fetched_folder() -> Path:
    """Return the folder of files from ``tools/fetch_weights.py``."""
    return cache_folder() / "weights"
