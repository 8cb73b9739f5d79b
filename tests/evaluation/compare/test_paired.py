"""Stored evaluations of several runs, paired by problem; the runs are written by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark
from coterie.cli.arguments import overlay


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def run(
        name: str,
        alice: list[int],
        bob: list[int],
        *,
        problems: list[str] | None = None,
        env: str = "core-teaching",
        which: str = "after",
        evaluated: str = "",
    ) -> str:
        path = tmp_path / name
        (path / "evaluation").mkdir(parents=True, exist_ok=True)
        choice = {"env": env, "roles": ["alice", "bob"]}
        (path / "config.json").write_text(json.dumps({"choice": choice}))
        if evaluated:
            digests = {"train": "0", "eval": evaluated}
            (path / "environment.json").write_text(json.dumps({"problems": digests}))
        outcomes = {
            "problems": problems or [f"p{place}" for place in range(len(alice))],
            "correct": {"alice": [[c] for c in alice], "bob": [[c] for c in bob]},
            "hints": [],
            "leaked": [],
        }
        (path / "evaluation" / f"{which}.json").write_text(json.dumps(outcomes))
        return str(path)

    return run


def compare(*flags: str, code: int = 0) -> None:
    assert benchmark.main(overlay(["compare", "--resamples", "500", *flags])) == code


def test_differences_pair_up(write: Any, tmp_path: Path, capsys: Any) -> None:
    # Alice is right on half of the problems in both; b's bob is right wherever a's is not.
    half = [1, 0] * 10
    runs = write("a", half, half), write("b", half, [1] * 20)
    out = tmp_path / "deep" / "compare.json"
    compare(*runs, "--out", str(out))
    differences = json.loads(out.read_text())["differences"]["b - a"]
    # The same answers: no difference on any resample, where unpaired ones would spread by .3.
    assert differences["pass@1/alice"] == {"value": 0.0, "interval": [0.0, 0.0], "verdict": ""}
    assert differences["pass@1/bob"]["value"] == 0.5
    assert differences["pass@1/bob"]["interval"][0] > 0.2
    assert differences["pass@1/bob"]["verdict"] == "better"
    assert differences["both_wrong@1"]["value"] == -0.5
    assert differences["both_wrong@1"]["verdict"] == "better"
    # Pass@2 needs a second sample.
    assert differences["pass@2/bob"]["value"] is None
    shown = capsys.readouterr().out
    assert "+.500" in shown
    assert max(map(len, shown.splitlines()[:-1])) <= 100


def test_few_problems_have_no_marks(write: Any, tmp_path: Path, capsys: Any) -> None:
    runs = write("a", [1] * 15, [0] * 15), write("b", [0] * 15, [0] * 15)
    compare(*runs, "--out", str(tmp_path / "x.json"))
    differences = json.loads((tmp_path / "x.json").read_text())["differences"]["b - a"]
    assert (differences["pass@1/alice"]["value"], differences["pass@1/alice"]["verdict"]) == (
        -1,
        "",
    )
    assert "* marks differences of 16 problems or more; here are 15" in capsys.readouterr().out


def test_several_runs_and_the_evaluation_before(write: Any, tmp_path: Path, capsys: Any) -> None:
    names = [write(f"{n}/x", [1, 0] * 8, [0, 1] * 8) for n in "abcd"]
    compare(*names)
    # Four runs: three tables, the first run in each; directories that end alike keep their parents.
    assert capsys.readouterr().out.count("a/x") == 3
    compare(*names[:3])
    assert capsys.readouterr().out.count("difference") == 2
    compare(*names[:2], "--evaluation", "before", code=2)
    assert "has no evaluation before training" in capsys.readouterr().err
    for name in "ab":
        write(f"{name}/x", [1] * 16, [1] * 16, which="before")
    compare(*names[:2], "--evaluation", "before")
    assert "1.000" in capsys.readouterr().out


def test_problems_that_are_just_called_alike_are_no_pairs(write: Any, capsys: Any) -> None:
    """``test:0`` of two files; a run without fingerprints is taken as it is."""
    a, b, c = (
        write(name, [1, 0], [0, 1], problems=["test:0", "test:1"], evaluated=digest)
        for name, digest in (("a", "1"), ("b", "2"), ("c", ""))
    )
    compare(a, b, code=2)
    assert "a and b were evaluated on different problems" in capsys.readouterr().err
    compare(a, c)
    compare(a, write("d", [1, 0], [0, 1], problems=["test:0", "test:1"], evaluated="1"))


def test_mistakes(write: Any, tmp_path: Path, capsys: Any) -> None:
    a = write("a", [1, 0], [0, 1])
    broken = write("broken", [1, 0], [0, 1])
    (Path(broken) / "evaluation" / "after.json").write_text("<html>")
    hollow = write("hollow", [1, 0], [0, 1])
    (Path(hollow) / "evaluation" / "after.json").write_text('{"problems": ["p0", "p1"]}')
    # It had ended after two steps, and has logged three; what was before them still holds.
    goes_on = write("old", [1, 0], [0, 1])
    (Path(goes_on) / "summary.json").write_text('{"steps": 2}')
    (Path(goes_on) / "metrics.jsonl").write_text('{"step": 2}\n{"step": 3}\n')
    for flags, sentence in [
        ([a, goes_on], f"{goes_on} was resumed with more steps"),
        ([a], "name two runs at least"),
        ([a, a], "a run is named twice"),
        ([a, str(tmp_path)], "is not a run"),
        ([a, write("b", [1, 0], [0, 1], problems=["p0", "p9"])], "different problems"),
        ([a, write("c", [1, 0], [0, 1], env="corea-deferral")], "have different env"),
        ([a, broken], "cannot be read as an evaluation"),
        ([a, hollow], "does not hold what core-teaching measures"),
        ([a, hollow, "--resamples", "0"], "--resamples is 0; it must be 1 to"),
    ]:
        compare(*flags, code=2)
        assert sentence in capsys.readouterr().err
    for name in ("a", "old"):
        write(name, [1, 0], [0, 1], which="before")
    compare(a, goes_on, "--evaluation", "before")
