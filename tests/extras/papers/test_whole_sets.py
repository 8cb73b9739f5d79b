"""Whole test sets, several sets pooled, fitting on others, and AvgProb at any temperature."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from coterie import benchmark
from coterie.evaluation.compare.jobs import further_questions, open_questions
from coterie.evaluation.compare.policies import find_policy
from coterie.evaluation.compare.responses import responses
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.extras.papers.probe import mean_probabilities
from coterie.problems.canonical import problem_key

EAPO = ("eapo", "--no-peers", "--no-noise", "--samples", "2", "--replies", "4")
COREA = ("corea", "--rlvr", "tiny:small", "--samples", "1", "--router-epochs", "1")


def write(path: Path, count: int, first: int = 1) -> str:
    lines = [
        {"question": f"{n} + {n} =", "answer": str(2 * n)} for n in range(first, first + count)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def command(*flags: str, code: int = 0, out: str = "out") -> Any:
        flags = (*flags, "--resamples", "20", "--out", str(tmp_path / out))
        assert benchmark.main([*flags]) == code
        path = tmp_path / out / "results.json"
        return json.loads(path.read_text()) if path.is_file() else None

    return command


def test_a_whole_set_is_scored(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "five.jsonl", 5)
    assert run(*EAPO, "--problems", path, "--questions", "5")["questions"] == 5
    # It has no more.
    assert run(*EAPO, "--problems", path, "--questions", "99", out="more")["questions"] == 5
    results = run("corea", "--systems", "slm", "--problems", path, "--samples", "1", out="corea")
    assert list(results["systems"]) == ["slm"]
    stored = (tmp_path / "corea").glob("responses/*/base-*.jsonl")
    assert [len(path_of_file.read_text().splitlines()) for path_of_file in stored] == [1 + 5]


def test_several_sets_are_pooled_with_a_row_for_each(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = write(tmp_path / "few.jsonl", 2), write(tmp_path / "many.jsonl", 4, first=9)
    results = run(*EAPO, "--problems", few, many)
    assert results["questions"] == 6
    assert [results["sets"][name]["questions"] for name in (few, many)] == [2, 4]
    for name in ("base", "workflow"):
        parts = [results["sets"][path]["systems"][name]["avg@n"]["value"] for path in (few, many)]
        assert results["systems"][name]["avg@n"]["value"] == pytest.approx(
            (2 * parts[0] + 4 * parts[1]) / 6, abs=1e-6
        )
    shown = capsys.readouterr().out
    assert "6 questions" in shown
    assert "few.jsonl" in shown.replace("\n", "")
    said: list[str] = []
    original = Axes.legend
    monkeypatch.setattr(
        Axes, "legend", lambda *a, **more: (said.append(more["title"]), original(*a, **more))
    )
    results = run(
        *("corea", "--corea", "tiny:small", "--problems", "recall", "recall?named=0.8"),
        *("--questions", "12", "--samples", "1"),
        out="corea",
    )
    sets = results["sets"]
    assert list(sets) == ["recall", "recall?named=0.8"]
    for name in ("slm", "llm", "corea"):
        parts = [systems[name]["accuracy"]["value"] for systems in sets.values()]
        assert results["systems"][name]["accuracy"]["value"] == pytest.approx(
            sum(parts) / 2, abs=1e-6
        )
    # Curves of all questions, which the pictures say, and of each set.
    assert said == ["all questions of 2 sets"] * 2
    assert list(results["curves of sets"]) == list(sets)
    for name, curves in results["curves of sets"].items():
        # Above all thresholds the large model answers.
        assert curves["corea"]["accuracy"][-1] == sets[name]["llm"]["accuracy"]["value"]
    assert run(*EAPO, "--problems", few, few, code=2, out="twice") is None
    assert "names the same problems twice" in capsys.readouterr().err


def test_probe_and_router_are_fitted_on_other_problems(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = write(tmp_path / "test.jsonl", 6), write(tmp_path / "train.jsonl", 30)
    # Nothing, or one question, is left of the set: the rows are left out, and that is said.
    for scored, out in (("6", "none"), ("5", "one")):
        results = run(*COREA, "--problems", path, "--questions", scored, out=out)
        assert not {"rlvr-probe", "router"} & set(results["systems"])
        assert "no rows of probe and router" in capsys.readouterr().out
    run(*COREA, "--problems", path, "--systems", "router", code=2, out="refused")
    assert "name some with --fit-problems" in capsys.readouterr().err
    results = run(
        *(*COREA, "--problems", path, "--systems", "router", "rlvr-probe", "rlvr"),
        *("--fit-problems", other, "--fit-questions", "20"),
        out="fitted",
    )
    assert set(results["systems"]) == {"rlvr", "rlvr-probe", "router"}
    run("corea", "--systems", "slm", "--fit-problems", other, code=2, out="useless")
    assert "--fit-problems: no row is fitted here" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["file", "", "generator"])
def test_no_scored_question_is_fitted_on(tmp_path: Path, source: str) -> None:
    settings = ComparisonSettings(questions=6)
    path, other = write(tmp_path / "a.jsonl", 12), write(tmp_path / "b.jsonl", 30, first=3)
    scored = open_questions([path, "recall"] if source == "generator" else [path], settings)
    fitted = further_questions(scored, other if source == "file" else "", 10, settings)
    assert fitted is not None
    taken = {problem_key(problem) for questions in scored for problem in questions.problems}
    keys = [problem_key(problem) for problem in fitted.problems]
    assert not taken & set(keys)
    assert len(set(keys)) == len(keys) == {"file": 10, "": 6, "generator": 10}[source]
    assert further_questions(open_questions([path], ComparisonSettings()), "", 10, settings) is None


def test_questions_to_fit_on_have_ids_of_their_own(tmp_path: Path) -> None:
    """Two files of one name call their problems alike; each question keeps its own response."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    sets = [
        write(tmp_path / name / "test.jsonl", 12, first)
        for name, first in (("one", 1), ("other", 101))
    ]
    settings = ComparisonSettings(questions=6)
    fitted = further_questions(open_questions(sets, settings), "", 12, settings)
    assert fitted is not None
    ids = [problem.id for problem in fitted.problems]
    assert len(set(ids)) == len(ids) == 12
    assert {id.partition("/")[0] for id in ids} == {"one-test", "other-test"}
    # Those of one set keep theirs.
    alone = further_questions(open_questions(sets[:1], settings), "", 6, settings)
    assert alone is not None
    assert not [problem.id for problem in alone.problems if "/" in problem.id]


