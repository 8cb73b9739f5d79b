"""The folder for files that every later run uses again."""

import os
from pathlib import Path

from coterie.datatypes import user_path


def cache_folder() -> Path:
    """``coterie`` in the user's cache: under ``XDG_CACHE_HOME``, else ``~/.cache``. Not created.

    Raises:
        UserError: no folder can have that name.
    """
    return user_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "coterie"
