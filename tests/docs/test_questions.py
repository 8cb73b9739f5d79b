"""The messages that docs/questions.md explains are messages of the program."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "questions.md").read_text("utf-8")
GAP = " ... "


def messages(page: str) -> list[str]:
    """Spans of code in the first column of the tables of messages."""
    cells = [row.split(" | ")[0] for row in page.split("\n") if row.startswith("| `")]
    return [span for cell in cells for span in re.findall(r"`([^`]+)`", cell)]


def texts(source: str) -> list[str]:
    """All strings of a module but docstrings, with a gap where an f-string has a value."""
    parts_of_text, tree = [], ast.parse(source)
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if node in docstrings:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else GAP for p in node.values]
            parts_of_text.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts_of_text.append(node.value)
    return parts_of_text


def says(message: str, text: str) -> bool:
    """Whether a string has all pieces of a message, in their order."""
    pieces = [re.escape(piece.strip()) for piece in message.split("...")]
    return re.search(".*".join(pieces), " ".join(text.split())) is not None


@pytest.fixture(scope="module")
def product() -> list[str]:
    rooms = [path.resolve() for path in (ROOT / "coterie").iterdir() if path.is_dir()]
    files = sorted({file for room in rooms for file in room.rglob("*.py")})
    assert len(files) > 200
    assert len(messages(PAGE)) > 20
    return [text for file in files for text in texts(file.read_text("utf-8")) if " " in text]


@pytest.mark.parametrize("message", messages(PAGE))
def test_every_explained_message_is_a_message_of_the_program(
    message: str, product: list[str]
) -> None:
    assert any(says(message, text) for text in product)
