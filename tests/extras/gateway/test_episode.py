"""Programs that play an episode, well-behaved and otherwise."""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from coterie.datatypes import Completion, Policy, PolicyFailure, Prompt, Sampling, UserError
from coterie.envs import ConversationEnv, Outcome
from coterie.envs.bytes_codec import END
from coterie.envs.token_view import TokenView
from coterie.extras.gateway.gateway import gateway
from coterie.extras.gateway.messages import Refused
from coterie.extras.gateway.outcome import Played

from .conftest import CODEC, PROBLEM, babbling, chat, client, run, said, saying, user

Make = Callable[..., Any]


async def twice(endpoints: Any, problem: Any) -> str:
    async with client(endpoints) as to:
        messages = [user(problem.question)]
        reply = await chat(to, messages)
        messages += [said(reply["content"]), user("Again:")]
        return (await chat(to, messages))["content"]


class Twice(ConversationEnv):
    """The same protocol, written as a conversation."""

    title = "twice"
    metadata = {**ConversationEnv.metadata, "name": "twice_v0"}  # noqa: RUF012
    default_roles = ("alice",)

    def conversation(self, problem: Any, options: Any, random: Any) -> Any:
        yield {"alice_0": problem.question}
        last = yield {"alice_0": "Again:"}
        right = self.scorer.check(last["alice_0"], problem).correct
        return Outcome({"alice_0": {"correct": float(right)}})


@pytest.mark.parametrize("policy", [babbling, saying("It is", "Answer: 2")])
def test_a_program_that_appends_is_the_same_as_a_conversation(make: Make, policy: Policy) -> None:
    (row,) = run(make(twice), {"alice": policy}).trajectories
    if policy is not babbling:
        policy = saying("It is", "Answer: 2")
    (other,) = run(TokenView(Twice()), {"alice": policy}).trajectories
    assert row.tokens.tolist() == other.tokens.tolist()
    assert row.logprobs.tobytes() == other.logprobs.tobytes()
    assert row.mask.tolist() == other.mask.tolist()
    for name in ("turns", "reward", "reward_terms", "groups", "member", "status", "untrained"):
        assert getattr(row, name) == getattr(other, name), name


def test_a_role_that_comes_back_to_a_conversation_goes_on_with_its_row(make: Make) -> None:
    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            main = [user("plan")]
            main.append(await chat(to, main))
            await chat(to, [user("a subagent")])
            await chat(to, [*main, user("go on")])
        return 1.0

    episode = run(make(program), {"alice": saying("ok")})
    texts = [CODEC.decode(row.tokens) for row in episode.trajectories]
    assert texts == ["planokgo onok", "a subagentok"]
    assert {row.member for row in episode.trajectories} == {"p@1/0/alice_0"}
    measured = episode.trajectories[0].info
    assert (measured["bridged"], measured["new"], measured["rows"]) == (1.0, 2.0, 2.0)


def test_roles_by_key_and_by_model(make: Make) -> None:
    async def program(endpoints: Any, problem: Any) -> dict[str, float]:
        async with client(endpoints) as to:
            await chat(to, [user("x")], model="bob")
            reply = await to.post("/chat/completions", json={"model": "gpt-4o", "messages": []})
            assert reply.status_code == 404
            assert "none of the roles alice, bob" in reply.json()["error"]["message"]
            assert [m["id"] for m in (await to.get("/models")).json()["data"]] == ["alice", "bob"]
        async with client(endpoints["alice"]) as to:
            await chat(to, [user("y")], model="gpt-4o")
        return {"alice": 1.0, "bob": -1.0}

    rows = run(make(program, "alice", "bob"), dict.fromkeys(("alice", "bob"), saying("z")))
    assert {row.agent: row.reward for row in rows.trajectories} == {"alice_0": 1.0, "bob_0": -1.0}


