"""The studies of the evidence: their runs, and what is stored of them."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.arguments import overlay
from coterie.cli.command_line import parse
from coterie.evaluation.compare.inherited_settings import parse as parse_comparison
from coterie.extras.papers.corea import CoreaComparison
from coterie.extras.papers.distill import DistillSettings
from evidence.studies import LOOP, Run, studies

PLANNED = {run.name: run for study in studies().values() for run in study.planned()}
STORED = {name for study in studies().values() for name in study.stored()}
OUT = Path("/runs")


def fill(run: Run) -> Any:
    """What placeholders stand for, in a run that needs no others."""

    def filled(kind: str, name: str) -> str:
        if kind:
            return "300"
        known = name in run.study.arms
        return str(OUT / (replace(run, arm=name).name if known else name))

    return filled


def test_a_run_is_planned_once_after_those_that_it_needs() -> None:
    runs = [run for study in studies().values() for run in study.planned()]
    assert len(PLANNED) == len(runs) == 579 + 15 + 3 * 16 + 3 + 1 + 6 + 3 + 4 + 9
    done: set[str] = set()
    for run in runs:
        assert {needed.name for needed in run.needs()} <= done
        done.add(run.name)


def test_every_run_is_stored_but_those_of_models_that_reason() -> None:
    missing = {study.key for study in studies().values() if study.missing()}
    assert missing == {"reason"}
    # Rounds that failed are stored and in no plan, as is an arm that was cut.
    assert "real-teach-taught-70" in STORED - PLANNED.keys()


def one_of_each(stored: bool = False) -> list[Run]:
    """A run of every arm on every problem set; of those that are ``stored``."""
    known: dict[tuple[Any, ...], Run] = {}
    for run in PLANNED.values():
        if not stored or run.name in STORED:
            known.setdefault((run.study.key, run.arm, run.values.get("rung")), run)
    return [*known.values()]


@pytest.mark.parametrize("run", one_of_each(), ids=lambda run: run.name)
def test_every_command_is_one(run: Run) -> None:
    words = run.arguments(fill(run), OUT / run.name)
    assert not any("@" in word[:1] or "<" in word for word in words)
    if run.program in ("train.py", LOOP):
        assert parse(words).run.seed == run.seed
    elif words[0] == "distill":
        assert parse_comparison(DistillSettings, words[1:], "distill").expert_tokens == 300
    elif words[0] == "corea":
        # A run that is not there is no model.
        known = ["tiny:small" if word.startswith(f"{OUT}/") else word for word in words[1:-2]]
        assert parse_comparison(CoreaComparison, known, "corea").seed == run.seed
    else:
        folders = {word.partition("=")[2].partition("/final")[0] for word in words if "=/" in word}
        assert folders == {str(OUT / needed.name) for needed in run.needs()}


@pytest.mark.parametrize("run", one_of_each(stored=True), ids=lambda run: run.name)
def test_what_is_stored_was_run_with_these_flags(run: Run) -> None:
    """But for folders, for numbers of tokens, and for choices that were defaults at the time."""
    free = {"--env", "--algo", "--preset", "--run-dir", "--out", "--tokens", "--expert-tokens"}
    program, *then = shlex.split(run.study.stored()[run.name]["command"])[1:]
    now = by_flag(run.arguments(fill(run), OUT))
    old = by_flag(overlay(then))
    if run.seed == 69:
        free.add("--learner.micro-batch-tokens")  # has no effect on what is learned
    places = ("runs/", "$COTERIE_WEIGHTS/", str(OUT))
    assert program == run.program
    for flag in (now.keys() | old.keys()) - free:
        assert len(now[flag]) == len(old[flag]), flag
        for ours, theirs in zip(now[flag], old[flag]):
            assert ours == theirs or all(any(p in w for p in places) for w in (ours, theirs)), flag


def by_flag(words: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"": []}
    for word in words:
        if word.startswith("--"):
            found[word] = []
        else:
            found[[*found][-1]].append(word)
    return found
