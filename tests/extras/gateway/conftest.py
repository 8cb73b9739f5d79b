"""Programs, and policies that answer them."""

import asyncio
import hashlib
import sys
import types
from collections.abc import Callable
from typing import Any

import httpx2
import numpy as np
import pytest

from coterie.datatypes import Completion, Episode, Policy, Problem, Prompt, Sampling
from coterie.envs.bytes_codec import END, BytesCodec
from coterie.extras.gateway.kinds import spec
from coterie.extras.gateway.settings import GatewaySettings
from coterie.rollouts import play

PROBLEM = Problem("p", "1 + 1 =", gold="2", kind="number")
CODEC = BytesCodec()
Make = Callable[..., Any]


def client(endpoint: Any) -> httpx2.AsyncClient:
    """Of an endpoint, or of all."""
    headers = {"authorization": f"Bearer {endpoint.api_key}"}
    return httpx2.AsyncClient(base_url=endpoint.base_url, headers=headers, timeout=30, verify=False)


async def chat(to: httpx2.AsyncClient, messages: list[Any], **more: Any) -> Any:
    """The message that a role answers with."""
    body = {"model": "alice", "messages": messages, **more}
    reply = await to.post("/chat/completions", json=body)
    reply.raise_for_status()
    return reply.json()["choices"][0]["message"]


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def saying(*texts: str, log: list[Prompt] | None = None) -> Policy:
    """Says one after the other, and ends each of its turns."""
    left = list(texts)

    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        if log is not None:
            log.append(prompt)
        ids = np.array([*CODEC.extend(left.pop(0) if len(left) > 1 else left[0]), END])
        return Completion(ids, np.full(len(ids), -0.5, np.float32), "eos")

    return policy


async def babbling(prompt: Prompt, sampling: Sampling) -> Completion:
    """A function of prompt and seed, like a model."""
    return babble(prompt)


def babble(prompt: Prompt) -> Completion:
    """A few letters, and an end now and then."""
    name = hashlib.blake2b(prompt.tokens.tobytes() + str(prompt.seed).encode()).digest()
    random = np.random.default_rng(int.from_bytes(name[:8], "big"))
    ids = random.integers(97, 123, size=random.integers(1, 6))
    if random.random() < 0.5:
        ids = np.append(ids, END)
    logprobs = -random.random(len(ids)).astype(np.float32)
    return Completion(ids.astype(np.int64), logprobs, "eos" if ids[-1] == END else "length")


async def asks(endpoints: Any, problem: Any) -> float:
    """A program that asks alice once."""
    async with client(endpoints) as to:
        await chat(to, [user("x")])
    return 1.0


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    """An environment that plays a function, or a command line."""

    def made(program: Any, *roles: str, codec: Any = None, **settings: Any) -> Any:
        name = f"command:{program}"
        if not isinstance(program, str):
            module = types.ModuleType("a_program")
            module.run = program  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, "a_program", module)
            name = "harness:a_program:run"
        described: Any = spec(name, name.partition(":")[2], {})
        roles = roles or ("alice",)
        codecs = dict.fromkeys(roles, codec or CODEC)
        return described.factory(GatewaySettings(**settings), roles=roles, tokenizers=codecs)

    return made


@pytest.fixture
def post(make: Make) -> Callable[..., tuple[list[httpx2.Response], Episode]]:
    """Plays a program that sends one body after the other: what it gets, and the episode."""

    def posted(
        policy: Policy, *bodies: dict[str, Any], path: str = "/chat/completions", **settings: Any
    ) -> tuple[list[httpx2.Response], Episode]:
        replies: list[httpx2.Response] = []

        async def program(endpoints: Any, problem: Any) -> float:
            async with client(endpoints) as to:
                for body in bodies:
                    replies.append(await to.post(path, json={"model": "alice", **body}))
            return 1.0

        return replies, run(make(program, **settings), {"alice": policy})

    return posted


def run(env: Any, policies: dict[str, Policy], **more: Any) -> Episode:
    options = {"problem": PROBLEM, "step": 1, **more}
    sampling = Sampling(max_new_tokens=50)
    try:
        return asyncio.run(play(env, policies, seed=1, options=options, sampling=sampling))
    finally:
        env.close()
