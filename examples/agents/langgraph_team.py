"""A graph of LangGraph: alice drafts, bob reviews, and alice writes again if he is not content.

``python train.py --env harness:examples.agents.langgraph_team:run``
"""

from typing import Any, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """What the nodes hand on."""

    question: str
    draft: str
    review: str
    rounds: int


async def run(endpoints: Any, problem: Any) -> str:
    """The last draft is graded."""
    models = {
        role: ChatOpenAI(model=role, base_url=endpoints.base_url, api_key=endpoints.api_key)
        for role in ("alice", "bob")
    }

    async def draft(state: State) -> dict[str, Any]:
        text = f"Question: {state['question']}\n{state['review']}\nLet's solve this step by step:"
        reply = await models["alice"].ainvoke(text)
        return {"draft": str(reply.content), "rounds": state["rounds"] + 1}

    async def review(state: State) -> dict[str, Any]:
        text = f"Question: {state['question']}\n{state['draft']}\nIs it right? Say 1 or 0:"
        return {"review": str((await models["bob"].ainvoke(text)).content)}

    def content(state: State) -> str:
        return END if "1" in state["review"] or state["rounds"] > 1 else "draft"

    graph = StateGraph(State)
    graph.add_node("draft", draft)
    graph.add_node("review", review)
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "review")
    graph.add_conditional_edges("review", content)
    start: State = {"question": problem.question, "draft": "", "review": "", "rounds": 0}
    return (await graph.compile().ainvoke(start))["draft"]


run.roles = ("alice", "bob")
