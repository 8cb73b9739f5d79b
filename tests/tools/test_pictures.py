"""The drawings of the documentation are what their script makes, and stand where people look."""

from xml.etree import ElementTree

from pictures.draw import FOLDER, drawn

ROOT = FOLDER.parents[1]


def test_the_drawings_are_what_the_script_makes() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.svg")}
    assert files == drawn(), "python tools/pictures/draw.py draws them again"
    for text in files.values():
        ElementTree.fromstring(text)


def test_every_picture_is_shown() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    pictures = [path for path in FOLDER.iterdir() if path.is_file()]
    assert [path.name for path in pictures if f"pictures/{path.name})" not in text] == []
