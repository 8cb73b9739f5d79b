"""Reward terms of one's own."""

import json
from pathlib import Path

import pytest

from coterie.train import main

MINE = """
def brevity(traces, problem):
    return [1 / (1 + len(trace.text.split())) for trace in traces]

def brief(traces, problem): return brevity(traces, problem)
def short(traces, problem): return [1.0]
def failing(traces, problem): return {}["x"]
def none(): return []
def by_index(traces, problem): return [trace.verdict.answer.strip() == "4" for trace in traces]
def rescue(traces, problem): return [0.0 for _ in traces]
NUMBER = 5
"""
SMALL = ("--steps", "1", "--rollout.problems-per-step", "2", "--eval.no-enabled")


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_terms.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_term_is_weighted_added_and_logged_and_its_name_alone_weighs_one(tmp_path: Path) -> None:
    run = tmp_path / "run"
    terms = ("my_terms:brevity=0.5", "my_terms:brief")
    assert main(["--env.terms", *terms, *SMALL, "--run-dir", str(run)]) == 0
    episodes = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    rows = [row for episode in episodes for row in episode["trajectories"]]
    assert rows
    for row in rows:
        words = len("".join(row["texts"][1:]).split())
        assert row["reward_terms"]["brevity"] == pytest.approx(0.5 / (1 + words))
        assert row["reward_terms"]["brief"] == pytest.approx(1 / (1 + words))
        assert row["reward"] == pytest.approx(sum(row["reward_terms"].values()))
    assert "reward/alice/brevity" in (run / "metrics.jsonl").read_text()


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        (["my_terms:brevity=much"], "write NAME=WEIGHT, such as mymodule:brevity=0.5"),
        (["my_terms:NUMBER"], "is a int; it must be a function"),
        (["my_terms:rescue"], "two terms have one name; rename yours"),
        (["my_terms:brevity", "my_terms:brevity=2"], "two terms have one name; rename yours"),
        (["my_terms:short"], "finite numbers, one for each trace"),
        (["my_terms:failing"], "raised KeyError: 'x'"),
        (["my_terms:none"], "raised TypeError: none() takes 0 positional arguments but 2 were"),
        (["my_terms:by_index"], "raised AttributeError: 'NoneType' object has no attribute"),
        (["nope"], "unknown reward term 'nope'; use pkg.module:NAME"),
    ],
)
def test_what_is_no_term(
    terms: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--env.terms", *terms, *SMALL, "--run-dir", str(tmp_path / "run"))
    assert main(flags) == 2
    assert not (tmp_path / "run").exists()
    assert sentence in capsys.readouterr().err.replace("\n", " ")
