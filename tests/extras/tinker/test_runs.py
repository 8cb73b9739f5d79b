"""Whole runs on Hatchery: they resume, and faults of the server lose at most a step."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from coterie import train
from tests.extras.tinker import hatchery
from tests.extras.tinker.hatchery import Fault, Hatchery

pytestmark = [
    pytest.mark.skipif(not hatchery.available(), reason="not run: Hatchery is not installed"),
    # The official client leaves its connections open.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Play = Callable[..., tuple[int, str]]

NEWEST = ("--algo.distillation.decay", "0", "--algo.distillation.likeliest", "0")
SMALL = (
    *NEWEST,
    *("--problems.held-out", "2", "--rollout.problems-per-step", "2", "--learner.lr", "1e-2"),
)


@pytest.fixture
def play(server: Hatchery, capfd: pytest.CaptureFixture[str]) -> Play:
    def run(
        path: Path, *flags: str, env: str = "core-teaching", server: Hatchery = server
    ) -> tuple[int, str]:
        """(exit code, what was shown) of a new run, or of one that goes on."""
        begin = ("--env", env, "--algo", "gspo", "--engine", "tinker", "--run-dir", str(path))
        begin = (*begin, "--tinker.url", server.url, *(SMALL if env == "core-teaching" else ()))
        code = train.main((*(() if "--resume" in flags else begin), *flags))
        shown = capfd.readouterr()
        return code, " ".join((shown.out + shown.err).split())

    return run


def metrics(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def learned(path: Path, step: int) -> dict[str, Any]:
    state = json.loads((path / f"checkpoints/step-{step:06}/state.json").read_text())
    return state["learners"]


def test_a_run_resumes_from_named_states(play, server, tmp_path) -> None:
    run = tmp_path / "run"
    code, shown = play(run, "--steps", "2", "--tinker.prices", "1000,2000,3000")
    assert code == 0, shown
    packages = json.loads((run / "environment.json").read_text())["packages"]
    assert packages["tinker"] == version("tinker")
    first = learned(run, 2)
    assert first["alice"]["version"] == 2
    assert re.fullmatch(r"tinker://\w+/checkpoints/run-alice-2", first["alice"]["state"])
    spent = json.loads((run / "summary.json").read_text())["spent"]
    assert [row["role"] for row in spent] == ["alice", "bob"]
    assert float(spent[0]["cost"]) > 0
    assert json.loads((run / "final/alice/tinker.json").read_text())["rank"] == 16

    code, shown = play(run, "--resume", str(run), "--steps", "3")
    assert code == 0, shown
    second = learned(run, 3)
    assert second["alice"]["version"] == 3
    assert second["alice"]["tokens"]["trained"] > first["alice"]["tokens"]["trained"]
    assert [line["step"] for line in metrics(run)] == [1, 2, 3]
    # The adapter before the third step was that after the second: the same rows have other scores
    # only by the third step's change.
    session = re.findall(r"tinker://(\w+)/", second["alice"]["state"])[0]
    earlier = re.findall(r"tinker://(\w+)/", first["alice"]["state"])[0]
    assert session != earlier
    moved = [
        float((now - before).detach().abs().max())
        for now, before in zip(
            server.adapter(session).values(), server.adapter(earlier).values(), strict=True
        )
    ]
    assert 0 < max(moved) < 0.05  # one step at 1e-2


@pytest.mark.parametrize(
    ("env", "flags"),
    [
        ("corea-deferral", "--agents.small.model tiny:alice --agents.large.model tiny:bob"),
        (
            "eapo-consultation",
            "--agents.policy.model tiny:alice --agents.expert.model tiny:bob " + " ".join(NEWEST),
        ),
        ("solo", "--agents.solver.model tiny:alice --problems.train chains"),
        (
            "pettingzoo:classic/tictactoe_v3",
            "--agents.player_1.model tiny:alice --agents.player_2.model tiny:bob "
            "--rollout.learner-temperature 1",
        ),
    ],
    ids=["corea", "eapo", "solo", "game"],
)
def test_other_environments(env, flags, play, tmp_path) -> None:
    if env.startswith("pettingzoo"):
        pytest.importorskip("pygame")
    small = ("--steps", "1", "--rollout.problems-per-step", "2", "--eval.no-enabled")
    code, shown = play(tmp_path / "run", *small, *flags.split(), env=env)
    assert code == 0, shown
    assert len(metrics(tmp_path / "run")) == 1


def test_a_server_without_scores_of_prompts_is_refused(play, server, tmp_path) -> None:
    def without(answer: Any) -> Any:
        return {**answer, "prompt_logprobs": None}

    server.faults.append(Fault("retrieve_future", 99, change=without))
    code, shown = play(tmp_path / "run", "--steps", "1", "--algo.kl-coefficient", "0.1")
    assert code == 2
    assert "--algo.kl-coefficient needs log-probabilities of prompts: the server at" in shown
    assert not (tmp_path / "run").exists()


PROGRAM = """
import httpx2


async def run(endpoints, problem):
    headers = {"authorization": f"Bearer {endpoints.api_key}"}
    async with httpx2.AsyncClient(base_url=endpoints.base_url, headers=headers) as client:
        message = {"role": "user", "content": f"Question: {problem.question}\\nAnswer:"}
        body = {"model": "alice", "messages": [message], "stop": ["="]}
        reply = await client.post("/chat/completions", json=body)
        return reply.json()["choices"][0]["message"]["content"]
