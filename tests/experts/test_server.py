"""What a server is asked, and how a sound reply is read."""

import asyncio
import math

import pytest

from coterie.datatypes import PolicyFailure, Sampling, UserError

LIMITS = Sampling(max_new_tokens=64)


async def test_a_reply_becomes_tokens_without_logprobs(server, policy, ask, codec):
    expert = policy()
    completion = await expert(ask(), LIMITS)
    assert codec.decode(completion.tokens) == "Answer: 4"
    assert completion.finish_reason == "eos"
    assert completion.logprobs.shape == (9,)
    assert completion.usage == (11, 5)
    assert all(math.isnan(x) for x in completion.logprobs)
    assert expert.counters.as_dict() == {
        "calls": 1, "answered": 1, "failed": 0, "attempts": 1, "retries": 0, "shortened": 0,
        "reply_tokens": 9, "server_prompt_tokens": 11, "server_completion_tokens": 5,
        "seconds": expert.counters.seconds,
    }  # fmt: skip
    assert 0 < expert.counters.seconds < 1


async def test_chat_request(server, policy, ask):
    expert = policy(system_prompt="Be brief.", extra_body='{"min_p": 0.1}')
    sampling = Sampling(max_new_tokens=64, temperature=0.5, top_p=0.9, top_k=20, stop=("END",))
    await expert(ask(seed=2**31 + 5), sampling)
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.json == {
        "model": "m",
        "stream": False,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "2 + 2 = ?"},
        ],
        "max_tokens": 16,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 20,
        "stop": ["END"],
        "seed": 5,
        "min_p": 0.1,
    }
    assert "authorization" not in request.headers


async def test_completions_request(server, policy, ask, codec):
    server.script = [server.says(message=None, text=" 4")]
    expert = policy(
        base_url=server.url + "/api/v2/", api="completions", send_seed=False, max_tokens=500
    )
    completion = await expert(ask(), LIMITS)
    [request] = server.requests
    assert request.path == "/api/v2/completions"
    assert request.json == {
        "model": "m", "stream": False, "prompt": "2 + 2 = ?",
        "max_tokens": 500, "temperature": 1.0, "top_p": 1.0,
    }  # fmt: skip
    assert codec.decode(completion.tokens) == "4"


async def test_null_leaves_a_field_out(server, policy, ask):
    body = '{"max_tokens": null, "max_completion_tokens": 9, "temperature": null, "top_p": null}'
    await policy(extra_body=body, send_seed=False)(ask(), LIMITS)
    assert server.requests[0].json == {
        "model": "m", "stream": False, "max_completion_tokens": 9,
        "messages": [{"role": "user", "content": "2 + 2 = ?"}],
    }  # fmt: skip


async def test_key_is_sent_and_shown_nowhere(server, policy, ask, caplog):
    caplog.set_level("DEBUG")
    key = "sk-very-secret-value"
    server.script = [server.sends(f"bad key {key}".encode(), status="400 Bad Request")]
    expert = policy({"EXPERT_KEY": key}, api_key_env="EXPERT_KEY")
    with pytest.raises(PolicyFailure) as failure:
        await expert(ask(), LIMITS)
    assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    seen = f"{failure.value}{expert.counters}{expert!r}{expert.settings}{caplog.text}"
    seen += str(expert.identity())
    assert "very-secret" not in seen
    assert expert.counters.examples == {"http_400": "(not shown)"}


@pytest.mark.parametrize("value", [None, "", "  ", "two\nlines", "schlüssel"])
async def test_unusable_key(policy, value):
    environ = {} if value is None else {"EXPERT_KEY": value}
    with pytest.raises(UserError, match="EXPERT_KEY"):
        policy(environ, api_key_env="EXPERT_KEY")


INLINE = {"content": "<think>\n2 and 2\n</think>\n\nAnswer: 4"}
SEPARATED = {"content": "4", "reasoning_content": "2 and 2"}


@pytest.mark.parametrize(
    ("message", "settings", "kept"),
    [
        (INLINE, {}, "Answer: 4"),
        (INLINE, {"strip_thinking": False}, INLINE["content"]),
        (SEPARATED, {}, "4"),
        (SEPARATED, {"strip_thinking": False}, "<think>2 and 2</think>\n4"),
    ],
)
async def test_thinking_is_stripped(server, policy, ask, codec, message, settings, kept):
    server.script = [server.says(message=message)]
    completion = await policy(**settings)(ask(), LIMITS)
    assert codec.decode(completion.tokens) == kept


