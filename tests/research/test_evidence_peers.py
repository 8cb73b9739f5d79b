"""The list of runs behind docs/evidence.md, and what its tables say of stored results."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.arguments import overlay
from coterie.cli.command_line import parse
from evidence import peer_tables as tables
from evidence import peers as evidence


def row(alice: list[int], bob: list[int], **changes: Any) -> dict[str, Any]:
    """Right answers of three to each of four problems; one of two right before."""
    right = {"alice": alice, "bob": bob}
    return {
        "before": {key: [6, 12] for key in right},
        "after": {role: [sum(values), 12] for role, values in right.items()},
        "right": {role: "".join(map(str, values)) for role, values in right.items()},
        "curve": {key: [0.5, 0.6] for key in right},
        "votes": {"alice": 0.5, "bob": 0.5, "team": 0.75},
        "peer_only": dict.fromkeys(right, 0.25),
        "tokens": 1_000_000,
        "cpu_s": 90.0,
        "hint_lift": None,
        **changes,
    }


# Screened forms whose settings are gone; commit 32e3cad runs them.
GONE = {"sharing", "contrast", "gold-hint", "reward", "current"}


def test_every_run_is_planned_once_and_its_flags_exist() -> None:
    runs = list(evidence.planned())
    assert len({run.name for run in runs}) == len(runs)
    for run in {(run.arm, run.rung): run for run in runs}.values():
        settings = parse(run.flags)
        assert (settings.run.seed, settings.run.steps) == (run.seed, run.steps)
    seeds = {run.seed for run in runs}
    assert seeds == {*range(60, 72), *range(80, 85), *range(100, 112)}


def test_what_is_stored_can_be_run_again() -> None:
    """Failed rounds are in no list: each line's command is the way back to its run."""
    stored = evidence.stored()
    assert stored.keys() >= {*evidence.planned()}
    commands = {(run.arm, run.rung): row["command"] for run, row in stored.items()}
    assert {arm for arm, _ in commands} >= GONE | {"distillation", "sure", "fading", "start"}
    for (arm, rung), command in commands.items():
        if arm not in GONE:
            program, *flags = shlex.split(command.removeprefix("python "))
            assert program == "train.py"
            # Of a flag that stands twice in the older ones the last counts.
            assert parse(overlay(flags)).problems.train == evidence.RUNGS[rung]


def test_what_only_the_peer_solves() -> None:
    correct = {"alice": [[0, 0], [1, 0], [0, 0], [0, 0]], "bob": [[0, 1], [1, 1], [0, 0], [1, 1]]}
    assert evidence._peer_only(correct, "alice") == 0.5
    assert evidence._peer_only(correct, "bob") == 0


def test_differences_by_hand() -> None:
    """Seeds differ by 3/12 and 5/12: .333, with t(.975, 1) = 12.706 times .1179 / sqrt 2 = 1.059.
    Problem by problem they are 1, 0, 0, 0, 1, 0, 1/3, 1/3."""
    plain = {1: row([0, 3, 3, 0], [3, 3, 3, 3]), 2: row([0, 3, 2, 0], [3, 3, 3, 3])}
    ours = {1: row([3, 3, 3, 0], [3, 3, 3, 3]), 2: row([3, 3, 3, 1], [3, 3, 3, 3])}
    mean, over = tables.difference(ours, plain, "alice").split("; ")
    assert mean == "+.333 [−.726, +1.392]"
    low, high = (float(bound) for bound in over.strip("()").replace("+", "").split(", "))
    assert 0 <= low < 1 / 3 < high < 1
    assert tables.difference(ours, plain, "bob") == "+.000 [+.000, +.000]; (+.000, +.000)"
    assert tables.difference(ours, {3: plain[1]}, "alice") == ""
    # Six answers to each, of which as large a share is right.
    twice = row([6, 6, 6, 6], [6, 6, 6, 6], after={"alice": [24, 24], "bob": [24, 24]})
    mean = tables.difference(dict.fromkeys(plain, twice), plain, "bob")
    assert mean == "+.000 [+.000, +.000]; (+.000, +.000)"


