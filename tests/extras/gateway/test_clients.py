"""The programs of ``examples/agents`` with models that say what they are told to: what each client
makes of it, and what is recorded."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from coterie.datatypes import Episode

from .clients import ADD, RESULT, ROOT, TO_BOB, needed
from .conftest import CODEC, run, saying

Make = Callable[..., Any]
pytestmark = pytest.mark.filterwarnings("ignore")  # of the clients' own


@pytest.fixture
def play(make: Make, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Episode]:
    """An episode of a client whose roles say one text after the other."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def played(name: str, **texts: tuple[str, ...]) -> Episode:
        client = needed(name)
        kind, _, program = client.env.partition(":")
        if kind == "harness":
            module, _, function = program.partition(":")
            program = getattr(import_module(module), function)
        policies = {role: saying(*texts[role]) for role in client.roles}
        # Clients take long to import on a busy machine.
        return run(make(program, *client.roles, patience_s=600.0), policies)

    return played


def rewards(episode: Episode) -> dict[str, float]:
    return {row.role: row.reward for row in episode.trajectories}


def test_openai(play: Callable[..., Episode]) -> None:
    said = {"alice": ("1 + 1 = 3", "Answer: 2"), "bob": ("1 + 1 = 2", "Answer: 7")}
    episode = play("openai", **said)
    assert rewards(episode) == {"alice": 1.0, "bob": 0.0}
    first, second = (row for row in episode.trajectories if row.role == "alice")
    assert "Hint" not in CODEC.decode(first.tokens)
    assert "Hint:\n1 + 1 = 2\n" in CODEC.decode(second.tokens)


def test_openai_agents(play: Callable[..., Episode]) -> None:
    alice, bob = play("openai-agents", alice=(TO_BOB,), bob=(ADD, "Answer: 2")).trajectories
    assert (alice.reward, bob.reward) == (1.0, 1.0)
    assert (len(alice.turns), len(bob.turns)) == (1, 2)
    assert bob.as_learned().mask.sum() == len(ADD) + 1 + len("Answer: 2") + 1


def test_langgraph(play: Callable[..., Episode]) -> None:
    """They differ, so alice drafts again."""
    said = {"alice": ("Answer: 3", "Answer: 2"), "bob": ("Answer: 2", "Answer: 2")}
    episode = play("langgraph", **said)
    assert rewards(episode) == {"alice": 1.0, "bob": 1.0}
    assert len(play("langgraph", alice=("It is 2",), bob=("It is 2",)).trajectories) == 2


def test_smolagents(play: Callable[..., Episode]) -> None:
    """It tells its model of tools and calls in words of its own: no row goes on."""
    final = '<tool_call>{"name": "final_answer", "arguments": {"answer": "2"}}</tool_call>'
    episode = play("smolagents", alice=(ADD, final))
    assert rewards(episode) == {"alice": 1.0}
    assert len(episode.trajectories) == 2
    assert "5" in CODEC.decode(episode.trajectories[1].tokens)


def test_anthropic(play: Callable[..., Episode]) -> None:
    """A call of a tool, its result, and a streamed answer are one row."""
    (row,) = play("anthropic", alice=(ADD, "Answer: 2")).trajectories
    (_, first), (second, _) = row.turns
    assert row.reward == 1.0
    assert RESULT in CODEC.decode(row.tokens[first:second])


def test_curl(play: Callable[..., Episode]) -> None:
    assert rewards(play("curl", alice=("Answer: 2",))) == {"alice": 1.0}
