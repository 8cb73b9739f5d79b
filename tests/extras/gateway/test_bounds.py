"""What one program may take from the others: time, memory, connections; and what keys open."""

import asyncio
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
from coterie.extras.gateway.messages import Message, Refused, Request, Tool, ToolCall
from coterie.extras.gateway.rendering import refuse_too_long

from .conftest import chat, client, run, said, saying, user

Make = Callable[..., Any]
Post = Callable[..., Any]


class Small(BytesCodec):
    """Its context holds 20,000 bytes."""

    context = 20_000

    def __init__(self) -> None:
        self.counted = 0

    def at_least(self, text: str) -> int:
        self.counted += len(text.encode())
        return len(text.encode())


class Hundred(Small):
    """Its context holds 100 bytes."""

    context = 100


def too_long(codec: Any, *messages: Message, **more: Any) -> str:
    """Why a request is refused."""
    try:
        asyncio.run(refuse_too_long(codec, "alice", Request(messages, **more)))
    except Refused as refused:
        return f"{refused.status} {refused.sentence}"
    return ""


@pytest.mark.parametrize(
    "said",
    [
        {"text": "x" * 8_000_000},
        {"text": "é" * 2_000_000},
        {"calls": (ToolCall("1", "f", '{"a": "' + "x" * 3_000_000 + '"}'),)},
    ],
)
def test_a_request_longer_than_the_context_is_refused_before_it_is_encoded(said: Any) -> None:
    codec = Small()
    sentence = too_long(codec, Message("assistant", **said), Message("user", "so?"))
    assert sentence.startswith("400 ")
    assert "more than the 20,000 tokens of alice's context" in sentence
    assert codec.counted < 60_000


def test_tools_and_many_messages_count() -> None:
    many = [Message("user", "x" * 900) for _ in range(30)]
    assert "more than the 20,000" in too_long(Small(), *many)
    tool = Tool("f", "d" * 30_000, "{}")
    assert "more than the 20,000" in too_long(Small(), Message("user", "u"), tools=(tool,))


def test_a_request_that_may_fit_is_not_refused() -> None:
    assert too_long(Small(), Message("user", "x" * 19_990)) == ""
    # Templates leave out blanks around a message.
    assert too_long(Small(), Message("user", " " * 90_000 + "x")) == ""
    assert too_long(BytesCodec(), Message("user", "x" * 90_000)) == ""
    assert too_long(None, Message("user", "x" * 90_000)) == ""


def test_a_message_that_is_too_long_is_a_400_and_one_of_the_calls(post: Post) -> None:
    bodies = [{"messages": [user(text)]} for text in ("x" * 400_000, "x") * 2]
    replies, episode = post(saying("y"), *bodies, codec=Small(), max_calls=3)
    assert [reply.status_code for reply in replies] == [400, 200, 400, 429]
    assert [len(row.turns) for row in episode.trajectories] == [1]
    assert episode.info["refused"] == 3.0


@pytest.mark.parametrize(
    "long",
    [
        [user("x" * 100)],
        # Only the mark that ended the first answer is too much.
        [user("x"), said("y"), user("x" * 97)],
        # As long as what is rendered without counting.
        [user("x" * 8_192)],
    ],
)
def test_a_conversation_that_fills_the_context_loses_no_other_row(
    post: Post, long: list[Any]
) -> None:
    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        return await saying("y")(prompt, fit_context(prompt, sampling, Hundred()))

    bodies: list[Any] = [{"messages": sent} for sent in ([user("x")], long, [user("z")])]
    bodies.append({"messages": long, "stream": True})
    replies, episode = post(policy, *bodies, codec=Hundred())
    assert [reply.status_code for reply in replies[:3]] == [200, 400, 200]
    why = "tokens, and alice's context holds 100 with the answer"
    assert why in replies[1].json()["error"]["message"]
    assert '"type": "invalid_request_error"' in replies[3].text
    assert [row.trainable for row in episode.trajectories] == [True, True]
    assert episode.info["refused"] == 2.0


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
    assert [block["input"]["n"] for block in reply.json()["content"]] == [1 << 70]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "there is no message: send at least one."),
        ([user("x"), {"role": "assistant", "content": "The"}], "answers cannot be begun for it"),
    ],
)
def test_a_request_without_a_question_is_refused(post: Post, messages: Any, words: str) -> None:
    replies, _ = post(saying("y"), {"messages": messages}, {"messages": [user("x")]})
    assert [reply.status_code for reply in replies] == [400, 200]
    assert words in replies[0].json()["error"]["message"]


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


def closed(folder: Path, code: str, *words: str) -> tuple[str, int]:
    """What a process says on its standard error, and its exit code."""
    (folder / "hanging.py").write_text(HANGING)
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{Path(__file__).parents[3]}:{folder}"},
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
    assert closed(tmp_path, CLOSING, program) == ("", 3)


def test_a_gateway_whose_loop_is_blocked_ends_too(tmp_path: Path) -> None:
    quick = CLOSING.replace(
        "env = spec", "import coterie.extras.gateway.gateway as g; g._CLOSING_S = 0.5\nenv = spec"
    )
    assert closed(tmp_path, quick, "command:sleep 63", "holds") == ("", 3)
