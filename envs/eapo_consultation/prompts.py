"""What the policy and the experts are asked."""

import json

from envs.eapo_consultation.settings import PromptStyle

# EAPO, arXiv:2509.23730, appendix: the prompt of evaluation, word for word.
ALONE = (
    "You are a helpful assistant. You must give the final answer in the last line, in the format "
    'of "Answer: xxx", xxx represents the final answer.'
)

# The facts are the paper's, the words are ours.
_PANEL = """\
You are a helpful assistant who solves problems step by step. Write your reasoning between <think> \
and </think>.

{experts}. Each is a strong solver, but may be wrong: take what they say as another point of view. \
In all, you may consult them {budget} times on a question. You may ask {at_once}; \
an expert sees nothing but your query.

To consult, close your thoughts and write a list of objects between <agent_calls> and \
</agent_calls>. Each object has the required integer "expert_id" and the required object \
"input_parameters", which holds the required string "query". What the experts reply, their \
reasoning included, comes back as a list between <agent_returns> and </agent_returns>. Then go on.

Give the final answer in the last line. It begins with "Answer: ".

Example
Question: What does NomanLand export, and from which capital?
<think>I need the capital of NomanLand and what it exports.</think>
<agent_calls>[{calls}]</agent_calls>
<agent_returns>[{returns}]</agent_returns>
<think>That settles it.</think>
Answer: copper from Nomanville

Question: {question}"""
_EXAMPLE = (
    ("What is the capital of NomanLand?", "Its one large city. Answer: Nomanville"),
    ("What is NomanLand's main export?", "It has mines and little else. Answer: copper"),
)
_PLAIN_PANEL = "Question: {question}\nExperts: 1 to {experts}\nSolve:"
_PLAIN = "Question: {question}\nSolve:"


def training_prompt(
    question: str, style: PromptStyle, *, experts: int, at_once: int, budget: int
) -> str:
    """The policy's message where experts can be consulted, ``at_once`` of them in one block."""
    if style == "plain":
        return _PLAIN_PANEL.format(question=question, experts=experts)
    panel = (
        "One expert, with the id 1, may be consulted"
        if experts == 1
        else f"A panel of {experts} experts, with the ids 1 to {experts}, may be consulted"
    )
    # Where one expert is asked at a time, it is asked for both things.
    together = (tuple(" ".join(parts) for parts in zip(*_EXAMPLE)),)
    asked = _EXAMPLE if at_once > 1 else together
    calls = [
        {"expert_id": place, "input_parameters": {"query": query}}
        for place, (query, _) in enumerate(asked, start=1)
    ]
    replies = [
        {"expert_id": place, "result": reply} for place, (_, reply) in enumerate(asked, start=1)
    ]
    return _PANEL.format(
        question=question,
        experts=panel,
        at_once=_at_once(experts, at_once),
        budget=budget,
        calls=", ".join(map(json.dumps, calls)),
        returns=", ".join(map(json.dumps, replies)),
    )


def _at_once(experts: int, at_once: int) -> str:
    if at_once == 1:
        return "one of them at a time" if experts > 1 else "one thing at a time"
    several = "several" if at_once == experts else f"up to {at_once}"
    return f"one of them or {several} at once, the same thing or different things"


def lone_prompt(question: str, style: PromptStyle) -> str:
    """The message of a policy on its own, and of an expert."""
    return _PLAIN.format(question=question) if style == "plain" else f"{ALONE}\n\n{question}"
