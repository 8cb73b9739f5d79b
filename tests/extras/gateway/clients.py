"""The programs of ``examples/agents``, and what each needs."""

import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shutil import which
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[3]
AGENTS = ROOT / "examples" / "agents"
TO_BOB = '<tool_call>{"name": "to_bob", "arguments": {}}</tool_call>'
ADD = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'
RESULT = "<tool_response>\n5\n</tool_response>"


class Client(NamedTuple):
    """A program."""

    name: str
    env: str
    packages: tuple[str, ...]
    roles: tuple[str, ...] = ("alice",)


def _function(name: str) -> str:
    return f"harness:examples.agents.{name}:run"


CLIENTS = {
    client.name: client
    for client in (
        Client("openai", _function("openai_sdk"), ("openai",), ("alice", "bob")),
        Client(
            "openai-agents",
            f"command:{sys.executable} {AGENTS / 'agents_sdk.py'}",
            ("openai-agents",),
            ("alice", "bob"),
        ),
        Client(
            "langgraph",
            _function("langgraph_team"),
            ("langgraph", "langchain-openai"),
            ("alice", "bob"),
        ),
        Client("smolagents", _function("smolagents_solver"), ("smolagents", "openai")),
        Client("anthropic", _function("anthropic_sdk"), ("anthropic",)),
        Client("curl", f"command:sh {AGENTS / 'with_curl.sh'}", ()),
    )
}


def needed(name: str) -> Client:
    """A program; skips the test without what it needs."""
    client = CLIENTS[name]
    for package in client.packages:
        try:
            distribution(package)
        except PackageNotFoundError:
            pytest.skip(f"no {package} here: pip install -e '.[clients]'")
    if name == "curl" and which("curl") is None:
        pytest.skip("no curl here")
    return client
