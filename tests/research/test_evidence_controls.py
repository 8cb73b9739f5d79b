"""The third protocol of the evidence: which runs there are, what decides, and its tables."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.command_line import parse
from evidence import control_tables as tables
from evidence import controls, peers
from evidence.controls import BOTH, LENGTH, SCREEN, Run


def row(run: Any, alice: int, bob: int, **changes: Any) -> dict[str, Any]:
    """Right answers of a hundred; fifty were right before."""
    return {
        "seed": run.seed,
        "before": {"alice": [50, 100], "bob": [50, 100]},
        "after": {"alice": [alice, 100], "bob": [bob, 100]},
        "curve": {"alice": [0.5, 0.6], "bob": [0.5, 0.6]},
        "tokens": 1_000_000,
        "cpu_s": 90.0,
        "read": {"alice": [10, 5], "bob": [8, 8]},
        "rescues": {
            when: {"rescue_rate": rate, "retry_rate": 0.1, "hint_lift": 0.2}
            for when, rate in (("before", 0.2), ("after", 0.6))
        },
        **changes,
    }


def screen(core: int, own: int) -> dict[Run, dict[str, Any]]:
    points: dict[str, int] = dict(zip(BOTH, (core, own)))
    runs = [Run("disjoint", arm, seed, LENGTH) for arm in BOTH for seed in SCREEN]
    return {run: row(run, points[run.arm], points[run.arm]) for run in runs}


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> dict[Run, dict[str, Any]]:
    """What counts as stored."""
    rows: dict[Run, dict[str, Any]] = {}
    monkeypatch.setattr(controls, "stored", lambda: rows)
    return rows


def test_the_flags_of_every_run_exist(results: dict[Run, dict[str, Any]]) -> None:
    results.update(screen(90, 80))
    runs = list(controls.planned())
    assert len({run.name for run in runs}) == len(runs)
    for run in {(run.arm, run.rung): run for run in runs}.values():
        settings = parse(run.flags)
        assert (settings.run.seed, settings.run.steps) == (run.seed, run.steps)


@pytest.mark.parametrize("rung", ["disjoint", "recall"])
def test_the_arms_differ_from_the_default_in_the_hint_alone(rung: str) -> None:
    """And the default is the *expected* of the first protocol, as far as it has an effect."""
    expected = parse(peers.Run(rung, "expected", 7, LENGTH).flags)
    for arm in ("expected", "other-same", "other-cross"):
        ours = parse(Run(rung, arm, 7, LENGTH).flags)
        own: Any = ours.env
        assert getattr(own, "hint_of", "own") == ("own" if arm == "expected" else arm)
        for name in ("k_cold", "k_hinted", "reread", "reread_least", "reread_hint", "teacher"):
            assert getattr(own, name) == getattr(expected.env, name)
        assert ours.algo == expected.algo
        assert ours.run.group_by == expected.run.group_by
        assert ours.learner == expected.learner
        assert ours.agents == expected.agents


def test_both_rereads_as_the_default_does() -> None:
    default: Any = parse(Run("disjoint", "expected", 7, LENGTH).flags)
    for arm in BOTH:
        ours: Any = parse(Run("disjoint", arm, 7, LENGTH).flags)
        assert (ours.env.k_cold, ours.env.k_hinted) == (2, 1)
        assert ours.algo.distillation == default.algo.distillation
        for name in ("reread", "reread_least", "reread_hint", "teacher"):
            assert getattr(ours.env, name) == getattr(default.env, name)
        assert (ours.env.r_teach > 0) == (arm == "both-core")


def test_the_screen_chooses(results: dict[Run, dict[str, Any]]) -> None:
    assert controls.chosen(results) is None
    results.update(screen(90, 95))
    assert controls.chosen(results) == "both-own"
    # Less than .01 apart: CoRe's rewards.
    results.update(screen(90, 90))
    assert controls.chosen(results) == "both-core"
    results.pop(Run("disjoint", "both-core", 3, LENGTH))
    assert controls.chosen(results) is None
    assert "both-core" not in {run.arm for run in controls.planned() if run.seed >= 60}


def test_after_a_failure_five_seeds_of_a_rung_are_enough(
    results: dict[Run, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    results.update(screen(90, 80))
    first: dict[peers.Run, Any] = {}
    monkeypatch.setattr(peers, "stored", lambda: first)
    for seed in range(80, 85):
        for steps in (LENGTH, 2 * LENGTH):
            run = peers.Run("disjoint", "expected", seed, steps)
            first[run] = row(run, 90, 90)
            ours = Run("disjoint", "both-core", seed, steps)
            # .04 and .01 below: within the bounds.
            results[ours] = row(ours, *((86, 90) if steps == LENGTH else (89, 90)))

    def of_default() -> set[int]:
        runs = controls.planned()
        return {run.seed for run in runs if (run.rung, run.arm) == ("default", "both-core")}

    assert controls.failed(results) == []
    assert of_default() == {*range(100, 112)}
    long = [run for run in results if (run.arm, run.steps) == ("both-core", 2 * LENGTH)]
    for run in long:
        results[run] = row(run, 88, 90)  # .02 below is not above -.02
    assert controls.failed(results) == [("disjoint", 2 * LENGTH)]
    assert of_default() == {*range(100, 105)}
    for run in long:
        results[run] = row(run, 89, 90)
    # Fallen apart: .11 below its best block.
    curve = {"alice": [0.5, 0.6], "bob": [0.71, 0.6]}
    results[long[0]] = row(long[0], 89, 90, curve=curve)
    assert controls.failed(results) == [("disjoint", 2 * LENGTH)]
    # Four of five seeds decide nothing.
    results.pop(long[0])
    assert controls.failed(results) == []


def test_the_tables_by_hand(
    results: dict[Run, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain .50, expected .90, other .60: a quarter of the gain; half of alice's rows are read."""
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- results -->\nold\n<!-- end of results -->\nb\n", encoding="utf-8")
    monkeypatch.setattr(tables, "PAGE", page)
    pictures: dict[str, Any] = {}
    monkeypatch.setattr(tables, "draw", lambda values, name, label: pictures.update(values))
    first = {
        run: row(run, value, value)
        for seed in (80, 81, 82)
        for arm, value in (("plain", 50), ("expected", 90))
        for run in (peers.Run("disjoint", arm, seed, LENGTH),)
    }
    monkeypatch.setattr(peers, "stored", lambda: first)
    for seed in (80, 81):
        run = Run("disjoint", "other-same", seed, LENGTH)
        results[run] = row(run, 60, 50)
        run = Run("disjoint", "both-core", seed, LENGTH)
        results[run] = row(run, 80, 95)
    results.update(screen(90, 80))
    tables.write()
    lines = page.read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith("| other-same |"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:3] == ["other-same", "2", "**.600** (.600 .600)"]
    assert cells[4] == "+.100 [+.100, +.100]"
    assert cells[6:8] == ["+.300 [+.300, +.300]", "+.400 [+.400, +.400]"]
    assert cells[8:10] == [".25, .00", ".50, 1.00"]
    # Of the others the same seeds are shown.
    assert any(line.startswith("| expected | 2 |") for line in lines)
    assert "| both-core | 2 | **.800** (.800 .800) | **.950** (.950 .950) |" in "\n".join(lines)
    assert any("−.100 [−.100, −.100] | +.050 [+.050, +.050] | .20, .60 |" in x for x in lines)
    assert len(pictures["other-same: alice"]) == 2
    assert "- control-disjoint-other-same-330-82" in lines


@pytest.mark.slow
def test_what_is_stored_can_be_run_again() -> None:
    for run, line in controls.stored().items():
        program, *flags = shlex.split(line["command"].removeprefix("python "))
        assert program == run.program
        assert parse(flags).run.seed == run.seed


def test_a_fresh_seed_of_an_arm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from evidence.runs import again

    trained: list[Any] = []

    def train(run: Any, out: Path) -> dict[str, Any]:
        trained.append(run)
        return row(run, 60, 70)

    monkeypatch.setattr(controls, "train", train)
    old = Run("recall", "other-same", 60, LENGTH)
    monkeypatch.setattr(controls, "stored", lambda: {old: row(old, 61, 71)})
    shown = again((controls,), "control-recall-other-same-330", 7, tmp_path)
    assert trained == [replace(old, seed=7)]
    assert [line.partition(":")[0] for line in shown.splitlines()] == ["seed 60", "seed 7"]
    results = screen(90, 80)
    monkeypatch.setattr(controls, "stored", lambda: results)
    with pytest.raises(SystemExit, match="no run is called nothing; the arms are: control-d"):
        again((controls,), "nothing", 7, tmp_path)
