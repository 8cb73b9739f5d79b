"""Runs on several sources, in an order by what they have measured."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.command_line import parse
from coterie.problems.prepare import prepare
from coterie.train import main
from coterie.training.config.preflight import preflight
from coterie.training.config.train_settings import restore

from .cut_runs import cut_run

OVERLAP = ("--engine", "vllm", "--rollout.overlap")


@pytest.fixture
def sums(tmp_path: Path) -> tuple[str, str]:
    """Two files of the same name with ten and five sums."""
    paths = []
    for folder, count in (("easy", 10), ("hard", 5)):
        (tmp_path / folder).mkdir()
        sign = "+-"[folder == "hard"]
        rows = [{"question": f"{n} {sign} 0 {sign} 0 =", "answer": str(n)} for n in range(count)]
        path = tmp_path / folder / "sums.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        paths.append(str(path))
    return paths[0], paths[1]


def flags(sums: tuple[str, str], run: Path, *more: str) -> list[str]:
    words = ["--env", "solo", "--env.max-new-tokens", "32", "--run-dir", str(run)]
    words += ["--problems.train", f"{sums[0]}=2", f"{sums[1]}=1", "--problems.held-out", "2"]
    words += ["--steps", "5", "--rollout.problems-per-step", "4", "--rollout.replicas", "2"]
    words += ["--checkpoint-every", "2", "--eval.resamples", "10", "--threads", "1"]
    words += ["--keep-checkpoints", "3"]
    return [*words, "--eval.every", "3", *more]


def problems(run: Path) -> list[str]:
    lines = (run / "episodes.jsonl").read_text().splitlines()
    return [json.loads(line)["problem"] for line in lines]


@pytest.mark.parametrize("more", [(), OVERLAP], ids=["plain", "overlap"])
def test_a_resumed_run_continues_in_the_same_order(
    tmp_path: Path, sums: tuple[str, str], file_engine: Any, more: tuple[str, ...]
) -> None:
    whole = tmp_path / "whole"
    # An epoch has 8 + 3 problems, so that step 3 begins the second one.
    assert main(flags(sums, whole, "--problems.order", "adaptive", *more)) == 0
    state = json.loads((whole / "checkpoints/step-000002/state.json").read_text())
    # Step 3 is not drawn yet, even if it is played ahead.
    assert state["cursor"] == len(state["difficulty"]["newer"]) == 8
    assert state["difficulty"]["fixed"] == {}
    state = json.loads((whole / "checkpoints/step-000004/state.json").read_text())
    assert len(state["difficulty"]["fixed"]) == 8
    # As a kill in step 4 leaves it.
    broken = cut_run(whole, tmp_path / "broken", after=3)
    assert main(["--resume", str(broken)]) == 0
    assert problems(broken) == problems(whole)
    if more:
        return  # the step after a resume is sampled with newer weights
    assert (broken / "episodes.jsonl").read_bytes() == (whole / "episodes.jsonl").read_bytes()
    after = [json.loads((run / "summary.json").read_text())["after"] for run in (whole, broken)]
    assert after[0] == after[1]
    assert {"pass@1", "sets/easy-sums/pass@1", "sets/hard-sums/pass@1"} <= after[0].keys()
    between = json.loads((whole / "evaluations.jsonl").read_text())
    assert "eval/sets/hard-sums/pass@1" in between


def test_a_text_and_a_list_of_one_are_the_same_run(sums: tuple[str, str], tmp_path: Path) -> None:
    plain = parse(["--env", "solo", "--problems.train", sums[0]]).plain()
    assert plain["problems"]["train"] == sums[0]
    del plain["problems"]["order"]  # as older runs wrote it
    assert restore(plain).problems.sources == (sums[0],)
    plain["problems"]["train"] = [sums[0]]
    assert restore(plain).problems.sources == (sums[0],)
    file = tmp_path / "run.toml"
    file.write_text(f'[problems]\ntrain = ["{sums[0]}=3", "{sums[1]}=1"]\norder = "easy-first"\n')
    problems = parse(["--env", "solo", "--config", str(file)]).problems
    assert (problems.weights, problems.order) == ((3.0, 1.0), "easy-first")


def test_a_warm_up_imitates_all_sources_by_weight() -> None:
    sources = ("chains?mix=1,0,0=3", "chains?mix=0,1,0=1")
    words = ["--problems.train", *sources, "--problems.held-out", "2", "--warmup.steps", "1"]
    problems = preflight(parse([*words, "--problems.epoch-size", "8"]))
    families = [problem.meta["family"] for problem in problems.worked["alice"].take(2048)]
    assert (families.count("P"), families.count("T")) == (1536, 512)
    epoch = [problem.meta["family"] for problem in problems.train.take(8)]
    assert (epoch.count("P"), epoch.count("T")) == (6, 2)


def test_the_number_of_evaluation_problems_is_planned_for_every_source() -> None:
    settings = parse(["--problems.train", "chains", "recall", "--problems.held-out", "3"])
    assert settings.problems.evaluated == ("chains", "recall")
    assert len(prepare(settings.problems).evaluation) == 6
