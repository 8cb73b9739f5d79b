"""How episodes end: by failures, budgets, retries, and clients that are gone."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coterie.datatypes import Completion, PolicyFailure, Prompt, Sampling, UserError
from coterie.extras.gateway.gateway import gateway
from coterie.rollouts import Deadlines, play

from .conftest import CODEC, PROBLEM, asks, chat, client, run, saying, user

Make = Callable[..., Any]
Post = Callable[..., Any]


async def _raises(endpoints: Any, problem: Any) -> None:
    await asks(endpoints, problem)
    raise ValueError("no luck")


async def _hangs(endpoints: Any, problem: Any) -> None:
    await asks(endpoints, problem)
    await asyncio.sleep(60)


def _until(gone: threading.Event, asked: threading.Event) -> Any:
    """A policy that sets ``asked`` and answers y a little after ``gone``."""

    async def slow(prompt: Prompt, sampling: Sampling) -> Completion:
        if not gone.is_set():
            asked.set()
            await asyncio.to_thread(gone.wait, 10)
            await asyncio.sleep(0.1)
        return await saying("y")(prompt, sampling)

    return slow


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
        return await asks(endpoints, problem)

    env = make(program)
    with pytest.raises(UserError, match="no luck, before it asked anything"):
        run(env, {"alice": saying("y")})
    assert len(run(env, {"alice": saying("y")}).trajectories) == 1
    episode = run(env, {"alice": saying("y")})
    assert episode.trajectories == ()
    assert episode.info["failure"] == "the program raised ValueError: no luck"


def test_a_model_that_fails_is_an_error_for_the_program(post: Post) -> None:
    async def failing(prompt: Prompt, sampling: Sampling) -> Completion:
        raise PolicyFailure("it is down")

    (reply,), episode = post(failing, {"messages": [user("x")]})
    assert (reply.status_code, reply.headers["x-should-retry"]) == (503, "false")
    assert [row.status for row in episode.trajectories] == ["failed: it is down"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"max_calls": 2}, "used up its 2 calls"), ({"max_tokens": 4}, "used up its 4 tokens")],
)
def test_a_budget_ends_in_an_error_and_the_rows_are_kept(
    post: Post, settings: Any, words: str
) -> None:
    bodies = [{"messages": [user("x")]}] * 3
    replies, episode = post(saying("y"), *bodies, **settings)  # two tokens an answer
    assert [reply.status_code for reply in replies] == [200, 200, 429]
    assert words in replies[2].json()["error"]["message"]
    assert [row.trainable for row in episode.trajectories] == [True, True]
    assert episode.info["refused"] == 1.0


def test_the_limit_of_tokens_holds_for_calls_that_wait(make: Make) -> None:
    statuses: list[int] = []

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            bodies = [{"model": "alice", "messages": [user(f"{place}")]} for place in range(5)]
            sent = (to.post("/chat/completions", json=body) for body in bodies)
            statuses.extend(reply.status_code for reply in await asyncio.gather(*sent))
        return 1.0

    episode = run(make(program, max_tokens=4), {"alice": saying("y")})  # two tokens an answer
    assert sorted(statuses) == [200, 200, 429, 429, 429]
    assert [row.trainable for row in episode.trajectories] == [True, True]
    assert episode.info["refused"] == 3.0


def test_an_episode_may_have_as_many_turns_as_calls(make: Make) -> None:
    """Whatever limit holds for other environments."""

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            for _ in range(4):
                for role in ("alice", "bob"):
                    await chat(to, [user("x")], model=role)
        return 1.0

    env = make(program, "alice", "bob", max_calls=4)
    few = Deadlines(turns=2)
    policies = dict.fromkeys(("alice", "bob"), saying("y"))
    options, sampling = {"problem": PROBLEM, "step": 1}, Sampling(max_new_tokens=50)
    played = play(env, policies, seed=1, options=options, sampling=sampling, deadlines=few)
    episode = asyncio.run(played)
    env.close()
    assert [row.status for row in episode.trajectories] == ["ok"] * 8
    assert episode.info["failed"] == 0.0


def test_the_keys_of_an_episode_die_with_it(make: Make) -> None:
    kept: list[Any] = []

    async def program(endpoints: Any, problem: Any) -> float:
        kept.append(endpoints)
        return await asks(endpoints, problem)

    run(make(program), {"alice": saying("y")})

    async def late(endpoint: Any) -> int:
        async with client(endpoint) as to:
            body = {"model": "alice", "messages": [user("x")]}
            return (await to.post("/chat/completions", json=body)).status_code

    (endpoints,) = kept
    guessed = replace(endpoints["alice"], api_key="sk-guessed")
    keys = (endpoints, endpoints["alice"], guessed)
    assert [asyncio.run(late(key)) for key in keys] == [409, 409, 401]


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


def test_a_retry_of_a_call_that_was_given_up_is_sampled(make: Make) -> None:
    """It waited behind another, and its client was gone before its turn came."""
    asked, gone = threading.Event(), threading.Event()

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            first = asyncio.create_task(chat(to, [user("first")]))
            await asyncio.to_thread(asked.wait, 10)
            second = asyncio.create_task(chat(to, [user("second")]))
            await asyncio.sleep(0.1)
            second.cancel()
            await asyncio.wait([second])
            gone.set()
            await first
            body = {"model": "alice", "messages": [user("second")]}
            again = {"x-stainless-retry-count": "1"}
            reply = await to.post("/chat/completions", json=body, headers=again)
            assert reply.status_code == 200
        return 1.0

    episode = run(make(program), {"alice": _until(gone, asked)})
    assert [CODEC.decode(row.tokens) for row in episode.trajectories] == ["firsty", "secondy"]
    assert (episode.info["abandoned"], episode.info["replayed"]) == (1.0, 0.0)


def test_an_answer_that_reaches_nobody_is_not_learned(make: Make) -> None:
    asked, gone = threading.Event(), threading.Event()

    async def program(endpoints: Any, problem: Any) -> float:
        async with client(endpoints) as to:
            call = asyncio.create_task(chat(to, [user("lost")]))
            await asyncio.to_thread(asked.wait, 10)
            call.cancel()
            await asyncio.wait([call])
            gone.set()
            await chat(to, [user("found")])
        return 1.0

    lost, kept = run(make(program), {"alice": _until(gone, asked)}).trajectories
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


def test_abandoning_an_episode_ends_its_program(make: Make) -> None:
    ended = threading.Event()

    async def program(endpoints: Any, problem: Any) -> float:
        try:
            return await asks(endpoints, problem)
        finally:
            ended.set()

    env = make(program)
    env.reset(seed=1, options={"problem": PROBLEM})
    env.reset(seed=1, options={"problem": PROBLEM})
    assert ended.wait(10)
    env.close()


def test_nothing_is_left_of_ended_episodes(make: Make) -> None:
    env = make(asks)
    for _ in range(20):
        run(env, {"alice": saying("y")})
    assert gateway()._keys == {}
