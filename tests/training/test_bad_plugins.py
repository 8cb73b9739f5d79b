"""What others bring and what is wrong with it: one sentence, exit code 2, and no run directory."""

from pathlib import Path
from typing import Any

import pytest

from coterie.train import main

PLUGIN = """
import enum
from dataclasses import dataclass

from gymnasium import spaces
from pettingzoo import ParallelEnv
from coterie.envs import ConversationEnv, EnvSpec, Outcome


class Color(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class EnumSettings:
    color: Color = Color.RED


@dataclass(frozen=True)
class Size:
    width: int


@dataclass(frozen=True)
class SizeSettings:
    rounds: int = 2
    sizes: tuple[Size, ...] = (Size(1),)


@dataclass(frozen=True)
class NeedsSettings:
    rounds: int


class Talk(ConversationEnv):
    default_roles = ("a",)

    def conversation(self, problem, options, random):
        yield {"a_0": problem.question}
        return Outcome({"a_0": {"right": 1.0}})


class Colored(Talk):
    settings_class = EnumSettings


class Sized(Talk):
    settings_class = SizeSettings


class Needing(Talk):
    settings_class = NeedsSettings


class NoRoles(Talk):
    default_roles = ()


class NoTurn(Talk):
    def conversation(self, problem, options, random):
        return Outcome({"a_0": {"right": 1.0}})


class BadTerms(Talk):
    def conversation(self, problem, options, random):
        yield {"a_0": problem.question}
        return Outcome({"a_0": {"right": "much"}})


class Stranger(Talk):
    title = "stranger"

    def conversation(self, problem, options, random):
        yield {"a_0": problem.question}
        return Outcome({"a": {"right": 1.0}})


class Echo(ParallelEnv):
    metadata = {"name": "echo_v0"}
    render_mode = None
    names = ["a_0"]
    info = {}

    def __init__(self):
        self.possible_agents = self.names
        self.space = spaces.Text(50)

    def observation_space(self, agent):
        return self.space

    def action_space(self, agent):
        return self.space

    def reset(self, seed=None, options=None):
        self.agents = list(self.names)
        return dict.fromkeys(self.agents, "say"), dict.fromkeys(self.agents, self.info)


class Letters(Echo):
    info = {"stop": "abc"}


class Spaced(Echo):
    names = ["first mover"]


class Replicated(Echo):
    metadata = {"name": "echo_v0", "replicas": -3}


def failing(settings, run):
    raise RuntimeError("boom")


def spec(**more):
    return EnvSpec("talk", 0, "bad_plugin:Talk", roles=("a",), **more)


COLORED = EnvSpec("talk", 0, "bad_plugin:Colored", EnumSettings, ("a",))
NEEDING = EnvSpec("talk", 0, "bad_plugin:Needing", NeedsSettings, ("a",))
STRANGE = EnvSpec("echo", 0, "bad_plugin:Echo", roles=("a", "b"))
FAILING = spec(check=failing)
TRUE = spec(rereads=True)
LEARNS = spec(learns=lambda settings: settings.nobody)
MISSPELT = spec(defaults={"rollout": {"problem_per_step": 3}})


def letters(traces, problem):
    return ["a" for _ in traces]


def clearing(traces, problem):
    traces.clear()
    return []


def text(reward_M, group_M):
    return "x"
"""


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--env bad_plugin:COLORED", "its setting color is <Color.RED: 1>, which config.json cann"),
        ("--env bad_plugin:Sized", "its setting sizes is (Size(width=1),), which config.json ca"),
        ("--env bad_plugin:NEEDING", "give every setting a default; rounds has none"),
        ("--env bad_plugin:NoRoles", 'NoRoles: say who takes part: default_roles = ("alice", "bo'),
        ("--env bad_plugin:NoTurn", "NoTurn: conversation()"),
        ("--env bad_plugin:BadTerms", "it must be a dictionary of finite numbers by name"),
        ("--env bad_plugin:Stranger", "conversation() ended with the terms {'a': {'right': 1.0}}"),
        ("--env bad_plugin:Letters", "stop of a_0 is 'abc': it must be a list of non-empty string"),
        ("--env bad_plugin:Spaced", "in its possible_agents 'first mover' is not a name for a "),
        (
            "--env bad_plugin:Echo --roles a b",
            "its agents have the roles a, not a, b; leave out --r",
        ),
        (
            "--env bad_plugin:STRANGE",
            "its agents have the roles a, not a, b; name the former in it",
        ),
        ("--env bad_plugin:Replicated", "metadata['replicas'] is -3: it must be an int of at lea"),
        ("--env bad_plugin:FAILING", "EnvSpec.check failed: RuntimeError: boom"),
        ("--env bad_plugin:TRUE", "EnvSpec.rereads is True; it must be a function"),
        ("--env bad_plugin:LEARNS", "EnvSpec.learns failed: AttributeError"),
        (
            "--env bad_plugin:MISSPELT",
            "no setting is called rollout.problem_per_step; did you mean 'p",
        ),
        ("--env.terms bad_plugin:letters", "raised ValueError: could not convert string to float"),
        ("--env.terms bad_plugin:clearing", "it must give 4 finite numbers, one for each trace"),
        ("--algo.advantage bad_plugin:text", "raised ValueError: could not convert string to flo"),
    ],
)
def test_a_bad_plugin_is_refused_in_one_sentence(
    flags: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Any
) -> None:
    (tmp_path / "bad_plugin.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    run = tmp_path / "run"
    model = ["--agents.a.model", "tiny:alice"] if "--env " in flags else []
    model += ["--agents.b.model", "tiny:bob"] if "not a, b" in sentence else []
    assert sentence in refused(main, *flags.split(), *model, "--steps", "1", "--run-dir", run)
