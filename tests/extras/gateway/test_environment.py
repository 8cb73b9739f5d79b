"""Programs as an environment like all others: the contract, PettingZoo's tests, training."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test
from safetensors.torch import load_file

from coterie.datatypes import UserError
from coterie.envs import check_env, make, spec
from coterie.extras.gateway.gateway import gateway
from coterie.train import main

from .conftest import chat, client, said, user

Make = Callable[..., Any]

PROGRAM = """
import asyncio
import httpx2
from coterie.envs import ConversationEnv, Outcome


async def run(endpoints, problem):
    question = f"Question: {problem.question}\\nLet's solve this step by step:"
    headers = {"authorization": f"Bearer {endpoints.api_key}"}
    async with httpx2.AsyncClient(base_url=endpoints.base_url, headers=headers) as to:
        messages, texts = [{"role": "user", "content": question}], []
        for again in ("\\nAgain:", ""):
            body = {"model": "alice", "messages": messages, "max_tokens": 16}
            reply = (await to.post("/chat/completions", json=body)).json()
            texts.append(reply["choices"][0]["message"]["content"])
            messages += [reply["choices"][0]["message"], {"role": "user", "content": again}]
    return texts[-1]


class Twice(ConversationEnv):
    title = "twice"
    metadata = {**ConversationEnv.metadata, "name": "twice_v0"}
    default_roles = ("alice",)

    def conversation(self, problem, options, random):
        question = f"Question: {problem.question}\\nLet's solve this step by step:"
        yield {"alice_0": Ask(question, max_new_tokens=16)}
        last = yield {"alice_0": Ask("\\nAgain:", max_new_tokens=16)}
        right = self.scorer.check(last.get("alice_0", ""), problem).correct
        return Outcome({"alice_0": {"correct": float(right)}})


from coterie.envs import Ask, EnvSpec
SPEC = EnvSpec("twice", 0, Twice, None, ("alice",))
no_function = 3
def one_argument(endpoints): return 1.0
def no_roles(endpoints, problem): return 1.0
no_roles.roles = "alice"
"""
FLAGS = (
    "--rollout.problems-per-step", "4", "--problems.held-out", "8", "--threads", "1",
    "--eval.resamples", "10",
)  # fmt: skip


async def two(endpoints: Any, problem: Any) -> str:
    async with client(endpoints) as to:
        plan = await chat(to, [user(problem.question)], model="alice")
        reply = await chat(to, [user(plan["content"])], model="bob")
        await chat(to, [user(problem.question), said(plan["content"]), user("?")], model="alice")
    return reply["content"]


def test_it_keeps_the_contract(make: Make) -> None:
    report = check_env(make(two, "alice", "bob"))
    assert report.never_asked == ()
    assert make(two).transcript() is None


def test_pettingzoo(make: Make) -> None:
    parallel_api_test(make(two, "alice", "bob"), num_cycles=20)
    parallel_seed_test(lambda: make(two, "alice", "bob"))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The module of :data:`PROGRAM`."""
    (tmp_path / "twice_program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "twice_program"


def weights(run: Path) -> Any:
    return load_file(run / "final" / "alice" / "model.safetensors")


def same(left: Any, right: Any) -> bool:
    return left.keys() == right.keys() and all(left[name].equal(right[name]) for name in left)


@pytest.mark.slow
def test_a_program_trains_like_the_same_conversation(module: str, tmp_path: Path) -> None:
    """Weights, rewards and tokens, bit for bit; and it goes on where it stopped."""
    # A loaded machine may be slow; batches must not depend on it.
    harness = ["--env", f"harness:{module}:run", "--env.max-new-tokens", "16"]
    harness += ["--env.gather-s", "30"]
    runs = {name: tmp_path / name for name in ("harness", "conversation", "stopped")}
    assert main([*harness, *FLAGS, "--steps", "3", "--run-dir", str(runs["harness"])]) == 0
    flags = ["--env", f"{module}:SPEC", *FLAGS, "--steps", "3"]
    assert main([*flags, "--run-dir", str(runs["conversation"])]) == 0
    assert same(weights(runs["harness"]), weights(runs["conversation"]))
    seen = []
    for name in ("harness", "conversation"):
        lines = map(json.loads, (runs[name] / "episodes.jsonl").read_text().splitlines())
        kept = ("tokens", "turns", "logprobs", "reward", "advantage", "groups", "status")
        seen.append([{k: row[k] for k in kept} for e in lines for row in e["trajectories"]])
    assert seen[0] == seen[1]

    assert main([*harness, *FLAGS, "--steps", "2", "--run-dir", str(runs["stopped"])]) == 0
    assert main(["--resume", str(runs["stopped"]), "--steps", "3"]) == 0
    assert same(weights(runs["harness"]), weights(runs["stopped"]))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("harness:", "say which one after the colon"),
        ("harness:no_such_module:run", "no_such_module"),
        ("harness:twice_program:no_function", "function of two arguments"),
        ("harness:twice_program:one_argument", "function of two arguments"),
        ("harness:twice_program:no_roles", "must be a tuple of names"),
        ("harness:twice_program:run?a=b", "has no attribute"),
        ("command:", "say which one after the colon"),
        ("command:no-such-program --x?y", "no program 'no-such-program' here"),
        ("command:python 'unclosed", "env 'command:"),
    ],
)
def test_an_invalid_program_is_refused(module: str, name: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        spec(name)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--env.max-calls", "0"], "max-calls is 0; it must be at least 1"),
        (["--env.train-turns", "first"], "first"),
        (["--env.turns", "twice_program:missing"], "missing"),
        (["--env.turns", "twice_program:no_function"], "name a function of one argument"),
        (["--rollout.max-prompt-tokens", "9"], "known before an episode is played: leave it out"),
    ],
)
def test_invalid_settings_are_refused(
    module: str, capsys: pytest.CaptureFixture[str], flags: list[str], words: str
) -> None:
    assert main(["--env", f"harness:{module}:run", *flags]) == 2
    assert words in capsys.readouterr().err


def test_it_is_made_by_its_name(module: str) -> None:
    env = make(f"harness:{module}:run")
    assert env.possible_agents == ["alice_0"]
    with pytest.raises(UserError, match="speaks in token ids"):
        make(f"harness:{module}:run", view="text")
    check_env(env)


def test_an_episode_without_calls_delays_no_other(make: Make) -> None:
    """None is waited for after its end."""
    env = make(lambda endpoints, problem: 1.0)

    async def play() -> int:
        await env.areset(seed=1)
        await env.astep({})
        return len(gateway().gate(asyncio.get_running_loop(), 1.0)._playing)

    assert asyncio.run(play()) == 0
    env.close()
