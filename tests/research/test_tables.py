"""What the pages of the evidence say: it is what is stored, computed as by hand."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from evidence import measures, pages, tables
from evidence.pages import consult, contests, controls, peer_hints, real_models, reasoning
from evidence.tables import change, each, fell, over_problems, plus_minus, put, select, signed


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_page_says_what_is_stored(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures: set[str] = set()
    for module in (consult, contests, controls, peer_hints, real_models):
        for draw in ("dots", "scatter"):
            shown = lambda values, picture, label: pictures.add(picture)  # noqa: E731
            monkeypatch.setattr(module, draw, shown, raising=False)
    results, lines = pages.PAGES[name]
    written = "\n".join([*lines(), *pages.missing(results), ""])
    page = (pages.ROOT / f"research/2026-11-{name}.md").read_text(encoding="utf-8")
    assert f"<!-- results -->\n{written}<!-- end of results -->" in page
    assert all((tables.RESULTS / picture).is_file() for picture in pictures)


def test_what_is_stored_beside_a_run_of_the_defaults() -> None:
    assert json.loads(pages.BASELINE.read_text(encoding="utf-8")) == peer_hints.baseline()


def test_tables_of_models_that_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seeds of two arms; a comparison with one question set; what is missing, by arm."""
    monkeypatch.setattr("evidence.studies.RESULTS", tmp_path)

    def line(arm: str, seed: int, **more: Any) -> dict[str, Any]:
        return {"contest": "reason", "arm": arm, "seed": seed, "cpu_s": 9.0, "commit": "c", **more}

    def solo(arm: str, seed: int, right: float) -> dict[str, Any]:
        return line(arm, seed, after={"pass@1": right, "stated": 1.0}, tokens=1000 * seed)

    system = {"accuracy": 0.5, "ece": 0.1}
    untrained = {"pass@1/alice": 0.25, "pass@1/bob": 0.5, "team_pass@1": 0.6}
    rows = [
        solo("solo-rewards", 91, 0.4),
        solo("solo-rewards", 92, 0.5),
        solo("solo-taught", 91, 0.5),
        solo("solo-taught", 92, 0.7),
        line(
            "quick",
            95,
            before={"pass@1": 0.25, "stated": 0.5},
            after={"pass@1": 0.75, "stated": 0.75},
            right={"before": "1010", "after": "2121"},
            tokens=1000,
        ),
        line("defer-compared", 91, after={}, sets={"svamp": {"corea": system}}),
        line("pair-sizes", 90, before=untrained),
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "models-that-reason.jsonl").write_text(text, encoding="utf-8")
    written = [*reasoning.lines(), *pages.missing("models-that-reason.jsonl")]
    assert "| rewards | **.450** (.400 .500) | **1.000** (1.000 1.000) |  | 91,500 |" in written
    # By seed .1 and .2: mean .15, t(.975, 1) = 12.706 times .0707 / sqrt 2 = .635.
    taught = "| taught | **.600** (.500 .700) | **1.000** (1.000 1.000) "
    assert f"{taught}| +.150 [−.485, +.785] | 91,500 |" in written
    # Each problem gains one of two answers, so every resample does.
    quick = "| 95 | .250 (.000, .500) | .750 (.500, 1.000) | +.500 (+.500, +.500) "
    assert f"{quick}| .500 → .750 | .500 → 1.000 | 1,000 | 0 |" in written
    assert "Change over seeds: +.500." in written
    assert "| corea | .500 | .100 |  |  |  |  |  |" in written
    assert "| sizes | **.250** (.250) | **.500** (.500) | **.600** (.600) |" in written
    assert "| solo-taught | 2 | 9 | c |" in written
    assert "- reason-solo-rewards: 90, 93" in written


def test_lines_are_put_into_their_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- results -->\nold\n<!-- end of results -->\nb\n", encoding="utf-8")
    put(page, ["new", ""])
    assert page.read_text(encoding="utf-8") == (
        "a\n<!-- results -->\nnew\n<!-- end of results -->\nb\n"
    )


def test_numbers_by_hand() -> None:
    """Of .5 and .7: mean .6, t(.975, 1) = 12.706 times .1414 / sqrt 2 = 1.271."""
    assert signed(-0.05) == "−.050"
    assert each([0.5, 0.6]) == "**.550** (.500 .600)"
    assert change([0.5, 0.7]) == "+.600 [−.671, +1.871]"
    assert change([0.5]) == "+.500"
    assert change([]) == plus_minus([None]) == ""
    assert plus_minus([0.5, None, 0.7]) == ".600 ± 1.271 (2 of 3)"


def row(alice: list[int], bob: list[int], **changes: Any) -> dict[str, Any]:
    """Right answers of three to each of four problems; one of two right before."""
    right = {"alice": alice, "bob": bob}
    return {
        "before": {key: [6, 12] for key in right},
        "after": {role: [sum(values), 12] for role, values in right.items()},
        "right": {role: "".join(map(str, values)) for role, values in right.items()},
        "curve": {key: [0.5, 0.6] for key in right},
        "hint_lift": None,
        **changes,
    }