@pytest.mark.parametrize(
    "choice",
    [
        {"content": "<think>it is", "finish_reason": "length"},
        {"content": "<think>it is</think>  "},
        {"message": {"content": None, "reasoning": "it is"}, "finish_reason": "length"},
    ],
)
async def test_only_thinking_is_no_reply(server, policy, ask, choice):
    server.script = [server.says(**choice)]
    expert = policy(retries=3)
    with pytest.raises(PolicyFailure, match="only thought"):
        await expert(ask(), LIMITS)
    assert expert.counters.failures == {"thinking_only": 1}
    assert len(server.requests) == 1
    # What it cost is known all the same.
    assert expert.counters.server_completion_tokens == 5


async def test_token_caps(server, policy, ask, codec):
    """Four bytes count as a token."""
    server.script = [server.says("é" * 5000)]
    expert = policy(max_reply_tokens=5)
    completion = await expert(ask(), LIMITS)
    assert codec.decode(completion.tokens) == "é" * 10
    assert completion.finish_reason == "length"
    assert server.requests[0].json["max_tokens"] == 5
    # Five bytes hold two whole é of two bytes.
    completion = await expert(ask(), Sampling(max_new_tokens=5))
    assert codec.decode(completion.tokens) == "éé"
    assert server.requests[1].json["max_tokens"] == 2
    assert (expert.counters.shortened, expert.counters.reply_tokens) == (2, 24)
    # Without a limit of its own the turn's holds.
    completion = await policy()(ask(), Sampling(max_new_tokens=8000))
    assert codec.decode(completion.tokens) == "é" * 4000
    assert server.requests[2].json["max_tokens"] == 2000


async def test_finish_reasons(server, policy, ask, codec):
    stop = Sampling(max_new_tokens=64, stop=("</call>", "END"))
    server.script = [
        server.says("a", finish_reason="length"),
        server.says("a<call>b", stop_reason="</call>"),  # vLLM leaves the stop string out
        server.says("a<call>b", matched_stop="</call>"),  # so does SGLang
        server.says("a<call>b"),  # OpenAI says nothing of it
        server.says("a<call>b", finish_reason="length"),
        server.says("aENDb</call>"),
        server.says("a"),
    ]
    expert = policy()
    said = [await expert(ask(), stop) for _ in range(7)]
    assert [(codec.decode(c.tokens), c.finish_reason) for c in said] == [
        ("a", "length"),
        *3 * [("a<call>b</call>", "stop")],
        ("a<call>b", "length"),
        ("aEND", "stop"),
        ("a", "eos"),
    ]


async def test_lone_surrogates_both_ways(server, policy, ask, codec):
    server.script = [server.says("x\ud800y")]
    completion = await policy()(ask("a\udfffb"), LIMITS)
    assert codec.decode(completion.tokens) == "x?y"
    assert server.requests[0].json["messages"][0]["content"] == "a?b"


async def test_a_connection_is_used_again_after_an_error_status_too(server, policy, ask):
    server.script = [server.sends(b"{}", status="500 Oops"), server.says()]
    expert = policy()
    for _ in range(4):
        await expert(ask(), LIMITS)
    assert (len(server.requests), server.connections) == (5, 1)


async def test_concurrency_limit(server, policy, ask):
    async def slow(exchange):
        await asyncio.sleep(0.02)
        await exchange.send(server.body())

    server.script = [slow]
    expert = policy(concurrency=3, timeout_s=0.2)
    # 30 calls of 20 ms, three at a time: 200 ms, and the wait counts against nobody's deadline.
    await asyncio.gather(*(expert(ask(seed=i), LIMITS) for i in range(30)))
    assert server.most_in_flight == 3
    assert server.connections == 3
    assert expert.counters.answered == 30


async def test_each_event_loop_has_its_own_connections(server, policy, ask):
    expert = policy()

    def in_a_thread():
        async def main():
            async with expert:
                return await expert(ask(), LIMITS)

        return asyncio.run(main())

    await expert(ask(), LIMITS)
    assert (await asyncio.to_thread(in_a_thread)).finish_reason == "eos"
    await expert(ask(), LIMITS)
    assert expert.counters.answered == 3
    # Two for this loop's calls would mean that the other loop took its connection away.
    assert [request.connection for request in server.requests] == [1, 2, 1]


async def test_models(server, policy):
    server.script = [
        server.sends(b'{"data": [{"id": "m"}, {"id": "n"}]}'),
        server.sends(b'{"data": 3}'),
        server.sends(b"", status="404 Not Found"),
    ]
    expert = policy()
    assert await expert.models() == ["m", "n"]
    assert (server.requests[0].method, server.requests[0].path) == ("GET", "/v1/models")
    with pytest.raises(PolicyFailure, match="does not list"):
        await expert.models()
    with pytest.raises(PolicyFailure, match="404"):
        await expert.models()
