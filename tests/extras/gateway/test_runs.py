"""Whole runs whose roles a program plays: log, report, teams, cross-play, resume."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from coterie import __main__, benchmark
from coterie.train import main

PROGRAM = """
import itertools, json, urllib.request


def ask(endpoints, role, text):
    body = {"model": role, "messages": [{"role": "user", "content": text}], "max_tokens": 16,
            "temperature": 0.0}
    headers = {"Authorization": "Bearer " + endpoints.api_key}
    url, data = endpoints.base_url + "/chat/completions", json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


def run(endpoints, problem):
    question = f"Question: {problem.question}\\nLet's solve this step by step:"
    plan = ask(endpoints, "alice", question)
    return ask(endpoints, "bob", f"{question}\\n{plan}\\nAnswer:")


run.roles = ("alice", "bob")


def none(endpoints, problem):
    run(endpoints, problem)


def none_of_one(endpoints, problem):
    ask(endpoints, "alice", problem.question)


NUMBER = itertools.count(1)


def now_and_then(endpoints, problem):
    run(endpoints, problem)
    return {"alice": 0.5, "bob": float("nan") if next(NUMBER) in (3, 20) else 1.0}


def asks_bob(endpoints, problem):
    ask(endpoints, "bob", problem.question)
    return 1.0


def by_turn(endpoints, problem):
    answers = [run(endpoints, problem) for _ in range(2)]
    return {"alice": [len(answer) % 2 for answer in answers], "bob": [1.0, 0.5]}
"""
COMMAND = """
import os, types
from planner import run
endpoints = types.SimpleNamespace(
    base_url=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
print(run(endpoints, types.SimpleNamespace(question=os.environ["COTERIE_QUESTION"])))
"""
SMALL = (
    *("--rollout.problems-per-step", "2", "--rollout.replicas", "2", "--problems.held-out", "4"),
    *("--threads", "1", "--eval.resamples", "10", "--env.gather-s", "30"),
)
NAME = "harness:planner:run"
MEASURED = {"calls": 1, "rows": 1, "new": 1, "bridged_share": 0, "branch": 0, "rewritten": 0,
            "delivered_share": 1, "sampling_ignored": 1}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the program lies."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "planner.py").write_text(PROGRAM)
    (folder / "command.py").write_text(COMMAND)
    return folder


@pytest.fixture(autouse=True)
def found_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two steps."""
    run = tmp_path_factory.mktemp("run") / "trained"
    sys.path.insert(0, str(folder))
    try:
        assert main(["--env", NAME, "--steps", "2", *SMALL, "--run-dir", str(run)]) == 0
    finally:
        sys.path.remove(str(folder))
    return run


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_log_and_the_report_have_what_programs_did(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in lines(trained / "metrics.jsonl"):
        assert {name: step[f"measured/bob/{name}"] for name in MEASURED} == MEASURED
    episode, *_ = lines(trained / "episodes.jsonl")
    assert {row["agent"] for row in episode["trajectories"]} == {"alice_0", "bob_0"}
    assert episode["info"]["failed"] == 0
    assert __main__.main(["report", str(trained)]) == 0
    page = (trained / "report.html").read_text()
    assert "rewritten" in page
    assert '"parts":[["alice","new: 1"],["bob","new: 1"]]' in page
    capsys.readouterr()
    assert __main__.main(["check", NAME]) == 0
    assert "keeps the contract" in capsys.readouterr().out


def test_the_same_seed_is_the_same_run(trained: Path, tmp_path: Path) -> None:
    """However fast its programs are; and so is one that stopped on its way."""
    again = tmp_path / "again"
    assert main(["--env", NAME, "--steps", "1", *SMALL, "--run-dir", str(again)]) == 0
    assert main(["--resume", str(again), "--steps", "2"]) == 0
    assert_same(trained, again)


def assert_same(left: Path, right: Path) -> None:
    assert (left / "episodes.jsonl").read_bytes() == (right / "episodes.jsonl").read_bytes()
    for role in ("alice", "bob"):
        weights = [load_file(run / "final" / role / "model.safetensors") for run in (left, right)]
        assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])