def test_differences_by_hand() -> None:
    """Seeds differ by 3/12 and 5/12: .333, with t(.975, 1) = 12.706 times .1179 / sqrt 2 = 1.059.
    Problem by problem they are 1, 0, 0, 0, 1, 0, 1/3, 1/3."""
    plain = {1: row([0, 3, 3, 0], [3, 3, 3, 3]), 2: row([0, 3, 2, 0], [3, 3, 3, 3])}
    ours = {1: row([3, 3, 3, 0], [3, 3, 3, 3]), 2: row([3, 3, 3, 1], [3, 3, 3, 3])}
    mean, over = over_problems(ours, plain, "alice").split("; ")
    assert mean == "+.333 [−.726, +1.392]"
    low, high = (float(bound) for bound in over.strip("()").replace("+", "").split(", "))
    assert 0 <= low < 1 / 3 < high < 1
    assert over_problems(ours, plain, "bob") == "+.000 [+.000, +.000]; (+.000, +.000)"
    assert over_problems(ours, {3: plain[1]}, "alice") == ""
    # Six answers to each, of which as large a share is right.
    twice = row([6, 6, 6, 6], [6, 6, 6, 6], after={"alice": [24, 24], "bob": [24, 24]})
    mean = over_problems(dict.fromkeys(plain, twice), plain, "bob")
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
    assert fell(row([3, 3, 3, 3], [3, 3, 3, 3], **changes)) == fallen


def test_lines_by_arm_and_seed() -> None:
    lines = [{"arm": arm, "seed": seed, "rung": "recall"} for seed in (2, 1) for arm in "ab"]
    lines.append({"arm": "a", "seed": 3, "rung": "default"})
    assert {arm: [*rows] for arm, rows in select(lines, rung="recall").items()} == {
        "a": [1, 2],
        "b": [1, 2],
    }
    assert {arm: [*rows] for arm, rows in select(lines, (3,)).items()} == {"a": [3]}


def test_whether_a_condition_holds() -> None:
    """All differ by 2/12 or not at all; one seed is missing, one falls apart, or all is well."""
    plain, ours = row([3, 3, 0, 0], [3, 3, 3, 3]), row([3, 3, 2, 0], [3, 3, 3, 3])
    seeds = range(100, 112)

    def verdict(taught: dict[int, Any]) -> str:
        of_arms = {"plain": dict.fromkeys(seeds, plain), "expected": taught}
        return peer_hints.verdict("default", 330, of_arms)[1]

    good = dict.fromkeys(seeds, ours)
    assert verdict(good) == "**holds**"
    broken = row([3, 3, 2, 0], [3, 3, 3, 3], curve={"alice": [0.8, 0.6], "bob": [1.0, 1.0]})
    assert verdict({**good, 111: broken}) == "**fails**"
    # With bob worse by 1/12 in every seed.
    assert verdict(dict.fromkeys(seeds, row([3, 3, 3, 3], [3, 3, 3, 2]))) == "**fails**"
    good.pop(111)
    assert verdict(good) == "open: 11 of 12 seeds"


def test_a_second_round_may_lose_less_than_its_bound() -> None:
    """1/12 below on both seeds is above -.1 and not above -.083."""
    ours = dict.fromkeys(range(2), row([3, 3, 3, 2], [3, 3, 3, 3]))
    theirs = dict.fromkeys(range(2), row([3, 3, 3, 3], [3, 3, 3, 3]))
    assert not controls.fails(ours, theirs, -0.1)
    assert controls.fails(ours, theirs, -1 / 12)
    apart = row([3, 3, 3, 2], [3, 3, 3, 3], curve={"alice": [0.5, 0.6], "bob": [0.71, 0.6]})
    assert controls.fails({**ours, 1: apart}, theirs, -0.1)


def test_shares_of_a_gain_and_of_hints_by_hand() -> None:
    """Plain .50, expected .75, other .5625: a quarter of the gain; 5 of 10 rows have a hint."""
    plain, expected = {1: row([3, 3, 0, 0], [0] * 4)}, {1: row([3, 3, 3, 0], [0] * 4)}
    other = {1: row([3, 3, 0, 0], [0] * 4, after={"alice": [9, 16]}, read={"alice": [10, 5]})}
    assert controls.part_of_gain(other, plain, expected, "alice") == ".25"
    assert controls.rows_read(other, "alice") == ".50"


def test_random_deferral_at_equal_accuracy_by_hand() -> None:
    """From .5 for 10 to .9 for 110, where the large model alone costs 100: .8 is three quarters of
    the way, 85; at .5 and below nothing is deferred."""
    systems = {
        "never": {"accuracy": 0.5, "cost": 10},
        "always": {"accuracy": 0.9, "cost": 110},
        "llm": {"accuracy": 0.9, "cost": 100},
    }
    assert contests.random_saving(systems, 0.1) == pytest.approx(0.15)
    assert contests.random_saving(systems, 0.5) == pytest.approx(0.9)
    worse = {**systems, "always": {"accuracy": 0.4, "cost": 110}}
    assert contests.random_saving(worse, 0.1) is None


def test_a_gain_over_problems_of_a_kind_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two problems of each set and kind; of times, the second half, ours has 2, 1, 1, 1 answers
    more in one seed and 0, 1, 1, 1 in the other: half an answer of two for each problem."""
    monkeypatch.setattr(measures, "HELD_OUT", 2)
    theirs = {seed: {"right": {"alice": "11110000"}} for seed in (1, 2)}
    ours = {1: {"right": {"alice": "11112111"}}, 2: {"right": {"alice": "11110111"}}}
    shown = real_models.problems_of_kind(ours, theirs, "alice", "times")
    assert shown == "problems [+.500, +.500]"
    assert measures.rate_of_kind(ours[1], "alice", "times") == 5 / 8
    assert measures.rate_of_kind(ours[1], "alice", "times", "svamp") == 0.5
    assert not math.isnan(measures.rate_of_kind(ours[1], "alice", "plus"))
