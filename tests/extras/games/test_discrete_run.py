"""An environment of one's own with integer actions through every program that takes ``--env``."""

import json
from pathlib import Path

import pytest

from coterie import benchmark
from coterie.envs.check.__main__ import main as check
from coterie.train import main

MODULE = '''
from gymnasium import spaces
from pettingzoo import ParallelEnv

class Meet(ParallelEnv):
    """Two are paid 1 each where they choose the same of two places."""
    metadata = {"name": "meet_v0", "action_names": ["bridge", "tower"]}
    render_mode, possible_agents = None, ["ann", "ben"]
    observation_space = action_space = lambda self, agent: spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.agents = self.possible_agents[:]
        return dict.fromkeys(self.agents, 0), {"ann": {}, "ben": {}}

    def step(self, actions):
        agents, self.agents = self.agents, []
        pay = float(actions["ann"] == actions["ben"])
        ends, never = dict.fromkeys(agents, True), dict.fromkeys(agents, False)
        return dict.fromkeys(agents, 0), dict.fromkeys(agents, pay), ends, never, {}
'''
NAME = "discrete:meeting:Meet"


@pytest.fixture(autouse=True)
def meeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meeting.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "coterie.evaluation.compare.pictures.draw_rows", lambda rows, path, title: path
    )


def test_from_the_check_to_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert check([NAME, "--same-every-time"]) == 0
    assert "Its roles: ann, ben" in capsys.readouterr().out

    few = ("--problems.held-out", "4", "--eval.resamples", "10")
    step = ("--steps", "1", "--rollout.problems-per-step", "2", "--rollout.replicas", "4")
    assert main(["--env", NAME, *step, *few, "--seed", "1", "--run-dir", "run"]) == 0
    episode = json.loads(Path("run/episodes.jsonl").read_text().splitlines()[0])
    ann, ben = episode["trajectories"]
    assert ann["texts"][0] == ben["texts"][0] == "0\n0 bridge\n1 tower\nMoves: 0 1 ="
    assert {"measured/ann/illegal", "measured/ben/moves"} <= json.loads(
        Path("run/summary.json").read_text()
    )["after"].keys()

    assert main(["--evaluate", "run", *few]) == 0
    assert Path("run/evaluation/again.json").exists()

    teams = ("--teams", "ours=run", "anybody=scripted:random", "--suite", NAME)
    few = ("--questions", "16", "--samples", "4", "--resamples", "50", "--out", "out")
    assert benchmark.main([*teams, *few]) == 0
    (suite,) = json.loads(Path("out/results.json").read_text())["suites"].values()
    # Who takes any of the legal moves meets half of the time: 64 games, three deviations of 1/16.
    assert suite["rows"]["anybody"]["avg"]["value"] == pytest.approx(0.5, abs=3 / 16)


def test_without_it_the_refusal_comes_before_any_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--env", "meeting:Meet", "--run-dir", "run"]) == 2
    shown = capsys.readouterr()
    assert f"--env {NAME} asks for them in text" in shown.err
    assert "loading" not in shown.out + shown.err