"""


def test_a_program_behind_the_gateway(play, tmp_path, monkeypatch) -> None:
    (tmp_path / "a_program_of_tinker.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    run = tmp_path / "run"
    code, shown = play(
        run,
        *("--roles", "alice", "--env.max-new-tokens", "16", "--steps", "1"),
        *("--rollout.problems-per-step", "2", "--eval.no-enabled"),
        env="harness:a_program_of_tinker:run",
    )
    assert code == 0, shown
    (episode, *_) = (json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines())
    (row, *_) = episode["trajectories"]
    assert row["finish"] in (["stop"], ["eos"])


def test_the_next_step_is_sampled_meanwhile(play, tmp_path) -> None:
    run = tmp_path / "run"
    code, shown = play(run, "--steps", "3", "--rollout.overlap", "--eval.no-enabled")
    assert code == 0, shown
    assert [line["learner/alice/staleness"] for line in metrics(run)] == [0, 1, 1]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("asample", 2, 429),
        Fault("asample", 2, 503),
        Fault("retrieve_future", 3, 500),
        Fault("forward_backward", 1, 502),
        Fault("optim_step", 1, 500),
        Fault("forward", 1, 429),
    ],
    ids=lambda fault: f"{fault.path}-{fault.status}",
)
def test_a_request_is_repeated(fault, play, server, tmp_path) -> None:
    server.faults.append(fault)
    code, shown = play(tmp_path / "run", "--steps", "1", "--eval.no-enabled")
    assert code == 0, shown
    assert fault.met
    assert not fault.times
    assert len(metrics(tmp_path / "run")) == 1


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (Fault("forward_backward", 99, 500), "did not train rows of"),
        (Fault("asample", 999, hang_s=60), "did not sample for"),
        (Fault("forward", 1, 404), "has lost what it needs to score rows of"),
    ],
    ids=["fails", "hangs", "lost"],
)
def test_a_server_that_stays_away_leaves_a_saved_state(
    fault, sentence, play, server, tmp_path
) -> None:
    run = tmp_path / "run"
    code, shown = play(run, "--steps", "1", "--eval.no-enabled")
    assert code == 0, shown
    server.faults.append(fault)
    code, shown = play(run, "--resume", str(run), "--steps", "2", "--tinker.limit-s", "10")
    assert code == 2
    assert sentence in shown
    assert f"--resume {run} continues from its last checkpoint" in shown
    server.faults.clear()
    code, shown = play(run, "--resume", str(run), "--steps", "2", "--tinker.limit-s", "60")
    assert code == 0, shown
    assert [line["step"] for line in metrics(run)] == [1, 2]


def test_a_killed_command_resumes(server, play, tmp_path) -> None:
    run = tmp_path / "run"
    begin = ["--env", "core-teaching", "--algo", "gspo", "--engine", "tinker", *SMALL]
    begin += ["--tinker.url", server.url, "--run-dir", str(run), "--steps", "90"]
    words = [sys.executable, "-m", "coterie.train", *begin, "--eval.no-enabled"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as command:
        while command.poll() is None and not (run / "checkpoints/step-000002").is_dir():
            time.sleep(0.1)
        assert command.poll() is None
        command.send_signal(signal.SIGKILL)
    done = max(int(path.name[5:]) for path in (run / "checkpoints").glob("step-*"))
    assert 2 <= done < 90
    code, shown = play(run, "--resume", str(run), "--steps", str(done + 1))
    assert code == 0, shown
    assert [line["step"] for line in metrics(run)] == list(range(1, done + 2))
    assert learned(run, done + 1)["bob"]["version"] == done + 1


def test_a_server_that_starts_again_has_its_states(play, server, tmp_path) -> None:
    run = tmp_path / "run"
    first = Hatchery(server.models, tmp_path / "server").start()
    url = ("--tinker.url", first.url)
    try:
        code, shown = play(run, "--steps", "2", "--eval.no-enabled", server=first)
        assert code == 0, shown
    finally:
        first.stop()
    code, shown = play(run, "--resume", str(run), "--steps", "3")
    assert code == 2
    assert "no server answers" in shown
    again = Hatchery(server.models, tmp_path / "server").start(int(first.url.rpartition(":")[2]))
    try:
        code, shown = play(run, "--resume", str(run), "--steps", "3", *url)
    finally:
        again.stop()
    assert code == 0, shown
    assert learned(run, 3)["alice"]["version"] == 3


def test_a_server_that_has_forgotten_its_states_is_named(play, server, tmp_path) -> None:
    run = tmp_path / "run"
    code, shown = play(run, "--steps", "1", "--eval.no-enabled")
    assert code == 0, shown
    other = Hatchery(server.models).start()
    try:
        code, shown = play(run, "--resume", str(run), "--steps", "2", "--tinker.url", other.url)
    finally:
        other.stop()
    assert code == 2
    assert "cannot be resumed here: its weights are the state tinker://" in shown
    assert "start the server with its stored states, or begin a new run" in shown


def test_a_server_that_is_slow_to_load_has_not_forgotten(play, server, tmp_path) -> None:
    run = tmp_path / "run"
    code, shown = play(run, "--steps", "1", "--eval.no-enabled")
    assert code == 0, shown
    server.faults.append(Fault("load_weights", 99, 503))
    code, shown = play(run, "--resume", str(run), "--steps", "2", "--tinker.limit-s", "3")
    assert code == 2
    assert "did not load the state of alice, nor answer anything else, within 3 s" in shown
    assert "nothing is lost: give the same command again" in shown
    assert "new run" not in shown
