"""An agent of smolagents with a tool, in a function without ``async``.

``python train.py --env harness:examples.agents.smolagents_solver:run``
"""

from typing import Any

from smolagents import OpenAIServerModel, ToolCallingAgent, tool
from smolagents.monitoring import LogLevel


@tool
def add(a: int, b: int) -> int:
    """The sum of two numbers.

    Args:
        a: the first number.
        b: the second number.
    """
    return a + b


def run(endpoints: Any, problem: Any) -> str:
    """Return the agent's final answer, which is graded."""
    # By default smolagents requires a tool call, to which a model cannot be forced here.
    address = {"api_base": endpoints.base_url, "api_key": endpoints.api_key}
    model = OpenAIServerModel("alice", tool_choice="auto", **address)
    agent = ToolCallingAgent(tools=[add], model=model, max_steps=2, verbosity_level=LogLevel.OFF)
    return str(agent.run(problem.question))
