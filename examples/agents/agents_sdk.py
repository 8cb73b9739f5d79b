"""Two trained agents of the OpenAI Agents SDK: one hands over to the other, which has a tool.

``python train.py --env "command:python examples/agents/agents_sdk.py" --roles alice bob``

It is a command, since the SDK is imported as ``agents``, which is also a folder of Coterie.
"""

import os

from agents import Agent, Runner, function_tool, handoff, set_tracing_disabled  # noqa: TID251
from agents.exceptions import AgentsException  # noqa: TID251


@function_tool
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


def main() -> None:
    """Print the last answer, which is graded; alice answers herself or hands over to bob."""
    set_tracing_disabled(True)
    bob = Agent(name="bob", model="bob", instructions="Solve it step by step.", tools=[add])
    alice = Agent(
        name="alice",
        model="alice",
        instructions="Answer if it is easy; else hand over.",
        handoffs=[handoff(bob, tool_name_override="to_bob")],
    )
    try:
        print(Runner.run_sync(alice, os.environ["COTERIE_QUESTION"], max_turns=4).final_output)
    except AgentsException:  # a tool that does not exist, or too many turns
        print("no answer")


if __name__ == "__main__":
    main()