def test_a_text_is_graded(make: Make) -> None:
    for text, reward in (("Answer: 2", 1.0), ("Answer: 3", 0.0)):
        (row,) = run(make(twice), {"alice": saying("?", text)}).trajectories
        assert row.reward_terms == {"correct": reward}
        assert row.info["correct"] is bool(reward)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "gave None"),
        ({"bob": 1.0}, "by role"),
        ({"alice": float("nan")}, "not a finite"),
        ({"alice": [1.0, "x"]}, "gave alice 2 rewards, and it had 1 answers"),
        ({"alice": ["x"]}, "not a finite"),
        ([1.0], "by role"),
    ],
)
def test_a_result_that_pays_nobody_is_refused(make: Make, result: Any, words: str) -> None:
    async def program(endpoints: Any, problem: Any) -> Any:
        async with client(endpoints) as to:
            await chat(to, [user("x")])
        return result

    with pytest.raises(UserError, match=words):
        run(make(program), {"alice": saying("y")})


async def _raises(endpoints: Any, problem: Any) -> None:
    async with client(endpoints) as to:
        await chat(to, [user("x")])
    raise ValueError("no luck")


async def _hangs(endpoints: Any, problem: Any) -> None:
    async with client(endpoints) as to:
        await chat(to, [user("x")])
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("program", "words"),
    [(_raises, "the program raised ValueError: no luck"), (_hangs, "did nothing for 2 s")],
)
def test_a_program_that_fails_fails_its_episode(make: Make, program: Any, words: str) -> None:
    env = make(program, patience_s=2.0)
    episode = run(env, {"alice": saying("y")})
    (row,) = episode.trajectories
    assert row.status.startswith("failed: ")
    assert words in row.status
    assert not row.trainable
    assert episode.info["failed"] == 1.0


def test_a_failure_before_the_first_call_fails_its_episode_if_others_have_called(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway(), "proven", set())
    works = iter([False, True, False])

    async def program(endpoints: Any, problem: Any) -> float:
        if not next(works):
            raise ValueError("no luck")
        async with client(endpoints) as to:
            await chat(to, [user("x")])
        return 1.0

    env = make(program)
    with pytest.raises(UserError, match="no luck, before it asked anything"):
        run(env, {"alice": saying("y")})
    assert len(run(env, {"alice": saying("y")}).trajectories) == 1
    episode = run(env, {"alice": saying("y")})
    assert episode.trajectories == ()
    assert episode.info["failure"] == "the program raised ValueError: no luck"


def test_a_program_that_asks_nobody_anything_has_no_rows(make: Make) -> None:
    episode = run(make(lambda endpoints, problem: 1.0), {"alice": saying("y")})
    assert episode.trajectories == ()


def test_a_function_that_is_no_coroutine(make: Make) -> None:
    def program(endpoints: Any, problem: Any) -> float:
        body = {"model": "alice", "messages": [user("x")]}
        headers = {"authorization": f"Bearer {endpoints.api_key}"}
        url = f"{endpoints.base_url}/chat/completions"
        assert httpx2.post(url, json=body, headers=headers).status_code == 200
        return 1.0

    (row,) = run(make(program), {"alice": saying("y")}).trajectories
    assert row.reward == 1.0


def test_a_model_that_fails_is_an_error_for_the_program(make: Make) -> None:
    async def failing(prompt: Prompt, sampling: Sampling) -> Completion:
        raise PolicyFailure("it is down")

    statuses: list[int] = []

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            body = {"model": "alice", "messages": [user("x")]}
            reply = await to.post("/chat/completions", json=body)
            statuses.append(reply.status_code)
            assert reply.headers["x-should-retry"] == "false"
        return 1.0

    (row,) = run(make(program), {"alice": failing}).trajectories
    assert (row.status, statuses) == ("failed: it is down", [503])


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"max_calls": 2}, "used up its 2 calls"), ({"max_tokens": 4}, "used up its 4 tokens")],
)
def test_a_budget_ends_in_an_error_and_the_rows_are_kept(
    make: Make, settings: Any, words: str
) -> None:
    refused: list[str] = []

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            for _ in range(3):
                body = {"model": "alice", "messages": [user("x")]}
                reply = await to.post("/chat/completions", json=body)
            refused.append(reply.json()["error"]["message"])
            assert reply.status_code == 429
        return 1.0

    episode = run(make(program, **settings), {"alice": saying("y")})  # two tokens an answer
    assert words in refused[0]
    assert [row.trainable for row in episode.trajectories] == [True, True]
    assert episode.info["refused"] == 1.0


