"""The fourth protocol of the evidence: which runs there are, and what the screen decides."""

from pathlib import Path
from typing import Any

import pytest

from coterie.cli.command_line import parse
from coterie.evaluation.compare.inherited import parse as parse_comparison
from coterie.extras.papers.distill import DistillSettings
from evidence import consulting, contests
from evidence import consulting_tables as tables
from evidence.consulting import FORMS, SCREEN, Run


def screened(first: float, second: float) -> dict[Run, dict[str, Any]]:
    after = {"lone": 0.1, **dict(zip(FORMS, (first, second)))}
    return {Run("consult", "scored-screen", seed): {"after": after} for seed in SCREEN}


def test_the_screen_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert consulting.chosen({}) is None
    # Less than .02 apart: the first form.
    assert consulting.chosen(screened(0.50, 0.515)) == "reread"
    assert consulting.chosen(screened(0.50, 0.53)) == "reread-long"
    monkeypatch.setattr(consulting, "stored", dict)
    assert {run.seed for run in consulting.planned()} == {*SCREEN}
    monkeypatch.setattr(consulting, "stored", lambda: screened(0.5, 0.6))
    runs = list(consulting.planned())
    assert len({run.name for run in runs}) == len(runs) == 2 * 4 + 10 * 6
    assert Run("consult", "imitated-reread-long", 49) in runs


@pytest.mark.parametrize("form", FORMS)
def test_every_command_is_one(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contests, "expert_tokens", lambda folder: 300)
    monkeypatch.setattr(consulting, "stored", lambda: screened(*((1, 0), (0, 1))[form != "reread"]))
    done: set[str] = set()
    for run in (run for run in consulting.planned() if run.seed == 40):
        assert {other.arm for other in run.needed()} <= done
        done.add(run.arm)
        job = run.job(tmp_path)
        flags = list(job.arguments)
        if job.program == "train":
            settings: Any = parse(flags)
            assert settings.run.tokens == 1_200_000
            # Eight policy traces a problem in every arm.
            assert settings.env.group_size * (1 + settings.env.lone) == 8
            assert (settings.algo.distillation.beta > 0) == (run.arm in FORMS)
            assert (settings.env.reread != "none") == (run.arm in FORMS)
        elif flags[0] == "distill":
            assert flags[flags.index("--expert-tokens") + 1] == "300"
            assert parse_comparison(DistillSettings, flags[1:], "distill").steps == 1000
    assert f"scored-{form}" in done


def test_scores_are_those_of_the_policies_that_were_asked() -> None:
    sets = {"rows": {"alone": 0.1, "reread": 0.5, "vote": 0.6}}
    chains = parse(contests.EAPO).problems.train
    results = {"suites": {"eapo": {"sets": {chains: sets}}}}
    assert contests.scores(("alone", "reread"), Path(), results) == {
        "after": {"alone": 0.1, "reread": 0.5}
    }


def test_the_table_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seeds, differences .5 and .7: mean .6 ± 12.706 × .1."""
    arms = ("alone", "consulted", "lone", "reread-long", "imitated-reread-long")
    done: dict[Run, Any] = screened(0.5, 0.6)
    for seed, last in ((40, 0.6), (41, 0.8)):
        for arm in arms:
            after = {"steps": 100, "expert_tokens": 2000}
            done[Run("consult", arm, seed)] = {"after": after, "cpu_s": 9.0, "commit": "abcdefgh"}
        scores = dict.fromkeys(arms, 0.1) | {"reread-long": last}
        done[Run("consult", "scored-reread-long", seed)] = {"after": scores}
    page, drawn = tmp_path / "page.md", {}
    page.write_text("<!-- results -->\n<!-- end of results -->\n", encoding="utf-8")
    monkeypatch.setattr(consulting, "stored", lambda: done)
    monkeypatch.setattr(tables, "PAGE", page)
    monkeypatch.setattr(tables, "draw", lambda values, name, label: drawn.update(values))
    tables.write()
    written = page.read_text(encoding="utf-8")
    costs = "100 | 2 | 9 | abcdefg |"
    assert f"| alone | **.100** (.100 .100) | +.600 [−.671, +1.871] | {costs}" in written
    assert f"| reread-long | **.700** (.600 .800) |  | {costs}" in written
    assert "Lower end of reread-long − alone: -0.671; asked: above .10." in written
    assert "- consult-alone-42" in written
    assert drawn["− alone"] == pytest.approx([0.5, 0.7])