@pytest.mark.parametrize(
    ("changes", "fallen"),
    [
        ({}, []),
        # .417 is .083 below its start; .45 of training .11 below the best block.
        ({"after": {"alice": [5, 12], "bob": [12, 12]}}, ["alice"]),
        ({"curve": {"alice": [0.5, 0.6], "bob": [0.56, 0.45]}}, ["bob"]),
    ],
)
def test_what_has_fallen_apart(changes: dict[str, Any], fallen: list[str]) -> None:
    assert tables.fell(row([3, 3, 3, 3], [3, 3, 3, 3], **changes)) == fallen


def test_whether_a_condition_holds() -> None:
    """All differ by 2/12 or not at all; one seed is missing, one falls apart, or all is well."""
    plain, ours = row([3, 3, 0, 0], [3, 3, 3, 3]), row([3, 3, 2, 0], [3, 3, 3, 3])
    rows = {
        evidence.Run("default", arm, seed, 330): result
        for arm, result in (("plain", plain), ("expected", ours))
        for seed in evidence.DECIDING["default", 330]
    }

    def verdict(stored: dict[Any, Any]) -> str:
        return next(line for line in tables.verdicts(stored) if "default" in line)

    assert verdict(rows).endswith("| **holds** |")
    last = evidence.Run("default", "expected", 111, 330)
    broken = row([3, 3, 2, 0], [3, 3, 3, 3], curve={"alice": [0.8, 0.6], "bob": [1.0, 1.0]})
    assert verdict({**rows, last: broken}).endswith("| **fails** |")
    # With bob worse by 1/12 in every seed.
    worse = {run: row([3, 3, 3, 3], [3, 3, 3, 2]) if run.arm != "plain" else plain for run in rows}
    assert verdict(worse).endswith("| **fails** |")
    rows.pop(last)
    assert verdict(rows).endswith("| open: 11 of 12 seeds |")


def test_what_is_shown_beside_a_run() -> None:
    """Of three answers 3, 1, 0, 3 are right, and all of bob's: Pass@1 (1 + 1/3 + 0 + 1) / 4, Pass@2
    (1 + 2/3 + 0 + 1) / 4; the other seed has 1 and 1."""
    seeds = {20: row([3, 1, 0, 3], [3, 3, 3, 3]), 21: row([3, 3, 3, 3], [3, 3, 3, 3])}
    shown = tables.alone(seeds)
    assert shown["seeds"] == [20, 21]
    assert shown["metrics"]["pass@1/alice"] == pytest.approx((7 / 12 + 1) / 2, abs=1e-4)
    assert shown["metrics"]["pass@2/alice"] == pytest.approx((8 / 12 + 1) / 2, abs=1e-4)
    assert shown["metrics"]["team_pass@1"] == 1
    assert "rescue_rate" not in shown["metrics"]


def test_what_is_stored_beside_a_run_is_of_these_rows() -> None:
    plain = tables.arms(evidence.stored(), "complementary", 330)["plain"]
    assert json.loads(tables.BASELINE.read_text(encoding="utf-8")) == tables.alone(plain)


def test_the_page_is_made_of_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "evidence.md"
    page.write_text("a\n<!-- results -->\nold\n<!-- end of results -->\nb\n", encoding="utf-8")
    monkeypatch.setattr(tables, "PAGE", page)
    monkeypatch.setattr(tables, "draw", lambda stored: None)
    rows = {
        evidence.Run("default", arm, seed, 330): row([3, 3, right, 0], [3, 3, 3, 3])
        for arm, right in (("plain", 0), ("expected", 3))
        for seed in (100, 101)
    }
    missing = evidence.Run("recall", "expected", 60, 330)
    monkeypatch.setattr(evidence, "stored", lambda: rows)
    monkeypatch.setattr(tables, "stored", lambda: rows)
    monkeypatch.setattr(evidence, "planned", lambda: [*rows, missing])
    monkeypatch.setattr(tables, "BASELINE", tmp_path / "alone.json")
    tables.write()
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert "### Default, 330 steps" in text
    assert "| expected | 2 of 12 | .500 / .500 | **.750** (.750 .750) |" in text
    assert "+.250 [+.250, +.250]" in text
    assert "- recall-expected-330-60" in text
    assert text.endswith("<!-- end of results -->\nb\n")
    assert not (tmp_path / "alone.json").exists()
