"""What each page of a study shows of its stored results."""

import json
from collections.abc import Callable, Iterator, Mapping

from evidence.pages import (
    consult,
    contests,
    controls,
    peer_hints,
    published,
    real_models,
    reasoning,
)
from evidence.studies import ROOT, studies
from evidence.tables import put

BASELINE = ROOT / "envs/core_teaching/alone.json"
"""What the table of a run by the defaults shows beside itself."""


def write() -> None:
    """Write tables and pictures of all pages."""
    for name, (results, lines) in PAGES.items():
        put(ROOT / f"research/2026-11-{name}.md", [*lines(), *missing(results), ""])
    BASELINE.write_text(json.dumps(peer_hints.baseline(), indent=2) + "\n", encoding="utf-8")


def missing(results: str) -> list[str]:
    """Return a page's text about missing runs."""
    of_page = [study for study in studies().values() if study.results == results]
    seeds: dict[str, list[str]] = {}
    for run in (run for study in of_page for run in study.missing()):
        seeds.setdefault(run.name.removesuffix(f"-{run.seed}"), []).append(str(run.seed))
    if not seeds:
        return ["", "Every run of the protocol is made."]
    lines = (f"- {name}: {', '.join(of_run)}" for name, of_run in seeds.items())
    return ["", "### Missing", "", "Runs, and their seeds:", "", *lines]


PAGES: Mapping[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "peer-hints": ("results.jsonl", peer_hints.lines),
    "contests": ("contests.jsonl", contests.lines),
    "controls": ("controls.jsonl", controls.lines),
    "consult-and-reread": ("consulting.jsonl", consult.lines),
    "real-models": ("real-models.jsonl", real_models.lines),
    "models-that-reason": ("models-that-reason.jsonl", reasoning.lines),
    "core-as-published": ("published.jsonl", published.core_lines),
    "eapo-as-published": ("eapo-published.jsonl", published.eapo_lines),
}
"""Name of a page -> its file of results, and its lines."""
