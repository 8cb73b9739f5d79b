"""Clients as people use them, unchanged, against tiny policies; skipped where they are missing."""

import importlib.util
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest

from .conftest import babbling, run, saying

Make = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[3]
TO_BOB = '<tool_call>{"name": "to_bob", "arguments": {}}</tool_call>'
ADD = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 1}}</tool_call>'


def example(name: str, package: str) -> Any:
    pytest.importorskip(package)
    return import_module(f"examples.agents.{name}").run


@pytest.mark.parametrize(
    ("name", "package", "roles"),
    [
        ("openai_sdk", "openai", ("alice", "bob")),
        ("anthropic_sdk", "anthropic", ("alice",)),
        ("langgraph_team", "langgraph", ("alice", "bob")),
        ("smolagents_solver", "smolagents", ("alice",)),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_whatever_a_model_says_the_program_plays_to_its_end(
    make: Make, name: str, package: str, roles: tuple[str, ...]
) -> None:
    program = example(name, package)
    episode = run(make(program, *roles), dict.fromkeys(roles, babbling))
    assert episode.trajectories
    assert all(row.status == "ok" for row in episode.trajectories)
    assert episode.info["undelivered"] == 0


@pytest.mark.filterwarnings("ignore")
def test_openai(make: Make) -> None:
    said = {"alice": saying("1 + 1 = 3", "Answer: 2"), "bob": saying("2?", "Answer: 7")}
    episode = run(make(example("openai_sdk", "openai"), "alice", "bob"), said)
    assert {row.role: row.reward for row in episode.trajectories} == {"alice": 1.0, "bob": 0.0}
    assert [len(row.turns) for row in episode.trajectories] == [2, 2]


def test_a_hand_over_with_a_tool(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("openai") is None or not (home := _agents_sdk()):
        pytest.skip("no OpenAI Agents SDK here")
    # The folder of this repository's that has the same name is not on a program's path.
    monkeypatch.setenv("PYTHONPATH", home)
    said = {"alice": saying(TO_BOB), "bob": saying(ADD, "Answer: 2")}
    program = f"{sys.executable} {ROOT / 'examples' / 'agents' / 'agents_sdk.py'}"
    alice, bob = run(make(program, "alice", "bob"), said).trajectories
    assert (alice.status, alice.reward, bob.reward) == ("ok", 1.0, 1.0)
    assert (len(alice.turns), len(bob.turns)) == (1, 2)
    assert bob.as_learned().mask.sum() == len(ADD) + 1 + len("Answer: 2") + 1


def _agents_sdk() -> str:
    """The folder that it is installed in."""
    try:
        return str(distribution("openai-agents").locate_file(""))
    except PackageNotFoundError:
        return ""


@pytest.mark.filterwarnings("ignore")
def test_anthropic_with_a_stream(make: Make) -> None:
    said = {"alice": saying("hm", "Answer: 2")}
    (row,) = run(make(example("anthropic_sdk", "anthropic")), said).trajectories
    assert (row.reward, len(row.turns)) == (1.0, 2)


@pytest.mark.filterwarnings("ignore")
def test_langgraph(make: Make) -> None:
    said = {"alice": saying("Answer: 3", "Answer: 2"), "bob": saying("0", "0")}
    episode = run(make(example("langgraph_team", "langgraph"), "alice", "bob"), said)
    assert {row.reward for row in episode.trajectories} == {1.0}


@pytest.mark.filterwarnings("ignore")
def test_smolagents(make: Make) -> None:
    final = '<tool_call>{"name": "final_answer", "arguments": {"answer": "2"}}</tool_call>'
    episode = run(make(example("smolagents_solver", "smolagents")), {"alice": saying(ADD, final)})
    assert {row.reward for row in episode.trajectories} == {1.0}


def test_curl(make: Make) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl here")
    script = ROOT / "examples" / "agents" / "with_curl.sh"
    (row,) = run(make(f"sh {script}"), {"alice": saying("Answer: 2")}).trajectories
    assert row.status == "ok"
