"""Anthropic's SDK, with a stream: alice writes, and checks what she wrote.

``python train.py --env harness:examples.agents.anthropic_sdk:run``
"""

from typing import Any

from anthropic import AsyncAnthropic


async def run(endpoints: Any, problem: Any) -> str:
    """The second answer is graded."""
    client = AsyncAnthropic(base_url=endpoints.anthropic_url, api_key=endpoints.api_key)
    messages: list[Any] = [{"role": "user", "content": f"Question: {problem.question}\nSolve:"}]
    async with client:
        draft = await client.messages.create(model="alice", max_tokens=24, messages=messages)
        messages += [
            {"role": "assistant", "content": draft.content},
            {"role": "user", "content": "Check it. The answer:"},
        ]
        async with client.messages.stream(
            model="alice", max_tokens=24, messages=messages
        ) as stream:
            return await stream.get_final_text()
