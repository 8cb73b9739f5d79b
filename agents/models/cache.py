"""The folders for files that every later run uses again."""

import os
from pathlib import Path

from coterie.datatypes import user_path

SOURCE = "converted-from.txt"
"""In a converted checkpoint: the path of the GGUF file."""


def cache_folder() -> Path:
    """``coterie`` in the user's cache: under ``XDG_CACHE_HOME``, else ``~/.cache``. Not created.

    Raises:
        UserError: no folder can have that name.
    """
    return user_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "coterie"


def converted_folder() -> Path:
    """The folder of the checkpoints that were converted from GGUF files."""
    return cache_folder() / "gguf"


def fetched_folder() -> Path:
    """The folder of the files that ``tools/fetch_weights.py`` has fetched."""
    return cache_folder() / "weights"
