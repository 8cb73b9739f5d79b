"""Programs that play an episode, well-behaved and otherwise."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from coterie.datatypes import Completion, Episode, Policy, Prompt, Sampling, UserError
from coterie.envs import ConversationEnv, Outcome
from coterie.envs.token_view import TokenView
from coterie.extras.gateway.outcome import Played
from coterie.rollouts.collect import check_paid

from .conftest import CODEC, asks, babbling, chat, client, run, said, saying, user

Make = Callable[..., Any]


async def twice(endpoints: Any, problem: Any) -> str:
    async with client(endpoints) as to:
        messages = [user(problem.question)]
        reply = await chat(to, messages)
        messages += [said(reply["content"]), user("Again:")]
        return (await chat(to, messages))["content"]


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


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


def test_a_role_that_returns_to_a_conversation_continues_its_row(make: Make) -> None:
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
        (float("inf"), "not a finite"),
        ({"alice": None}, "the reward of alice is None"),
        (Unprintable(), "gave a Unprintable; it must"),
        ({3: 1.0}, "by role"),
    ],
)
def test_an_unreadable_result_fails_its_episode(make: Make, result: Any, words: str) -> None:
    async def program(endpoints: Any, problem: Any) -> Any:
        await asks(endpoints, problem)
        return result

    episode = run(make(program), {"alice": saying("y")})
    (row,) = episode.trajectories
    assert not row.trainable
    assert words in row.status
    assert "\n" not in row.status
    assert episode.info["unpaid"] == episode.info["failed"] == 1.0
    assert row.reward == 0.0


def test_an_episode_without_calls_fails(make: Make) -> None:
    episode = run(make(lambda endpoints, problem: 1.0), {"alice": saying("y")})
    assert episode.trajectories == ()
    assert episode.info["failure"] == "the program asked no role anything"
    assert episode.info["failed"] == 1.0


@pytest.mark.parametrize(
    ("episodes", "unpaid", "stops"),
    [(1, 1, True), (4, 1, False), (4, 2, True), (64, 6, False), (64, 7, True)],
)
def test_a_run_stops_when_a_tenth_of_its_episodes_is_unpaid(
    episodes: int, unpaid: int, stops: bool
) -> None:
    def episode(place: int) -> Episode:
        info = {"failure": f"reason {place % 2}", "unpaid": 1.0} if place < unpaid else {}
        return Episode("p", 1, 1, "train", (), info)

    played = [episode(place) for place in range(episodes)]
    if not stops:
        assert check_paid(played) is played
        return
    with pytest.raises(UserError, match=rf"^{unpaid} of {episodes} episodes ended .*: reason 0$"):
        check_paid(played)


def test_a_function_that_is_no_coroutine(make: Make) -> None:
    def program(endpoints: Any, problem: Any) -> float:
        body = {"model": "alice", "messages": [user("x")]}
        headers = {"authorization": f"Bearer {endpoints.api_key}"}
        url = f"{endpoints.base_url}/chat/completions"
        assert httpx2.post(url, json=body, headers=headers).status_code == 200
        return 1.0

    (row,) = run(make(program), {"alice": saying("y")}).trajectories
    assert row.reward == 1.0


@pytest.mark.parametrize(
    ("settings", "learned"),
    [({}, [0, 1, 2]), ({"train_turns": "last"}, [2]), ({"turns": "a_function:odd"}, [1])],
)
def test_the_chosen_turns_are_learned(
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


def test_an_exception_in_the_choice_of_turns_is_one_sentence(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(played: Played) -> bool:
        return played.answer.content  # type: ignore[attr-defined]

    monkeypatch.setitem(sys.modules, "a_function", type(sys)("a_function"))
    monkeypatch.setattr(sys.modules["a_function"], "fails", fails, raising=False)
    words = "--env.turns a_function:fails raised AttributeError: 'Answer' object has no attribute"
    with pytest.raises(UserError, match=words):
        run(make(twice, turns="a_function:fails"), {"alice": saying("y")})


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


def test_instructions_hold_for_one_response(make: Make) -> None:
    log: list[Prompt] = []

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            body: dict[str, Any] = {"model": "alice", "input": "u", "instructions": "i"}
            name = (await to.post("/responses", json=body)).json()["id"]
            for more in ({"instructions": "i"}, {"instructions": "j"}, {}):
                body = {"model": "alice", "input": "v", "previous_response_id": name, **more}
                await to.post("/responses", json=body)
        return 1.0

    run(make(program), {"alice": saying("y", log=log)})
    read = [CODEC.decode(prompt.tokens) for prompt in log]
    assert read == ["i\nu", "i\nuyv", "j\nuyv", "uyv"]


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
