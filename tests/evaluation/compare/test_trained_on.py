"""A comparison says when it asks what a run trained on."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark
from coterie.agents.models.locate import TINY
from coterie.cli.command_line import parse
from coterie.evaluation.compare.jobs import open_questions
from coterie.evaluation.compare.policies import find_policy
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.evaluation.compare.trained_on import trained_on


@pytest.fixture
def sums(tmp_path: Path) -> str:
    path = tmp_path / "sums.jsonl"
    lines = [{"question": f"{n} + {n} =", "answer": str(2 * n)} for n in range(1, 51)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.fixture
def trained(tmp_path: Path, sums: str) -> Any:
    """The folder of a run that has ended; it holds out ten problems of fifty."""

    def run(*flags: str, train: str = sums, steps: int = 4) -> str:
        path = tmp_path / "run"
        size = ("--steps", str(steps), "--rollout.problems-per-step", "10")
        source = ("--problems.train", train, "--problems.held-out", "10")
        settings = parse(["--env", "corea-deferral", *source, *size, *flags])
        shutil.copytree(TINY / "small", path / "final" / "small")
        (path / "config.json").write_text(json.dumps(settings.plain()))
        return str(path)

    return run


def said(run: str, sums: str, seed: int, questions: int = 10, role: str = "small") -> list[str]:
    scored = open_questions([sums], ComparisonSettings(questions=questions, seed=seed))
    return list(trained_on([find_policy("it", run, role)], scored, seed))


def test_what_a_run_held_out_is_asked_without_a_word(trained: Any, sums: str) -> None:
    run = trained("--seed", "1")
    assert said(run, sums, seed=1) == []
    assert said(run, sums, seed=1, questions=4) == []
    # Forty of fifty were trained on: of the ten of another seed at least one.
    (sentence,) = said(run, sums, seed=0)
    count = int(sentence.split(" trained on ")[1].split()[0])
    asked, held_out = (
        {p.id for p in open_questions([sums], ComparisonSettings(questions=10, seed=s))[0].problems}
        for s in (0, 1)
    )
    assert count == len(asked - held_out) > 0
    assert sentence.endswith(f"of 10 questions of {sums}: --seed 1, its own, asks what it held out")


@pytest.mark.parametrize("steps", [4, 2])
def test_only_what_the_steps_have_shown_counts(trained: Any, sums: str, steps: int) -> None:
    (sentence,) = said(trained(steps=steps), sums, seed=0, questions=50)
    assert f" trained on {10 * steps} of 50 questions of " in sentence
    assert sentence.endswith("ask fewer with --questions, or others with --problems")


@pytest.mark.parametrize("flag", ["--warmup.problems", "--agents.small.warmup"])
@pytest.mark.parametrize("generated", [True, False])
def test_what_a_run_imitated_in_its_warm_up_counts(
    trained: Any, sums: str, tmp_path: Path, flag: str, generated: bool
) -> None:
    worked = tmp_path / "worked.jsonl"
    lines = [
        {"question": f"{n} + 1 =", "answer": str(n + 1), "solution": f"Count on. Answer: {n + 1}"}
        for n in range(1, 51)
    ]
    # It states another answer, so that nobody imitates it.
    lines[0]["solution"] = "Answer: 7"
    worked.write_text("".join(json.dumps(line) + "\n" for line in lines))
    train = "recall?max_length=2&named=0" if generated else sums
    few = ("--warmup.steps", "4", "--warmup.problems-per-step", "3", flag, str(worked))
    run = trained(*few, train=train)
    (sentence,) = said(run, str(worked), seed=0, questions=50)
    assert f"{run} trained on 12 of 50 questions of {worked}: " in sentence


def test_generators_are_not_compared(trained: Any) -> None:
    run = trained("--seed", "1", train="recall?max_length=2&named=0")
    assert said(run, "recall?max_length=2&named=0", seed=0, questions=200) == []


def test_a_set_that_is_gone(trained: Any, sums: str, tmp_path: Path) -> None:
    run = trained()
    other = tmp_path / "other.jsonl"
    Path(sums).rename(other)
    (sentence,) = said(run, str(other), seed=0)
    assert sentence.startswith(f"whether {run} trained on these questions is not known: ")


def test_what_a_distillation_imitated_counts(sums: str, tmp_path: Path) -> None:
    out = tmp_path / "distilled"
    size = ("--steps", "2", "--problems-per-step", "10", "--solutions", "1", "--questions", "10")
    flags = ("--problems", sums, "--expert", "scripted:oracle", "--seed", "1", "--out", str(out))
    assert benchmark.main(["distill", *size, *flags]) == 0
    assert said(str(out), sums, seed=1, role="policy") == []
    (sentence,) = said(str(out), sums, seed=0, questions=50, role="policy")
    assert sentence.startswith(f"{out} trained on 20 of 50 questions of {sums}: --seed 1, its own")


@pytest.mark.parametrize("command", ["corea", "eapo", "suite"])
def test_all_comparisons_say_so(
    command: str, trained: Any, sums: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained("--seed", "1")
    flags = ["--problems", sums, "--questions", "10", "--samples", "1", "--resamples", "5"]
    flags += ["--out", str(tmp_path / "out")]
    flags += {
        "corea": ["--corea", run, "--systems", "l1", "--large", "scripted:oracle"],
        "eapo": ["--base", "scripted:oracle", "--no-workflow", "--no-noise", "--no-peers"],
        "suite": ["--suite", "corea", "--policies", f"it={run}"],
    }[command]
    flags += ["--others", f"it={run}"] if command == "eapo" else []
    assert benchmark.main([command, *flags]) == 0
    assert "--seed 1, its own, asks what it held out" in capsys.readouterr().out
