"""The wires, both ways: what is read of a body, and what is written."""

import json
from typing import Any

import pytest

from coterie.extras.gateway import anthropic, chat, responses
from coterie.extras.gateway.messages import Answer, Message, Refused, Tool, ToolCall

CALL = ToolCall("c1", "add", '{"a": 1, "b": 2}')
SCHEMA = {"type": "object", "properties": {}}
TOOL = Tool("add", "adds", '{"properties": {}, "type": "object"}')
ANSWER = Answer("hm", (CALL,), prompt_tokens=5, completion_tokens=3, id="1")
TALK = (
    Message("system", "s"),
    Message("user", "u"),
    Message("assistant", "hm", (CALL,)),
    Message("tool", "3", answers="c1"),
)


def test_a_conversation_reads_the_same_on_every_wire() -> None:
    """Arguments in another order, content in parts, None for nothing."""
    arguments = '{"b": 2, "a": 1}'
    called = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": arguments}}
    first = chat.read(
        {
            "model": "m",
            "messages": [
                {"role": "developer", "content": "s"},
                {"role": "user", "content": [{"type": "text", "text": "u"}]},
                {"role": "assistant", "content": "hm", "tool_calls": [called], "refusal": None},
                {"role": "tool", "tool_call_id": "c1", "content": "3"},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "add", "description": "adds", "parameters": SCHEMA},
                }
            ],
            "max_tokens": 9,
            "stop": "x",
        }
    )
    two = anthropic.read(
        {
            "model": "m",
            "system": [{"type": "text", "text": "s"}],
            "messages": [
                {"role": "user", "content": "u"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "hm"},
                        {"type": "tool_use", "id": "c1", "name": "add", "input": {"b": 2, "a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "3"}],
                },
            ],
            "tools": [{"name": "add", "description": "adds", "input_schema": SCHEMA}],
            "max_tokens": 9,
            "stop_sequences": ["x"],
        }
    )
    three = responses.read(
        {
            "model": "m",
            "instructions": "s",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "u"}]},
                {"type": "message", "role": "assistant", "content": "hm"},
                {"type": "function_call", "call_id": "c1", "name": "add", "arguments": arguments},
                {"type": "function_call_output", "call_id": "c1", "output": "3"},
            ],
            "tools": [
                {"type": "function", "name": "add", "description": "adds", "parameters": SCHEMA}
            ],
            "max_output_tokens": 9,
        }
    )
    for request in (first, two, three):
        assert request.messages == TALK
        assert request.tools == (TOOL,)
        assert (request.model, request.max_tokens) == ("m", 9)
        assert request.sampling == {}
    assert first.stop == two.stop == ("x",)


def test_what_is_written_is_read_as_what_was_answered() -> None:
    message = chat.write(ANSWER, "m")["choices"][0]["message"]
    body = {"model": "m", "messages": [{"role": "user", "content": "u"}, message]}
    assert chat.read(body).messages[-1] == ANSWER.message()
    reply = anthropic.write(ANSWER, "m")
    sent = [{"role": "user", "content": "u"}, {"role": "assistant", "content": reply["content"]}]
    assert anthropic.read({"model": "m", "messages": sent}).messages[-1] == ANSWER.message()
    output = responses.write(ANSWER, "m")["output"]
    assert responses.read({"model": "m", "input": output}).messages[-1] == ANSWER.message()


def test_a_response_goes_on_with_an_earlier_one() -> None:
    earlier = (Message("system", "old"), Message("user", "u"), Message("assistant", "a"))
    read = responses.read({"model": "m", "input": "v", "instructions": "new"}, earlier)
    assert read.messages == (Message("system", "new"), *earlier[1:], Message("user", "v"))


def events(stream: Any) -> list[dict[str, Any]]:
    lines = b"".join(stream).decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def test_streams_say_the_same() -> None:
    chunks = events(chat.events(ANSWER, "m", with_usage=True))
    deltas = [c["choices"][0]["delta"] for c in chunks if c["choices"]]
    assert deltas[0] == {"role": "assistant", "content": "hm"}
    assert deltas[1]["tool_calls"][0]["function"] == {"name": "add", "arguments": CALL.arguments}
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"]["total_tokens"] == 8
    kinds = [e["type"] for e in events(anthropic.events(ANSWER, "m"))]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert kinds == ["message_start", *block, *block, "message_delta", "message_stop"]
    sent = events(responses.events(ANSWER, "m"))
    assert [e["sequence_number"] for e in sent] == list(range(len(sent)))
    assert sent[-1]["type"] == "response.completed"
    assert sent[-1]["response"] == responses.write(ANSWER, "m")


@pytest.mark.parametrize(
    ("answer", "finish", "stop", "status"),
    [
        (Answer("a"), "stop", "end_turn", "completed"),
        (Answer("a", cut=True), "length", "max_tokens", "incomplete"),
        (ANSWER, "tool_calls", "tool_use", "completed"),
    ],
)
def test_why_an_answer_ended(answer: Answer, finish: str, stop: str, status: str) -> None:
    assert chat.write(answer, "m")["choices"][0]["finish_reason"] == finish
    assert anthropic.write(answer, "m")["stop_reason"] == stop
    assert responses.write(answer, "m")["status"] == status


@pytest.mark.parametrize(
    ("wire", "body", "words"),
    [
        (chat, {"n": 2}, "n is not supported"),
        (chat, {"tool_choice": "required"}, "tool_choice is not supported"),
        (chat, {"response_format": {"type": "json_object"}}, "response_format is not"),
        (chat, {"logit_bias": {"1": 5}}, "logit_bias is not"),
        (chat, {"messages": [{"role": "robot"}]}, "has the role 'robot'"),
        (chat, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "only text"),
        (chat, {"max_tokens": 0}, "max_tokens must be"),
        (chat, {"stop": [""]}, "stop must be"),
        (chat, {"model": ""}, "model must be text"),
        (anthropic, {"tool_choice": {"type": "any"}}, "tool_choice is not"),
        (anthropic, {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "'image'"),
        (responses, {"tools": [{"type": "web_search"}]}, "tools must be functions"),
        (responses, {"input": [{"type": "item_reference"}]}, "'item_reference'"),
    ],
)
def test_what_is_not_supported_is_refused(wire: Any, body: Any, words: str) -> None:
    usual = {"model": "m", "messages": [{"role": "user", "content": "u"}], "input": "u"}
    with pytest.raises(Refused, match=words) as refused:
        wire.read(usual | body)
    assert refused.value.status == 400


def test_no_tools_where_none_may_be_called() -> None:
    tools = [{"type": "function", "function": {"name": "add"}}]
    body = {"model": "m", "messages": [], "tools": tools, "tool_choice": "none"}
    assert chat.read(body).tools == ()


@pytest.mark.parametrize("read", [chat.read, anthropic.read, responses.read])
def test_what_a_program_says_of_sampling_is_read(read: Any) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "u"}], "input": "u"}
    assert read({**body, "temperature": 0}).sampling == {"temperature": 0.0}
    assert read({**body, "top_p": 0.5, "temperature": None}).sampling == {"top_p": 0.5}
    assert 0 < read({**body, "top_p": 0}).sampling["top_p"] < 0.001
    for name, bad in (("temperature", "hot"), ("temperature", 3), ("top_p", -1), ("top_p", True)):
        with pytest.raises(Refused, match=f"{name} must be a number from 0 to"):
            read({**body, name: bad})
