"""Training in environments that somebody else broke: one sentence, exit code 2."""

from pathlib import Path

import pytest

from coterie import train

AUTHORS = """
from dataclasses import dataclass
from gymnasium import spaces
from pettingzoo import ParallelEnv
from coterie.envs import ConversationEnv, Outcome

class Echo(ParallelEnv):
    metadata = {"name": "echo_v0"}
    render_mode = None
    names = ["alice_0"]
    info = {}
    def __init__(self):
        self.possible_agents = self.names
        self.space = spaces.Text(50)
    def observation_space(self, agent): return self.space
    def action_space(self, agent): return self.space
    def reset(self, seed=None, options=None):
        self.agents = list(self.names)
        return dict.fromkeys(self.agents, "say"), dict.fromkeys(self.agents, self.info)

class Letters(Echo):
    info = {"stop": "abc"}

class Spaced(Echo):
    names = ["first mover"]

class Replicated(Echo):
    metadata = {"name": "echo_v0", "replicas": -3}

@dataclass(frozen=True)
class Settings:
    max_new_tokens: int = 2

class Stranger(ConversationEnv):
    title = "stranger"
    settings_class = Settings
    metadata = {**ConversationEnv.metadata, "name": "stranger_v0"}
    default_roles = ("alice",)
    def conversation(self, problem, options, random):
        yield {"alice_0": problem.question}
        return Outcome({"alice": {"right": 1.0}})
"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Letters", "Letters: stop of alice_0 is 'abc': it must be a list of non-empty strings; "),
        (
            "Spaced",
            "--env authors:Spaced: in its possible_agents 'first mover' is not a name for a ",
        ),
        ("Replicated", "Replicated: metadata['replicas'] is -3: it must be an int of at least 1; "),
        ("Stranger", "stranger: conversation() ended with the terms {'alice': {'right': 1.0}}; "),
    ],
)
def test_the_user_reads_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    sentence: str,
) -> None:
    (tmp_path / "authors.py").write_text(AUTHORS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "authors", raising=False)
    few = ["--steps", "1", "--rollout.problems-per-step", "1", "--problems.held-out", "1"]
    where = ["--run-dir", str(tmp_path / "run"), "--eval.no-enabled"]
    assert train.main(["--env", f"authors:{name}", *few, *where]) == 2
    assert f"train.py: {sentence}" in capsys.readouterr().err
