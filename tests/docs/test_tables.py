"""The settings that the pages show are those of the code, and nothing is left out."""

import re
from pathlib import Path

import pytest

from coterie import algorithms, envs
from coterie.cli.command_line import parse
from coterie.envs.registry import PLUGINS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ENVIRONMENTS = sorted({*envs.names()} - PLUGINS.names())
PAGES = sorted(page for page in DOCS.glob("**/*.md") if "<!-- table: " in page.read_text("utf-8"))


def _quick(page: Path) -> bool:
    """Plans put models together."""
    return "<!-- table: plan" not in page.read_text("utf-8")


@pytest.mark.parametrize(
    "page",
    [p if _quick(p) else pytest.param(p, marks=pytest.mark.slow) for p in PAGES],
    ids=lambda page: page.stem,
)
def test_tables_are_those_of_the_code(page: Path, hook) -> None:
    text = page.read_text("utf-8")
    assert hook("tables").filled(text) == text, "run python docs/hooks/tables.py"


@pytest.mark.parametrize("name", algorithms.names())
def test_every_algorithm_has_a_page_with_its_formula_and_its_settings(name: str) -> None:
    # A paper's own wording is a section of its algorithm's page.
    parent = name.removesuffix("-paper")
    file = f"algorithms/{parent.replace('+', '-plus')}.md"
    page = (DOCS / file).read_text("utf-8")
    assert page.startswith(f"# {parent}\n")
    assert f"# {name}\n" in page
    assert f"<!-- table: algorithm {name} -->" in page
    assert "```math\n" in page
    assert re.search(r"arxiv\.org/abs/\d{4}\.\d{5}", page)
    assert f"- {parent}: {file}\n" in (ROOT / "mkdocs.yml").read_text("utf-8")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_has_a_page_in_pettingzoos_format(name: str) -> None:
    page = (DOCS / f"{name}.md").read_text("utf-8")
    rows = ["Creation", "Actions", "Parallel API", "Agents", "Number of agents"]
    rows += ["Action shape", "Action values", "Observation shape", "Observation values"]
    headings = re.findall(r"^\| ([A-Z][a-zA-Z ]+) \| ", page, re.MULTILINE)
    assert headings[headings.index("Creation") :][: len(rows)] == rows
    sections = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert {"An episode", "Rewards", "Groups", "Parameters"} <= set(sections)
    assert f"<!-- table: env {name} -->" in page
    assert f"- {name}: {name}.md\n" in (ROOT / "mkdocs.yml").read_text("utf-8")


def test_every_section_of_the_settings_has_a_table_or_a_page() -> None:
    page = (DOCS / "settings.md").read_text("utf-8")
    for section in parse([]).plain().keys() - {"choice"}:
        assert f"<!-- table: settings {section} -->" in page or f"| `--{section}.*`" in page


def test_settings_of_the_baseline_without_training_stand_in_a_section() -> None:
    assert "<!-- table: leap -->" in (DOCS / "eapo-consultation.md").read_text("utf-8")
