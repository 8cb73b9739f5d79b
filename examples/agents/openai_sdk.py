"""A debate in OpenAI's SDK: two propose, read each other, and answer again.

``python train.py --env harness:examples.agents.openai_sdk:run --roles alice bob``
"""

import asyncio
from typing import Any

from openai import AsyncOpenAI

from coterie.envs.reasoning import strip_answers
from coterie.rewards.grading.scorer import AnswerScorer

SCORER = AnswerScorer()


async def run(endpoints: Any, problem: Any) -> dict[str, float]:
    """Reward each for its own last answer."""
    client = AsyncOpenAI(base_url=endpoints.base_url, api_key=endpoints.api_key)

    async def answer(role: str, hint: str = "") -> str:
        text = f"Question: {problem.question}\n{hint}Let's solve this step by step:"
        reply = await client.chat.completions.create(
            model=role, messages=[{"role": "user", "content": text}]
        )
        return reply.choices[0].message.content or ""

    def hint(other: str) -> str:
        """The other's text without its answer."""
        return f"Hint:\n{strip_answers(other)}\n"

    async with client:
        alice, bob = await asyncio.gather(answer("alice"), answer("bob"))
        last = await asyncio.gather(answer("alice", hint(bob)), answer("bob", hint(alice)))
    right = [float(SCORER.check(text, problem).correct) for text in last]
    return {"alice": right[0], "bob": right[1]}
