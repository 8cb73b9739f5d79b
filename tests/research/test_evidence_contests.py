"""The second protocol of the evidence: its commands, and what its tables say of stored results."""

from pathlib import Path
from typing import Any

import pytest

from coterie.cli.command_line import parse
from coterie.evaluation.compare.inherited import parse as parse_comparison
from coterie.extras.papers.corea import CoreaComparison
from coterie.extras.papers.distill import DistillSettings
from evidence import contest_tables as tables
from evidence import contests
from evidence import runs as evidence_runs


def test_every_command_is_planned_once_and_its_flags_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contests, "expert_tokens", lambda folder: 300)
    runs, arms = list(contests.planned()), contests.CONTESTS["eapo"]
    assert len({run.name for run in runs}) == len(runs)
    assert {run.seed for run in runs} == {*contests.SEEDS}
    assert {*contests.SEEDS}.isdisjoint(range(25))
    for run in (run for run in runs if run.seed == contests.SEEDS[0]):
        job = run.job(tmp_path)
        flags = list(job.arguments)
        if job.program == "train":
            assert parse(flags).run.seed == run.seed
        elif flags[0] == "distill":
            asked = contests.EXPERTS[run.what.needs[0]]
            assert flags[flags.index("--expert") + 1] == asked
            assert flags[flags.index("--expert-tokens") + 1] == "300"
            assert parse_comparison(DistillSettings, flags[1:], "distill").steps == 1000
        elif flags[0] == "suite":
            trained = [str(tmp_path / f"eapo-{arm}-{run.seed}") for arm in run.what.needs]
            places = [flag.partition("=")[2] for flag in flags if flag.partition("=")[0] in arms]
            assert [place.removesuffix("/final/policy") for place in places] == trained
        else:
            trained = tuple(str(tmp_path / f"{needed.name}") for needed in run.needed())
            places = [i for i, flag in enumerate(flags[:-2]) if flag.startswith(f"{tmp_path}/")]
            assert {flags[i].partition("/final")[0] for i in places} == {*trained}
            for i in places:
                flags[i] = "tiny:small"
            assert parse_comparison(CoreaComparison, flags[1:], "corea").seed == run.seed


def test_each_stage_of_the_pipeline_goes_on_from_the_one_before(tmp_path: Path) -> None:
    runs = [run for run in contests.planned() if (run.contest, run.seed) == ("together", 30)]
    assert sum("--tokens" in run.what.flags for run in runs) == 6
    done: set[str] = set()
    for run in runs:
        assert {needed.arm for needed in run.needed()} <= done
        done.add(run.arm)
    (last,) = (run for run in runs if run.arm == "of-pipeline")
    flags = list(last.job(tmp_path).arguments)
    assert flags[flags.index("--corea") + 1] == f"{tmp_path}/together-calibrated-30/final/small"
    assert flags[flags.index("--large") + 1] == f"{tmp_path}/together-taught-30/final/bob"


def test_what_is_stored_belongs_to_the_protocol() -> None:
    stored, planned = contests.stored(), {*contests.planned()}
    assert planned >= stored.keys()
    page = tables.PAGE.read_text(encoding="utf-8")
    assert ("Every run" in page) == (planned == stored.keys())


def test_what_another_process_is_at_is_left_to_it(tmp_path: Path) -> None:
    with evidence_runs.locked("a", tmp_path) as ours, evidence_runs.locked("a", tmp_path) as second:
        assert (ours, second) == (True, False)
    with evidence_runs.locked("a", tmp_path, wait=True) as again:
        assert again


def test_random_deferral_at_equal_accuracy_by_hand() -> None:
    """From .5 for 10 to .9 for 110, where the large model alone costs 100: .8 is three quarters of
    the way, 85; at .5 and below nothing is deferred."""
    systems = {
        "never": {"accuracy": 0.5, "cost": 10},
        "always": {"accuracy": 0.9, "cost": 110},
        "llm": {"accuracy": 0.9, "cost": 100},
    }
    assert tables.random_saving(systems, 0.1) == pytest.approx(0.15)
    assert tables.random_saving(systems, 0.5) == pytest.approx(0.9)
    worse = {**systems, "always": {"accuracy": 0.4, "cost": 110}}
    assert tables.random_saving(worse, 0.1) is None


def taught(right: int) -> dict[str, Any]:
    """One role with so many of four answers right, in four problems of three answers."""
    return {
        "before": {"dora": [6, 12]},
        "after": {"dora": [right, 12]},
        "right": {"dora": "".join(str(min(3, max(0, right - 3 * k))) for k in range(4))},
        "curve": {"dora": [0.5, 0.6]},
        "tokens": 100_000,
    }


def test_the_page_is_made_of_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "contests.md"
    page.write_text("a\n<!-- results -->\nold\n<!-- end of results -->\nb\n", encoding="utf-8")
    monkeypatch.setattr(tables, "PAGE", page)
    monkeypatch.setattr(tables, "draw", lambda *_: None)
    systems = {
        name: {
            **dict.fromkeys(tables._FIGURES, 0.5),
            **({f"saving@{x}": level for x in ("1%", "2%", "5%")} if level else {}),
            "cost": cost,
        }
        for name, level, cost in (
            ("rlvr-verb", 0.25, 50),
            ("corea", 0.5, 50),
            ("never", None, 20),
            ("always", None, 120),
            ("llm", None, 100),
        )
    }
    rows = {
        **{
            contests.Run("unequal", arm, seed): taught(right)
            for arm, right in (("plain", 6), ("distillation", 9))
            for seed in (30, 31)
        },
        **{contests.Run("corea", "knows-all", seed): {"after": systems} for seed in (30, 31)},
        contests.Run("eapo", "scored", 30): {
            "after": {
                **dict.fromkeys(("alone", *contests.EXPERTS), 0.25),
                **{f"imitated-{kind}": 0.75 for kind in (*contests.EXPERTS, "right")},
            }
        },
        contests.Run("eapo", "half", 30): {"after": {"expert_tokens": 250_000}},
    }
    missing = contests.Run("three", "plain", 34)
    monkeypatch.setattr(contests, "stored", lambda: rows)
    monkeypatch.setattr(tables, "stored", lambda: rows)
    monkeypatch.setattr(contests, "planned", lambda: [*rows, missing])
    tables.write()
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert "### Unequal roles (2 of 5 seeds)" in text
    assert "| dora | .500 | **.500** (.500 .500) | **.750** (.750 .750) | +.250 [+.250" in text
    assert "| RLVR-Verb | .250 ± .000 | .250 ± .000 | .250 ± .000 | +.250 [+.250, +.250] |" in text
    assert "### Consultation beside imitation (1 of 5 seeds)" in text
    assert "| half | .25 | **.250** (.250) | **.750** (.750) | −.500 |" in text
    assert "| half, right solutions alone | .25 |  | **.750** (.750) | −.500 |" in text
    assert "- three-plain-34" in text
    assert text.endswith("<!-- end of results -->\nb\n")
