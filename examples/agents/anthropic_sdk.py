"""Anthropic's SDK, with a tool and a stream: alice drafts and checks her draft.

``python train.py --env harness:examples.agents.anthropic_sdk:run``
"""

from typing import Any

from anthropic import AsyncAnthropic

ADD: Any = {
    "name": "add",
    "description": "The sum of two numbers.",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


async def run(endpoints: Any, problem: Any) -> str:
    """Return the last answer, which is graded."""
    client = AsyncAnthropic(base_url=endpoints.anthropic_url, api_key=endpoints.api_key)
    request: Any = {"model": "alice", "max_tokens": 64, "tools": [ADD]}
    messages: list[Any] = [{"role": "user", "content": f"Question: {problem.question}\nSolve:"}]
    async with client:
        draft = await client.messages.create(messages=messages, **request)
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": add(call.input)}
            for call in draft.content
            if call.type == "tool_use"
        ]
        check = {"type": "text", "text": "Check it. The answer:"}
        messages += [
            {"role": "assistant", "content": draft.content},
            {"role": "user", "content": results or [check]},
        ]
        async with client.messages.stream(messages=messages, **request) as stream:
            final = await stream.get_final_message()
    return "".join(block.text for block in final.content if block.type == "text")


def add(arguments: Any) -> str:
    """The tool; invalid arguments get a sentence as its result."""
    try:
        return str(arguments["a"] + arguments["b"])
    except (KeyError, TypeError):
        return "a and b must be numbers"
