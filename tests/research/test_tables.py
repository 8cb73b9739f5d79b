"""What the pages of the evidence say: it is what is stored, computed as by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from evidence import pages, tables
from evidence.pages import consult, contests, controls, peer_hints, real_models, reasoning
from evidence.tables import change, each, fell, plus_minus, put, signed


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


def test_no_condition_holds_where_a_role_falls_apart() -> None:
    plain, ours = row([3, 3, 0, 0], [3, 3, 3, 3]), row([3, 3, 2, 0], [3, 3, 3, 3])
    of_arms = {"plain": dict.fromkeys((1, 2, 3), plain), "expected": dict.fromkeys((1, 2, 3), ours)}
    assert peer_hints.verdict("default", 330, of_arms)[1] == "**holds**"
    assert not controls.fails(of_arms["expected"], of_arms["plain"], -0.02)
    of_arms["expected"][3] = {**ours, "curve": {"alice": [0.8, 0.6], "bob": [1.0, 1.0]}}
    assert peer_hints.verdict("default", 330, of_arms)[1] == "**fails**"
    assert controls.fails(of_arms["expected"], of_arms["plain"], -0.02)
