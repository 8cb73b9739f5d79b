"""What one program may take from the others: time, memory, connections; and what keys open."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.agents.sampling.policy import fit_context
from coterie.datatypes import Completion, Prompt, Sampling
from coterie.envs.bytes_codec import BytesCodec

from .conftest import chat, client, run, said, saying, user

Make = Callable[..., Any]
Post = Callable[..., Any]


class Hundred(BytesCodec):
    """Its context holds 100 bytes."""

    context = 100


@pytest.mark.parametrize(
    "long",
    [
        [user("x" * 100)],
        # Only the mark that ended the first answer is too much.
        [user("x"), said("y"), user("x" * 97)],
        [user("x" * 400_000)],
    ],
)
def test_a_conversation_that_fills_the_context_loses_no_other_row(
    post: Post, long: list[Any]
) -> None:
    """It is a 400 and one of the calls."""

    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        return await saying("y")(prompt, fit_context(prompt, sampling, Hundred()))

    bodies = [{"messages": messages} for messages in ([user("x")], long, [user("z")])]
    bodies += [{"messages": long, "stream": True}, {"messages": long}]
    replies, episode = post(policy, *bodies, codec=Hundred(), max_calls=4)
    assert [reply.status_code for reply in replies] == [200, 400, 200, 200, 429]
    assert "tokens, and alice's context holds 100 with the answer" in replies[1].text
    assert '"type": "invalid_request_error"' in replies[3].text
    assert [row.trainable for row in episode.trajectories] == [True, True]
    assert episode.info["refused"] == 3.0


@pytest.mark.parametrize(("written", "finish"), [(10, "length"), (9, "stop")])
def test_an_answer_that_the_context_cuts_is_not_finished(
    post: Post, written: int, finish: str
) -> None:
    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        ids = np.full(min(written, fit_context(prompt, sampling, Hundred()).max_new_tokens), 97)
        return Completion(ids, np.full(len(ids), -0.5, np.float32), "length")

    body = {"messages": [user("x" * 90)], "max_tokens": 50}
    (reply,), _ = post(policy, body, codec=Hundred())
    assert reply.json()["choices"][0]["finish_reason"] == finish


def test_a_program_limits_tokens_and_four_bytes_are_one(post: Post) -> None:
    limits: list[int] = []

    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        limits.append(sampling.max_new_tokens)
        return await saying("y")(prompt, sampling)

    post(policy, {"messages": [user("x")], "max_tokens": 5})
    assert limits == [20]


def test_only_the_key_of_its_role_continues_a_response(make: Make) -> None:
    seen: list[tuple[str, int]] = []

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            first = await to.post("/responses", json={"model": "bob", "input": "x"})
            name = first.json()["id"]
        for role in ("alice", "bob", ""):
            async with client(endpoints[role] if role else endpoints) as to:
                body = {"model": "bob", "input": "y", "previous_response_id": name}
                seen.append((role, (await to.post("/responses", json=body)).status_code))
        async with client(endpoints["alice"]) as to:
            await chat(to, [user("z")])
        return 1.0

    run(make(program, "alice", "bob"), dict.fromkeys(("alice", "bob"), saying("y")))
    assert seen == [("alice", 404), ("bob", 200), ("", 200)]


def test_numbers_of_any_size_are_arguments(post: Post) -> None:
    call = f'<tool_call>{{"name": "f", "arguments": {{"n": {1 << 70}}}}}</tool_call>'
    body = {"messages": [user("u")], "tools": [{"name": "f"}]}
    (reply,), _ = post(saying(call), body, path="/messages")
    assert [block["input"] for block in reply.json()["content"]] == [{"n": 1 << 70}]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "there is no message: send at least one."),
        ([user("x"), {"role": "assistant", "content": "The"}], "answers cannot be begun for it"),
    ],
)
def test_a_request_without_a_question_is_refused(post: Post, messages: Any, words: str) -> None:
    (reply, _), _ = post(saying("y"), {"messages": messages}, {"messages": [user("x")]})
    assert reply.status_code == 400
    assert words in reply.json()["error"]["message"]


CLOSING = """
import asyncio, sys, time
from coterie.datatypes import Problem
from coterie.extras.gateway.gateway import gateway
from coterie.extras.gateway.kinds import spec

env = spec(sys.argv[1], sys.argv[1].partition(":")[2], {}).factory()

async def play():
    await env.areset(seed=1, options={"problem": Problem(id="p", question="q", gold="7")})

async def begin():
    task = asyncio.create_task(play())
    await asyncio.sleep(0.5)
    task.cancel()

asyncio.run(begin())
if sys.argv[2:] == ["holds"]:
    gateway().loop.call_soon_threadsafe(time.sleep, 60)
sys.exit(3)
"""
HANGING = """
import asyncio, httpx2, time

async def waits(endpoints, problem):
    await asyncio.sleep(60)

async def calls(endpoints, problem):
    headers = {"authorization": f"Bearer {endpoints.api_key}"}
    async with httpx2.AsyncClient(base_url=endpoints.base_url, headers=headers) as to:
        body = {"model": "alice", "messages": [{"role": "user", "content": "x"}], "stream": True}
        await to.post("/chat/completions", json=body)

def sleeps(endpoints, problem):
    time.sleep(60)
"""


def closed(code: str, tmp_path: Path, *arguments: str) -> tuple[str, int]:
    """What a process prints that ends while a program hangs, and its exit code."""
    (tmp_path / "hanging.py").write_text(HANGING)
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{root}:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.stderr, done.returncode


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    ["harness:hanging:waits", "harness:hanging:calls", "harness:hanging:sleeps",
     "command:sleep 61", "command:sh -c 'setsid sleep 62 & sleep 62'"],
)  # fmt: skip
def test_closing_a_gateway_while_a_program_hangs_prints_nothing(
    program: str, tmp_path: Path
) -> None:
    assert closed(CLOSING, tmp_path, program) == ("", 3)


def test_a_gateway_whose_loop_is_blocked_ends_too(tmp_path: Path) -> None:
    quick = CLOSING.replace(
        "env = spec", "import coterie.extras.gateway.gateway as g; g._CLOSING_S = 0.5\nenv = spec"
    )
    assert closed(quick, tmp_path, "command:sleep 63", "holds") == ("", 3)
