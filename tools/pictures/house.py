"""The folders of the repository: layers from pyproject.toml, sentences from docstrings."""

import ast
import re
import textwrap
import tomllib
from pathlib import Path

from pictures.svg import Picture

ROOT = Path(__file__).resolve().parents[2]
_TONES = {
    "agents": "mono f-orange",
    "algorithms": "mono f-green",
    "envs": "mono f-violet",
    "rollouts": "mono f-blue",
}
"""Folder at the top -> the style of its name, as in the picture of the data's way."""
_LINE, _GAP = 23, 12


def house() -> Picture:
    """Draw a card for each layer, and in it a line for each folder."""
    layers = [[(place, _sentence(place)) for place in layer] for layer in _layers()]
    heights = [14 + _LINE * sum(len(lines) for _, lines in layer) for layer in layers]
    draw = Picture("The folders", 640, 100 + sum(heights) + _GAP * len(heights))
    draw.words(24, 62, "A folder imports from its own layer and from those below.", "soft", 14)
    draw.words(24, 83, "Where one stands twice, each layer has some of its files.", "soft", 14)
    top = 100
    for layer, height in zip(layers, heights, strict=True):
        draw.card(24, top, 592, [], height=height)
        y = top + _LINE
        for place, lines in layer:
            name = place.relative_to(ROOT)
            style = _TONES.get(name.parts[0], "mono")
            draw.words(39, y, f"{name}/" if place.is_dir() else f"{name}", style, 13.5)
            for line in lines:
                draw.words(206, y, line, "soft", 14)
                y += _LINE
        top += height + _GAP
    return draw


def _layers() -> list[list[Path]]:
    """Return the folders and scripts of each layer, the top one first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    contract = next(contract for contract in contracts if contract["type"] == "layers")
    # A layer names modules where the files of their folder lie in several layers.
    layers = [dict.fromkeys(map(_place, re.split("[:|]", text))) for text in contract["layers"]]
    extras = sorted(path.parent for path in ROOT.glob("extras/*/__init__.py"))
    return [[*layer, *(extras if ROOT / "extras" in layer else ())] for layer in layers]


def _place(module: str) -> Path:
    """Return the folder of a package or of a module; a script of the top has none."""
    path = ROOT / module.strip().replace(".", "/")
    if not path.is_dir():
        script = path.with_suffix(".py")
        path = script if path.parent.name == "coterie" else path.parent
    return path.resolve()  # the packages of coterie are links


def _sentence(place: Path) -> list[str]:
    """Return the first sentence of a docstring in lines, without an example behind a colon."""
    file = place / "__init__.py" if place.is_dir() else place
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = re.split(r"\.(?:\s|$)|: ``", docstring)[0]
    return textwrap.wrap(first, 50)
