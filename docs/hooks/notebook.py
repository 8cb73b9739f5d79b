"""The tutorial as a notebook: ``python docs/hooks/notebook.py`` writes it again.

Blocks of ``bash`` and ``python`` become cells that run; a block that begins with ``# NAME.py`` is
saved under that name; everything else, listings included, is text.
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE, NOTEBOOK = ROOT / "docs" / "tutorial.md", ROOT / "examples" / "tutorial.ipynb"
_BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"# (\w+\.py)\n")
_LINK = re.compile(r"(?<=\]\()(?!\.\./|https?:|#)(?=[^)\s]+\))")
_BEGIN = """\
# From the root of the clone, wherever this notebook was opened.
import os

if os.path.basename(os.getcwd()) == "examples":
    os.chdir("..")
# Jupyter asks programs for colours and moving lines; plain text reads better here.
for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
    os.environ.pop(name, None)"""


def notebook(page: str) -> str:
    """Return the notebook of a Markdown page as JSON."""
    cells = [("code", _BEGIN)]
    # (text, language, block, text, language, block, ..., text)
    parts = _BLOCK.split(page)
    for place in range(0, len(parts), 3):
        if text := parts[place].strip():
            cells.append(("markdown", _LINK.sub("../docs/", text)))
        if place + 2 < len(parts):
            cells.append(("code", _cell(parts[place + 1], parts[place + 2].rstrip("\n"))))
    # The page's title stands above the first cell that runs.
    cells[:2] = cells[1::-1]
    content = {
        "cells": [_as_json(place, *cell) for place, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _cell(language: str, block: str) -> str:
    if language == "bash":
        return f"%%bash\n{block}"
    if name := _SAVED.match(block):
        return f"%%writefile {name[1]}\n{block}"
    return block


def _as_json(place: int, kind: str, source: str) -> dict[str, Any]:
    ran = {"execution_count": None, "outputs": []} if kind == "code" else {}
    lines = source.splitlines(keepends=True)
    return {"cell_type": kind, "id": f"cell-{place}", "metadata": {}, "source": lines, **ran}


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
