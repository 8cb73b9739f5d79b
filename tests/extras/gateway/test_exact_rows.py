"""Any interleaving of calls: each row is token by token what the engine saw and gave."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie.datatypes import Completion, Prompt, Sampling
from coterie.envs.bytes_codec import END

from .conftest import CODEC, babble, chat, client, run, said, user

Make = Callable[..., Any]
ROLES = ("alice", "bob", "carol")


@dataclass(frozen=True)
class Move:
    """One call."""

    base: int
    """Which of the role's conversations it goes on with."""
    change: str
    """What it does to it first."""
    wire: str


MOVES = st.builds(
    Move,
    base=st.integers(0, 9),
    change=st.sampled_from(["keep", "keep", "keep", "rewrite", "shorten", "again"]),
    wire=st.sampled_from(["chat", "stream", "messages", "responses"]),
)
PLANS = st.tuples(*(st.lists(MOVES, max_size=6) for _ in ROLES))


async def odd(prompt: Prompt, sampling: Sampling) -> Completion:
    """Letters, and bytes that are no UTF-8: their text, encoded again, would be other ids."""
    completion = babble(prompt)
    ids = np.where(completion.tokens % 3 == 0, 0xFF, completion.tokens)
    return Completion(ids, completion.logprobs, completion.finish_reason)


async def ask(to: httpx2.AsyncClient, wire: str, messages: list[Any]) -> str:
    """What is answered on a wire."""
    if wire == "chat":
        return (await chat(to, messages))["content"]
    if wire == "messages":
        body = {"model": "alice", "max_tokens": 50, "messages": messages}
        return (await to.post("/messages", json=body)).json()["content"][0]["text"]
    if wire == "responses":
        reply = await to.post("/responses", json={"model": "alice", "input": messages})
        return reply.json()["output"][0]["content"][0]["text"]
    body = {"model": "alice", "messages": messages, "stream": True}
    reply = await to.post("/chat/completions", json=body)
    chunks = [json.loads(line[6:]) for line in reply.text.splitlines() if line[:7] == "data: {"]
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)


async def follow(endpoint: Any, plan: list[Move]) -> list[tuple[str, str, str]]:
    """A role's calls, one after the other: (role, what was asked last, the answer)."""
    heard: list[tuple[str, str, str]] = []
    known: list[list[Any]] = [[]]
    asked: list[Any] = [user("begin")]
    async with client(endpoint) as to:
        for turn, move in enumerate(plan):
            if move.change != "again":
                base = known[move.base % len(known)]
                if base and move.change == "rewrite":
                    base = [*base[:-1], said("no")]
                if move.change == "shorten":
                    base = base[2:]
                asked = [*base, user(f"turn {turn}")]
            answer = await ask(to, move.wire, asked)
            heard.append((f"{endpoint.model}_0", asked[-1]["content"], answer))
            known.append([*asked, said(answer)])
    return heard


@given(plans=PLANS)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_each_answer_is_learned_once_behind_exactly_what_it_answered(
    make: Make, plans: tuple[list[Move], ...]
) -> None:
    seen: list[tuple[str, bytes, bytes, bytes]] = []
    sent: list[tuple[str, str, str]] = []
    heard: list[tuple[str, str, str]] = []

    async def engine(prompt: Prompt, sampling: Sampling) -> Completion:
        done = await odd(prompt, sampling)
        parts = (prompt.tokens, np.asarray(done.tokens), done.logprobs)
        seen.append((prompt.agent, *(part.tobytes() for part in parts)))
        last = prompt.text.rpartition("user: ")[2]
        sent.append((prompt.agent, last, CODEC.decode(done.tokens)))
        return done

    async def program(endpoints: Any, problem: Any) -> float:
        for role_heard in await asyncio.gather(*map(follow, endpoints.values(), plans)):
            heard.extend(role_heard)
        return 1.0

    episode = run(make(program, *ROLES), dict.fromkeys(ROLES, engine))
    rows = [
        (row.agent, *(part.tobytes() for part in (row.tokens[:a], row.tokens[a:b], logprobs)))
        for row in episode.trajectories
        for a, b in row.turns
        for logprobs in (row.logprobs[a:b],)
    ]
    assert sorted(rows) == sorted(seen)
    assert sorted(heard) == sorted(sent)
    for row in episode.trajectories:
        sampled = np.zeros(len(row.tokens), dtype=bool)
        for a, b in row.turns:
            sampled[a:b] = True
        assert row.mask.tolist() == sampled.tolist()
        assert row.status == "ok"
    assert len(seen) == sum(map(len, plans))
    assert all(row.info["undelivered"] == 0 for row in episode.trajectories)


@pytest.mark.parametrize("wire", ["chat", "stream", "messages", "responses"])
def test_a_conversation_is_one_row_on_every_wire(make: Make, wire: str) -> None:
    async def program(endpoints: Any, problem: Any) -> float:
        await follow(endpoints["alice"], [Move(turn, "keep", wire) for turn in range(3)])
        return 1.0

    (row,) = run(make(program), {"alice": odd}).trajectories
    assert len(row.turns) == 3
    assert 0xFF in row.tokens
    assert END in row.tokens