@pytest.mark.parametrize("turns", ["one turn", "confidence in a turn of its own"])
def test_probabilities_are_the_learners_at_temperature_1(
    run: Any, tmp_path: Path, turns: str
) -> None:
    flags = ("--rlvr", "tiny:small", "--corea", "tiny:small", "--questions", "8")
    rows = ("--systems", "rlvr-avgprob", "corea-ties", "--samples", "2")
    if turns != "one turn":
        rows += ("--prefill-confidence",)
    problems = list(open_questions(["recall"], ComparisonSettings(questions=8))[0].problems)

    def probabilities(out: str) -> tuple[Any, Any]:
        """The sampler's own numbers, and those of the forward pass."""
        (path,) = (tmp_path / out / "responses").glob("*/rlvr-*.jsonl")
        stored = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        records = {(record["problem"], record["sample"]): record for record in stored}
        own = responses(records, problems, 2, ["rlvr"])
        again = mean_probabilities(find_policy("rlvr", "tiny:small"), own)
        return own.measured["probability"], again

    run("corea", *flags, *rows)
    sampled, again = probabilities("out")
    np.testing.assert_allclose(again, sampled, atol=1e-4)
    # At another temperature the sampler's are not those; the rows are there all the same.
    cold = run("corea", *flags, *rows, "--temperature", "0.3", out="cold")
    assert set(cold["systems"]) == {"rlvr-avgprob", "corea-ties"}
    sampled, learner = probabilities("cold")
    assert sampled.mean() > learner.mean() + 0.01


def test_rows_that_read_the_model_need_one(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    script = ("--rlvr", "scripted:oracle", "--questions", "4", "--samples", "2")
    script += ("--fit-questions", "8", "--router-epochs", "1")
    run("corea", *script, "--systems", "rlvr-avgprob", code=2)
    assert "reads the model's own states" in capsys.readouterr().err
    results = run("corea", *script)
    assert "rlvr-agreement" in results["systems"]
    assert not {"rlvr-avgprob", "rlvr-probe"} & set(results["systems"])


def test_distillation_keeps_a_small_test_split_whole_and_a_small_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        {"Body": f"Ann has {n} pens and buys one", "Question": "How many?", "Answer": n + 1.0}
        for n in range(10)
    ]
    text = "".join(json.dumps({**line, "Equation": "( 1.0 )"}) + "\n" for line in lines)
    (tmp_path / "svamp.jsonl").write_text(text)
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    short = ("--steps", "1", "--problems-per-step", "2", "--solutions", "1")
    distill = ("distill", *short, "--max-new-tokens", "4", "--questions", "9")
    # Two of ten are its test split; eight are left to train on.
    assert benchmark.main([*distill, "--problems", "svamp", "--out", str(tmp_path / "a")]) == 0
    path = write(tmp_path / "three.jsonl", 3)
    assert benchmark.main([*distill, "--problems", path, "--out", str(tmp_path / "b")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "3 different problems, so holding out 9" in said
    assert said.endswith("leaves none to train on; lower --questions")
