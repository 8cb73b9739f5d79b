"""The wires, both ways: what is read of a body, and what is written."""

import json
from typing import Any

import pytest

from coterie.extras.gateway import anthropic, chat, fields, responses
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


def test_a_written_answer_is_read_back_unchanged() -> None:
    message = chat.write(ANSWER, "m")["choices"][0]["message"]
    body = {"model": "m", "messages": [{"role": "user", "content": "u"}, message]}
    assert chat.read(body).messages[-1] == ANSWER.message()
    reply = anthropic.write(ANSWER, "m")
    sent = [{"role": "user", "content": "u"}, {"role": "assistant", "content": reply["content"]}]
    assert anthropic.read({"model": "m", "messages": sent}).messages[-1] == ANSWER.message()
    output = responses.write(ANSWER, "m")["output"]
    assert responses.read({"model": "m", "input": output}).messages[-1] == ANSWER.message()


def test_a_response_goes_on_with_an_earlier_one() -> None:
    talk = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "u"}]
    body = {"model": "m", "input": talk, "instructions": "old"}
    earlier = responses.conversation(body, responses.read(body), Answer("a"))
    brief, said = Message("system", "be brief"), Message("assistant", "a")
    # Instructions hold for one response; what the developer said stays.
    assert earlier == (brief, Message("user", "u"), said)
    for more, first in (({}, ()), ({"instructions": "new"}, (Message("system", "new"),))):
        read = responses.read({"model": "m", "input": "v", **more}, earlier)
        assert read.messages == (*first, *earlier, Message("user", "v"))


def events(stream: Any) -> list[dict[str, Any]]:
    lines = b"".join(stream).decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def test_no_character_of_an_answer_ends_a_line_of_its_stream() -> None:
    answer = Answer("one\u2028two\x85three\u2029")
    chunks = events(chat.events(answer, "m", with_usage=False))
    assert chunks[0]["choices"][0]["delta"]["content"] == answer.text
    assert events(responses.events(answer, "m"))[-1]["response"] == responses.write(answer, "m")


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


@pytest.mark.parametrize("read", [chat.read, anthropic.read, responses.read])
def test_sampling_settings_of_a_program_are_read(read: Any) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "u"}], "input": "u"}
    assert read({**body, "temperature": 0}).sampling == {"temperature": 0.0}
    assert read({**body, "top_p": 0.5, "temperature": None}).sampling == {"top_p": 0.5}
    assert 0 < read({**body, "top_p": 0}).sampling["top_p"] < 0.001
    for name, bad in (("temperature", "hot"), ("temperature", 3), ("top_p", -1), ("top_p", True)):
        with pytest.raises(Refused, match=f"{name} must be a number from 0 to"):
            read({**body, name: bad})


def usual(**more: Any) -> dict[str, Any]:
    """A body that every wire reads."""
    return {"model": "m", "messages": [{"role": "user", "content": "u"}], "input": "u", **more}


@pytest.mark.parametrize(
    "body",
    [
        {"max_completion_tokens": None, "max_tokens": 4},
        {"max_tokens": None, "max_completion_tokens": 4},
        {"max_tokens": 9, "max_completion_tokens": 4},
        {"max_tokens": 4, "max_completion_tokens": 9},
    ],
)
def test_the_lowest_limit_applies(body: Any) -> None:
    assert chat.read(usual(**body)).max_tokens == 4


def fields_of(wire: Any) -> list[str]:
    """Every optional field that a wire knows."""
    known = [*wire._WIRE.read, *wire._WIRE.only, *wire._WIRE.ignored]
    return [name for name in known if name not in ("model", "messages", "input")]


@pytest.mark.parametrize("wire", [chat, anthropic, responses])
def test_null_counts_as_an_absent_field(wire: Any) -> None:
    read = wire.read(usual())
    for name in [*fields_of(wire), "no_such_field"]:
        assert wire.read(usual(**{name: None})) == read, name


def test_null_inside_messages_and_tools_counts_as_absent() -> None:
    function = {"name": "add", "description": None, "parameters": None}
    call = {"id": None, "type": None, "function": {"name": "add", "arguments": None}}
    talk = [
        {"role": "user", "content": [{"type": None, "text": "u"}]},
        {"role": "assistant", "content": None, "tool_calls": [call], "audio": None},
        {"role": "tool", "content": None, "tool_call_id": None},
    ]
    read = chat.read(usual(messages=talk, tools=[{"type": None, "function": function}]))
    assert read.tools == (Tool("add", "", "{}"),)
    expected = (
        Message("user", "u"),
        Message("assistant", "", (ToolCall("", "add", "{}"),)),
        Message("tool", ""),
    )
    assert read.messages == expected
    use = {"type": "tool_use", "id": None, "name": "add", "input": None}
    result = {"type": "tool_result", "tool_use_id": None, "content": None}
    talk = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    tools = [{"type": None, "name": "add", "description": None, "input_schema": None}]
    read = anthropic.read(usual(messages=talk, tools=tools))
    assert (read.messages, read.tools) == (expected, (Tool("add", "", "{}"),))
    items = [
        {"type": None, "role": "user", "content": "u"},
        {"type": "function_call", "call_id": None, "name": "add", "arguments": None},
        {"type": "function_call_output", "call_id": None, "output": None},
    ]
    tools = [{"type": None, "name": "add", "description": None, "parameters": None}]
    read = responses.read(usual(input=items, tools=tools))
    assert (read.messages, read.tools) == (expected, (Tool("add", "", "{}"),))