def test_the_keys_of_an_episode_die_with_it(make: Make) -> None:
    kept: list[Any] = []

    async def program(endpoints: Any, problem: Any) -> float:
        kept.append(endpoints)
        async with client(endpoints) as to:
            await chat(to, [user("x")])
        return 1.0

    run(make(program), {"alice": saying("y")})

    async def late(key: str) -> int:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(base_url=kept[0].base_url, headers=headers) as to:
            body = {"model": "alice", "messages": [user("x")]}
            return (await to.post("/chat/completions", json=body)).status_code

    assert asyncio.run(late(kept[0].api_key)) == 409
    assert asyncio.run(late(kept[0]["alice"].api_key)) == 409
    assert asyncio.run(late("sk-guessed")) == 401


def test_a_retry_is_answered_with_what_was_sampled(make: Make) -> None:
    """A marked one; the same request without the mark is sampled again."""

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            body = {"model": "alice", "messages": [user("x")]}
            first = await to.post("/chat/completions", json=body)
            again = {"x-stainless-retry-count": "1"}
            retried = await to.post("/chat/completions", json=body, headers=again)
            assert retried.json() == first.json()
            third = await to.post("/chat/completions", json=body)
            assert third.json() != first.json()
        return 1.0

    episode = run(make(program), {"alice": saying("one", "two", "three")})
    assert [CODEC.decode(row.tokens) for row in episode.trajectories] == ["xone", "xtwo"]
    assert episode.info["replayed"] == 1.0


def test_an_answer_that_reaches_nobody_is_not_learned(make: Make) -> None:
    asked, gone = threading.Event(), threading.Event()

    async def slow(prompt: Prompt, sampling: Sampling) -> Completion:
        if not gone.is_set():
            asked.set()
            await asyncio.to_thread(gone.wait, 10)
            await asyncio.sleep(0.1)
        return await saying("y")(prompt, sampling)

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            call = asyncio.create_task(chat(to, [user("lost")]))
            await asyncio.to_thread(asked.wait, 10)
            call.cancel()
            await asyncio.wait([call])
            gone.set()
            await chat(to, [user("found")])
        return 1.0

    lost, kept = run(make(program), {"alice": slow}).trajectories
    assert CODEC.decode(lost.tokens) == "losty"
    assert not lost.as_learned().trainable
    assert kept.as_learned().trainable


def test_a_program_that_ends_before_its_answer_comes(make: Make) -> None:
    ending = threading.Event()

    async def slow(prompt: Prompt, sampling: Sampling) -> Completion:
        if CODEC.decode(prompt.tokens) == "too late":
            await asyncio.to_thread(ending.wait, 10)
            await asyncio.sleep(0.3)
        return await saying("y")(prompt, sampling)

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            await chat(to, [user("in time")])
            late = asyncio.create_task(chat(to, [user("too late")]))
            await asyncio.sleep(0.2)
            ending.set()
            late.cancel()
        return 1.0

    kept, late = run(make(program), {"alice": slow}).trajectories
    assert (kept.status, kept.reward, kept.as_learned().trainable) == ("ok", 1.0, True)
    assert not late.as_learned().trainable


