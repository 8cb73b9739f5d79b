"""Messages that the page of questions and answers explains are those of the program."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "questions.md").read_text("utf-8")
_CODE = re.compile(r"`([^`]+)`")


def quoted() -> list[str]:
    """The first cell of each row of a table of messages, a piece of code each."""
    tables = re.findall(r"^\| message \|.*\n\|---.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    cells = [line.split(" | ")[0] for table in tables for line in table.splitlines()]
    return [piece for cell in cells for piece in _CODE.findall(cell)]


def _text(node: ast.expr) -> str:
    """A string literal; what is filled in is a gap."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "\0"


@pytest.fixture(scope="module")
def literals() -> list[str]:
    """Every text of the program."""
    rooms = [room.resolve() for room in (ROOT / "coterie").iterdir() if room.is_dir()]
    files = [*ROOT.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))]
    trees = [ast.parse(file.read_text("utf-8")) for file in files]
    nodes = (node for tree in trees for node in ast.walk(tree))
    return [_text(n) for n in nodes if isinstance(n, ast.JoinedStr | ast.Constant)]


def test_the_page_has_messages() -> None:
    assert len(quoted()) > 20


@pytest.mark.parametrize("message", quoted())
def test_the_program_says_it(message: str, literals: list[str]) -> None:
    pattern = re.compile(".*".join(map(re.escape, re.split(r" ?\.\.\. ?", message))))
    assert any(pattern.search(text) for text in literals), message