@pytest.mark.parametrize(
    ("players", "table"),
    [
        (("--team", "alice={run}", "bob=tiny:bob"), "suites"),
        (("--cross-play", "ours={run}", "tiny:bob"), "cross-play"),
    ],
)
def test_whole_teams_and_pairings_play_it(
    trained: Path, tmp_path: Path, players: tuple[str, ...], table: str
) -> None:
    small = ["--suite", NAME, "--questions", "2", "--samples", "2", "--out", str(tmp_path / "out")]
    assert benchmark.main([*(word.format(run=trained) for word in players), *small]) == 0
    assert json.loads((tmp_path / "out" / "results.json").read_text())[table]


def test_a_program_pays_turn_by_turn(tmp_path: Path) -> None:
    flags = ["--env", "harness:planner:by_turn", "--roles", "alice", "bob", "--steps", "1", *SMALL]
    assert main([*flags, "--run-dir", str(tmp_path / "run")]) == 0
    for episode in lines(tmp_path / "run" / "episodes.jsonl"):
        for row in episode["trajectories"]:
            assert row["reward"] == sum(row["turn_rewards"])
            if row["agent"] == "bob_0":
                assert row["turn_rewards"] == [1.0, 0.5]


def test_a_command_trains_its_roles(folder: Path, tmp_path: Path) -> None:
    """As the function does: the same weights."""
    runs = {"command": f"command:{sys.executable} {folder / 'command.py'}", "function": NAME}
    for name, env in runs.items():
        flags = ["--env", env, "--roles", "alice", "bob", "--steps", "1", *SMALL]
        assert main([*flags, "--run-dir", str(tmp_path / name)]) == 0
    episodes = [lines(tmp_path / name / "episodes.jsonl") for name in runs]
    kept = ("tokens", "turns", "logprobs", "reward", "advantage", "status")
    left, right = (
        [{key: row[key] for key in kept} for episode in run for row in episode["trajectories"]]
        for run in episodes
    )
    assert left == right


def test_a_program_that_never_works_is_one_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = f"command:{sys.executable} {folder / 'nowhere.py'}"
    assert main(["--env", env, *SMALL, "--run-dir", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "the program ended with 2: " in said
    assert "before it asked anything; mend the program." in said
    assert said.count("\n") == 1
    assert __main__.main(["check", env]) == 2
    assert "before it asked anything" in capsys.readouterr().err


def test_a_reward_that_is_no_number_fails_its_episode_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    flags = ["--env", "harness:planner:now_and_then", "--roles", "alice", "bob", "--threads", "1"]
    flags += ["--rollout.problems-per-step", "4", "--rollout.replicas", "4", "--eval.no-enabled"]
    assert main([*flags, "--steps", "2", "--run-dir", str(run)]) == 0
    episodes = lines(run / "episodes.jsonl")
    failed = [episode for episode in episodes if episode["info"]["unpaid"]]
    assert (len(episodes), len(failed)) == (32, 2)
    for row in failed[0]["trajectories"]:
        assert "the reward of bob is nan, not a finite number" in row["status"]
        assert row["reward"] == 0.0


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ("command:true", "none of the 4 episodes of the first step asked a role that learns"),
        ("harness:planner:asks_bob", "asked a role that learns (alice)"),
    ],
)
def test_a_program_that_calls_no_trained_role_is_refused_in_one_sentence(
    env: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--env", env, "--roles", "alice", "bob", "--agents.bob.no-trained", *SMALL]
    assert main([*flags, "--run-dir", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_a_program_that_returns_nothing_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--env", "harness:planner:none", "--roles", "alice", "bob", *SMALL]
    assert main([*flags, "--run-dir", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "harness:planner:none gave None; it must give a text to grade" in said
    assert said.count("\n") == 1
    assert __main__.main(["check", "harness:planner:none_of_one"]) == 1
    assert "none_of_one gave None; it must give a text" in capsys.readouterr().err