@pytest.mark.parametrize(
    ("settings", "learned"),
    [({}, [0, 1, 2]), ({"train_turns": "last"}, [2]), ({"turns": "a_function:odd"}, [1])],
)
def test_which_turns_are_learned(
    make: Make, monkeypatch: pytest.MonkeyPatch, settings: Any, learned: list[int]
) -> None:
    def odd(played: Played) -> bool:
        assert (played.role, played.turns, played.answer.text) == ("alice", 3, "y")
        return bool(played.turn % 2)

    monkeypatch.setitem(sys.modules, "a_function", type(sys)("a_function"))
    monkeypatch.setattr(sys.modules["a_function"], "odd", odd, raising=False)

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            messages: list[Any] = []
            for turn in range(3):
                messages.append(user(f"turn {turn} "))
                messages.append(await chat(to, messages))
        return 1.0

    (row,) = run(make(program, **settings), {"alice": saying("y")}).trajectories
    mask = row.as_learned().mask
    assert [bool(mask[a:b].all()) for a, b in row.turns] == [t in learned for t in range(3)]


@pytest.mark.parametrize(
    ("mode", "sampled", "ignored"),
    [("train", [(1.0, 1.0)] * 3, 2.0), ("eval", [(0.2, 1.0), (1.0, 0.5), (1.0, 1.0)], 0.0)],
)
def test_a_program_s_temperature_holds_in_evaluations(
    make: Make, mode: str, sampled: list[Any], ignored: float
) -> None:
    seen: list[tuple[float, float]] = []

    async def policy(prompt: Prompt, sampling: Sampling) -> Completion:
        seen.append((sampling.temperature, sampling.top_p))
        return await saying("y")(prompt, sampling)

    named = [{"temperature": 0.2}, {"top_p": 0.5}, {}]

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            for place, more in enumerate(named):
                await chat(to, [user(f"{place}")], **more)
        return 1.0

    row, *_ = run(make(program), {"alice": policy}, mode=mode).trajectories
    assert seen == sampled
    assert row.info["sampling_ignored"] == ignored
    assert row.info["sampling_named"] == named


def test_tools_and_streams(make: Make) -> None:
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            messages: list[Any] = [user("1 + 1?")]
            reply = await chat(to, messages, tools=[tool])
            (call,) = reply["tool_calls"]
            assert (call["function"]["name"], reply["content"]) == ("add", None)
            assert json.loads(call["function"]["arguments"]) == {"a": 1}
            result = {"role": "tool", "tool_call_id": call["id"], "content": "2"}
            body = {"model": "alice", "messages": [*messages, reply, result], "tools": [tool]}
            text, names = "", []
            async with to.stream("POST", "/chat/completions", json={**body, "stream": True}) as got:
                async for line in got.aiter_lines():
                    if line.startswith("data: {"):
                        delta = json.loads(line[6:])["choices"][0]["delta"]
                        names += list(delta)
                        text += delta.get("content") or ""
            assert (text, names) == ("Answer: 2", ["role", "content"])
        return 1.0

    calls = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    episode = run(make(program), {"alice": saying(calls, "Answer: 2")})
    (row,) = episode.trajectories
    assert row.as_learned().mask.sum() == len(calls) + 1 + len("Answer: 2") + 1
    assert row.info["bridged"] == 1.0


def test_calls_at_the_same_time_are_answered_one_by_one(make: Make) -> None:
    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            asked = [chat(to, [user(f"{place}")]) for place in range(8)]
            assert len(await asyncio.gather(*asked)) == 8
        return 1.0

    episode = run(make(program), {"alice": babbling})
    assert len(episode.trajectories) == 8


