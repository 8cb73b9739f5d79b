"""A debate in OpenAI's SDK: two propose, read each other, and answer again.

``python train.py --env harness:examples.agents.openai_sdk:run``
"""

import asyncio
from typing import Any

from openai import AsyncOpenAI

ASK = "Question: {}\nLet's solve this step by step:"


async def run(endpoints: Any, problem: Any) -> dict[str, float]:
    """Each is paid for its own last answer."""
    client = AsyncOpenAI(base_url=endpoints.base_url, api_key=endpoints.api_key)
    first = {"role": "user", "content": ASK.format(problem.question)}

    async def say(role: str, messages: list[Any]) -> str:
        reply = await client.chat.completions.create(model=role, messages=messages)
        return reply.choices[0].message.content or ""

    async with client:
        alice, bob = await asyncio.gather(say("alice", [first]), say("bob", [first]))

        async def again(role: str, own: str, other: str) -> str:
            heard = {"role": "user", "content": f"The other says: {other}\nYour answer:"}
            return await say(role, [first, {"role": "assistant", "content": own}, heard])

        last = await asyncio.gather(again("alice", alice, bob), again("bob", bob, alice))
    return {
        role: float(text.strip().endswith(problem.gold))
        for role, text in zip(("alice", "bob"), last)
    }


run.roles = ("alice", "bob")
