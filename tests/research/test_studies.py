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


def settings(name: str) -> Any:
    """The settings of a training."""
    run = PLANNED[name]
    return parse(run.arguments(fill(run), OUT / name))


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


@pytest.mark.parametrize(("rung", "seed"), [("disjoint", 80), ("recall", 60)])
def test_other_hints_differ_from_expected_in_the_hint_alone(rung: str, seed: int) -> None:
    expected = settings(f"{rung}-expected-330-{seed}")
    for arm in ("other-same", "other-cross"):
        ours = settings(f"control-{rung}-{arm}-330-{seed}")
        assert ours.env.hint_of == arm
        for name in ("k_cold", "k_hinted", "reread", "reread_least", "reread_hint", "teacher"):
            assert getattr(ours.env, name) == getattr(expected.env, name)
        assert (ours.algo, ours.learner) == (expected.algo, expected.learner)
        assert (ours.agents, ours.run.group_by) == (expected.agents, expected.run.group_by)


def test_both_rereads_as_the_default_does() -> None:
    default: Any = parse(["--env", "core-teaching", "--algo", "gspo", "--steps", "330"])
    for arm in ("both-core", "both-own"):
        ours = settings(f"control-disjoint-{arm}-330-3")
        assert (ours.env.k_cold, ours.env.k_hinted) == (2, 1)
        assert ours.algo.distillation == default.algo.distillation
        for name in ("reread", "reread_least", "reread_hint", "teacher"):
            assert getattr(ours.env, name) == getattr(default.env, name)
        assert (ours.env.r_teach > 0) == (arm == "both-core")


def test_every_arm_of_consulting_has_eight_traces_of_a_problem() -> None:
    for arm in ("alone", "consulted", "lone", "reread-long"):
        ours = settings(f"consult-{arm}-40")
        assert ours.run.tokens == 1_200_000
        assert ours.env.group_size * (1 + ours.env.lone) == 8
        assert (ours.algo.distillation.beta > 0) == (arm == "reread-long")
        assert (ours.env.reread != "none") == (arm == "reread-long")


@pytest.mark.parametrize("form", ["read", "pair"])
def test_arms_of_real_teachers_differ_in_what_is_read_again(form: str) -> None:
    taught, alone, other = (
        settings(f"real-{form}-{arm}-70") for arm in ("taught", "alone", "other")
    )
    assert taught.env.reread == other.env.reread == "unsolved"
    assert alone.env.reread == "none"
    assert taught.env.k_cold == alone.env.k_cold == other.env.k_cold == 4
    assert taught.algo == other.algo
    assert replace(alone.algo, distillation=taught.algo.distillation) == taught.algo
    assert taught.learner == alone.learner == other.learner


def test_eapo_as_published_and_alone_are_the_same_learner() -> None:
    ours, alone = (settings(f"eapo-published-{arm}-120") for arm in ("published", "alone"))
    assert (ours.env.consult, alone.env.consult) == ("free", "never")
    assert (ours.run.tokens, alone.run.tokens) == (0, 300)
    assert (ours.run.steps, ours.run.seed, alone.run.seed) == (100, 120, 120)
    assert (ours.algo, ours.learner, ours.eval) == (alone.algo, alone.learner, alone.eval)
