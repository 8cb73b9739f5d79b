"""The drawings of the documentation are what their script makes, and stand where people look."""

from xml.etree import ElementTree

import pytest

from pictures.draw import FOLDER, drawn
from pictures.svg import Picture

ROOT = FOLDER.parents[1]


def test_the_drawings_are_what_the_script_makes() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.svg")}
    assert files == drawn(), "python tools/pictures/draw.py draws them again"
    for text in files.values():
        ElementTree.fromstring(text)


def test_every_picture_is_shown_and_they_are_small() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    pictures = [path for path in FOLDER.iterdir() if path.is_file()]
    assert [path.name for path in pictures if f"pictures/{path.name})" not in text] == []
    assert sum(path.stat().st_size for path in pictures) < 2**20


def test_words_have_room() -> None:
    draw = Picture("a", 200, 100)
    with pytest.raises(ValueError, match="'wide wide wide' is too wide for its card"):
        draw.card(10, 40, 80, ["wide wide wide"])
    with pytest.raises(ValueError, match="too wide for the picture"):
        draw.words(150, 60, "wide wide wide")
    draw.words(10, 60, "<&>")
    assert "&lt;&amp;&gt;" in draw.svg()