@pytest.mark.parametrize("wire", [chat, anthropic, responses])
def test_a_setting_of_sampling_that_is_not_obeyed_is_counted(wire: Any) -> None:
    assert wire.read(usual(seed=3)).ignored
    assert not wire.read(usual()).ignored


def test_settings_without_effect_are_not_counted() -> None:
    nothing = {"frequency_penalty": 0.0, "presence_penalty": 0, "repetition_penalty": 1.0,
               "top_k": -1, "min_p": 0, "verbosity": "medium"}  # fmt: skip
    assert not chat.read(usual(**nothing)).ignored
    assert chat.read(usual(reasoning_effort="low")).ignored
    assert responses.read(usual(reasoning={"effort": "low"})).ignored
    assert not responses.read(usual(reasoning={"effort": None})).ignored
    assert responses.read(usual(text={"format": {"type": "text"}, "verbosity": "low"})).ignored
    assert anthropic.read(usual(output_config={"effort": "low"})).ignored


@pytest.mark.parametrize(
    ("wire", "body", "words"),
    [
        # A field that no wire reads, and fields of which some values are read.
        (chat, {"guided_json": {}}, "guided_json is not supported"),
        (chat, {"a b\nc": 1}, "'a b.nc' is not"),
        (chat, {"n": 2}, "n is not supported"),
        (chat, {"tool_choice": "required"}, "tool_choice is not supported"),
        (chat, {"response_format": {"type": "json_object"}}, "response_format is not"),
        (chat, {"chat_template_kwargs": {"enable_thinking": False}}, "chat_template_kwargs is not"),
        (chat, {"max_tokens": 0}, "max_tokens must be"),
        (chat, {"stop": [""]}, "stop must be"),
        (chat, {"model": ""}, "model must be text"),
        (chat, {"stream": "false"}, "stream must be true or false"),
        (chat, {"messages": [{"role": "robot"}]}, "has the role 'robot'"),
        (chat, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "only text"),
        (chat, {"messages": [{"role": "assistant", "function_call": {}, "refusal": "no"}]},
         "the refusal of a message"),
        (chat, {"messages": [{"role": "tool", "content": {"sum": 3}}]}, "text, or a list of parts"),
        (chat, {"messages": [{"role": "tool", "content": ["a"]}]}, "text, or a list of parts"),
        (chat, {"messages": [{"role": "tool", "tool_call_id": 7}]}, "tool_call_id must be text"),
        (anthropic, {"max_completion_tokens": 3}, "max_completion_tokens is not"),
        (anthropic, {"tool_choice": {"type": "any"}}, "tool_choice is not"),
        (anthropic, {"output_config": {"format": {}}}, "output_config is not supported.*format"),
        (anthropic, {"thinking": {"type": "enabled", "budget_tokens": 9}}, "thinking is not"),
        (anthropic, {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools must be func"),
        (anthropic, {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "'image'"),
        (anthropic, {"messages": [{"role": "user", "content": [
            {"type": "tool_result", "content": {"sum": 3}}]}]}, "text, or a list of parts"),
        (responses, {"max_tokens": 3}, "max_tokens is not"),
        (responses, {"truncation": "auto"}, "truncation is not"),
        (responses, {"text": {"format": {"type": "json_object"}}}, "text is not.*format"),
        (responses, {"include": ["message.output_text.logprobs"]}, "include is not"),
        (responses, {"tools": [{"type": "web_search"}]}, "tools must be functions"),
        (responses, {"input": [{"type": "item_reference"}]}, "'item_reference'"),
        (responses, {"input": [{"type": "function_call_output", "output": {"sum": 3}}]},
         "text, or a list of parts"),
    ],
)  # fmt: skip
def test_a_request_is_refused_rather_than_obeyed_in_part(wire: Any, body: Any, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        wire.read(usual(**body))
    assert refused.value.status == 400
    assert "\n" not in refused.value.sentence


def test_whether_several_tools_may_be_called() -> None:
    function = {"name": "add"}
    for wire, tools, one, none in (
        (chat, [{"function": function}], {"parallel_tool_calls": False}, {"tool_choice": "none"}),
        (responses, [function], {"parallel_tool_calls": False}, {"tool_choice": "none"}),
        (
            anthropic,
            [function],
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            {"tool_choice": {"type": "none"}},
        ),
    ):
        assert not wire.read(usual(tools=tools)).one_call
        assert wire.read(usual(tools=tools, **one)).one_call
        assert wire.read(usual(tools=tools, **none)).tools == ()


@pytest.mark.parametrize("body", [b'{"model": "\\ud83d"}', b'{"a": "\\ud83d\\\\ude00"}'])
def test_half_a_surrogate_pair_is_refused(body: bytes) -> None:
    with pytest.raises(Refused, match="half of a surrogate pair") as refused:
        fields.read_body(body)
    assert refused.value.status == 400


def test_a_surrogate_pair_is_a_character() -> None:
    assert fields.read_body(b'{"a": "\\ud83d\\ude00", "b": "\\\\ud83d"}') == {
        "a": "\U0001f600",
        "b": "\\ud83d",
    }
