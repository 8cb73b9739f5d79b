"""A graph of LangGraph: alice drafts, bob reviews, and alice drafts again if they differ.

``python train.py --env harness:examples.agents.langgraph_team:run --roles alice bob``
"""

from typing import Any, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """The state that nodes read and update."""

    question: str
    draft: str
    review: str
    drafts: int


def run(endpoints: Any, problem: Any) -> str:
    """Return the last draft, which is graded; both are rewarded.

    Not ``async``: LangChain reuses its asynchronous client, and each episode has its own event
    loop.
    """
    address = {"base_url": endpoints.base_url, "api_key": endpoints.api_key}
    alice, bob = ChatOpenAI(model="alice", **address), ChatOpenAI(model="bob", **address)

    def draft(state: State) -> dict[str, Any]:
        hint = f"Hint:\n{state['review']}\n" if state["review"] else ""
        prompt = f"Question: {state['question']}\n{hint}Let's solve this step by step:"
        return {"draft": str(alice.invoke(prompt).content), "drafts": state["drafts"] + 1}

    def review(state: State) -> dict[str, Any]:
        hint = f"Hint:\n{state['draft']}\n"
        prompt = f"Question: {state['question']}\n{hint}Let's solve this step by step:"
        return {"review": str(bob.invoke(prompt).content)}

    def decide(state: State) -> str:
        agreed = state["draft"].split()[-2:] == state["review"].split()[-2:]
        return END if agreed or state["drafts"] == 2 else "draft"

    graph = StateGraph(State)
    graph.add_node("draft", draft)
    graph.add_node("review", review)
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "review")
    graph.add_conditional_edges("review", decide, [END, "draft"])
    start: State = {"question": problem.question, "draft": "", "review": "", "drafts": 0}
    return graph.compile().invoke(start)["draft"]