def test_a_list_pays_turn_by_turn(make: Make) -> None:
    """A number for each answer that the program got; what it did not get was paid nothing."""

    async def program(endpoints: Any, problem: Any) -> Any:
        async with client(endpoints) as to:
            await chat(to, [user("a")])
            lost = asyncio.create_task(chat(to, [user("b")]))
            await asyncio.to_thread(asked.wait, 10)
            lost.cancel()
            await asyncio.wait([lost])
            gone.set()
            await chat(to, [user("c")])
            await chat(to, [user("d")], model="bob")
        return {"alice": [0.25, 0.5], "bob": 1.0}

    asked, gone = threading.Event(), threading.Event()

    async def slow(prompt: Prompt, sampling: Sampling) -> Completion:
        if CODEC.decode(prompt.tokens) == "b":
            asked.set()
            await asyncio.to_thread(gone.wait, 10)
            await asyncio.sleep(0.1)
        return await saying("y")(prompt, sampling)

    env = make(program, "alice", "bob")
    last: list[Any] = []
    stepped = env.step_result
    env.step_result = lambda *a, done, **k: (last.append(a[1]), stepped(*a, done=done, **k))[1]
    rows = run(env, dict.fromkeys(("alice", "bob"), slow)).trajectories
    assert {row.agent: row.reward for row in rows} == {"alice_0": 0.75, "bob_0": 1.0}
    assert last[-1]["alice_0"]["turn_rewards"] == [0.25, 0.0, 0.5]
    assert "turn_rewards" not in last[-1]["bob_0"]


COMMAND = """
import json, os, sys, urllib.request
assert os.environ["COTERIE_ROLES"] == "alice"
problem = json.loads(os.environ["COTERIE_PROBLEM"])
assert "gold" not in problem
body = {"model": "alice", "messages": [{"role": "user", "content": problem["question"]}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps(body).encode(),
    {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
)
text = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
"""


@pytest.mark.parametrize(
    ("ending", "reward", "words"),
    [
        ("print(text)", 1.0, "ok"),
        ("open(os.environ['COTERIE_ANSWER'], 'w').write(text); print('chatter')", 1.0, "ok"),
        ("print(json.dumps({'rewards': {'alice': 0.25}}))", 0.25, "ok"),
        ("print(json.dumps({'rewards': {'alice': [0.5]}}))", 0.5, "ok"),
        ("sys.exit('out of luck')", 0.0, "ended with 1: out of luck"),
        ("print('x' * (1 << 21))", 0.0, "wrote more than"),
        ("import time; time.sleep(60)", 0.0, "did nothing for 6 s"),
    ],
)
def test_a_command(make: Make, tmp_path: Path, ending: str, reward: float, words: str) -> None:
    script = tmp_path / "my agents.py"
    script.write_text(COMMAND + ending)
    env = make(f"{sys.executable} '{script}'", patience_s=6.0 if "sleep" in ending else 60.0)
    start = time.monotonic()
    (row,) = run(env, {"alice": saying("Answer: 2")}).trajectories
    assert (row.reward, words in row.status) == (reward, True)
    assert time.monotonic() - start < 50


@pytest.mark.parametrize("line", ["", "no-such-program x", "python 'unclosed"])
def test_a_command_that_is_none_is_refused(make: Make, line: str) -> None:
    with pytest.raises(UserError, match="env 'command:"):
        make(line)


def test_an_episode_that_is_given_up_ends_its_program(make: Make) -> None:
    ended = threading.Event()

    async def program(endpoints: Any, problem: Any) -> float:
        try:
            async with client(endpoints) as to:
                await chat(to, [user("x")])
        finally:
            ended.set()
        return 1.0

    env = make(program)
    env.reset(seed=1, options={"problem": PROBLEM})
    env.reset(seed=1, options={"problem": PROBLEM})
    assert ended.wait(10)
    env.close()


def test_nothing_is_left_of_ended_episodes(make: Make) -> None:
    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            await chat(to, [user("x")])
        return 1.0

    env = make(program)
    for _ in range(20):
        run(env, {"alice": saying("y")})
    assert gateway()._keys == {}


def test_a_refusal_is_one_sentence() -> None:
    assert (Refused(400, "no").status, Refused(400, "no").sentence) == (400, "no")
    assert END == 256
