"""What the head of an environment's page says of importing and creating it works as it stands."""

import re
from pathlib import Path

import pytest

from coterie import datatypes, envs

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (Import|Creation) \| (.*) \|$", re.MULTILINE)
ROWS = {
    page.stem: rows
    for page in sorted((ROOT / "docs").glob("*.md"))
    if (rows := dict(ROW.findall(page.read_text("utf-8"))))
}


def test_every_page_of_an_environment_is_looked_at() -> None:
    assert len(ROWS) == 6
    assert {rows["Import"] for rows in ROWS.values()} == {"`import coterie`"}


@pytest.mark.parametrize("page", ["core-teaching", "new-environments"])
def test_the_environment_is_made(python, page: str) -> None:
    words = re.findall(r"`([^`]+)`", " ".join(ROWS[page].values()))
    imports = [word for word in words if word.startswith("import ")]
    made = [word.replace("NAME", "solo") for word in words if "make(" in word]
    assert made
    for line in made:  # each by itself: the first one would import for those after it
        # The page on all of them writes NAME without quotes.
        line = line.replace("make(solo)", 'make("solo")')
        python("-c", "\n".join([*imports, "import pettingzoo", line]))


def test_the_names_of_a_conversation_are_imported_from_where_the_page_says() -> None:
    page = (ROOT / "docs" / "new-environments.md").read_text("utf-8")
    section = page.partition("## All that a conversation may say\n")[2].partition("\n## ")[0]
    origin, table = section.split("\n\n")[:2]
    in_datatypes = re.findall(r"`(\w+)`", origin.partition(" are in ")[0])
    assert "derive_seed" in in_datatypes
    used = {*re.findall(r"\b([A-Z]\w+)\(", table.replace("random.Random(", "")), *in_datatypes}
    assert {"Ask", "Fresh", "Outcome", "Tools", "Turn"} < used
    for name in used:
        module = datatypes if name in in_datatypes else envs
        assert hasattr(module, name), f"coterie.{module.__name__} has no {name}"
        assert name in table
