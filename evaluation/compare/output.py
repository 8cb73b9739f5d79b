"""What every comparison writes: JSON for scripts, and sentences on the console."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from coterie.evaluation.json_values import as_json
from coterie.training.run.durable_files import write_or_keep


def write_json(path: Path, content: Mapping[str, Any]) -> Path:
    """Write ``content`` (figures, arrays, dataclasses of numbers) atomically; return ``path``.

    Raises:
        UserError: the file cannot be written; the message says where the content is kept.
    """
    write_or_keep(path, json.dumps(as_json(content), indent=1))
    return path


def show_written(console: Console, *files: Path) -> None:
    """Name the files that a comparison has written."""
    console.print(f"written: {', '.join(map(str, files))}", soft_wrap=True, markup=False)


def show_plain(console: Console, sentence: str) -> None:
    """Show a sentence in one colour, without markup."""
    console.print(sentence, soft_wrap=True, markup=False, highlight=False)
