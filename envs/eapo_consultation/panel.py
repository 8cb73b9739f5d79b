"""The policy's prompts that describe its panel of experts."""

from coterie.datatypes import AnswerKind
from coterie.envs.prompts import ExpertStyle, answer_sentence

# EAPO, arXiv:2509.23730, appendix G: the training prompt, verbatim for three experts that can be
# asked at once and ten times. The line breaks are ours, and so is the position of the question,
# which the paper does not state.
_PANEL = """\
You are a helpful assistant that can solve a given question step by step. To do so, you can \
consult with a panel of {experts}. Each question you can ask experts {budget} times totally. \
{at_once} The experts will provide their answers, which you can use to form your final response.

The agent call query and results are enclosed within <agent_calls> </agent_calls> and \
<agent_returns> </agent_returns> tags respectively. Agent calls query should be formatted as a \
list of dictionaries. For each agent call (an item in the list), you need to provide these keys:
(1) expert_id (int): Required. The ID of the expert you want to consult. Can be {ids}.
(2) input_parameters (dict): Required. All input parameters for the expert, in dictionary format.

Here are the experts you can use:
Description: This is a panel of {agents} that you can consult when you are unsure about the answer \
to a question. The agents responses may not always be correct, but they can offer you alternative \
perspectives to help you think further.
Parameters:
(1) query (str): Required. The query string describing the question you want to ask or discuss.
(2) The answer from the agent, including thinking process.

The reasoning process is wrapped by <think></think>. The final answer begins with "Answer: ".

For example:
User: What is the capital city of NomanLand and what is its main export?
Assistant: {example}
Answer: The capital of NomanLand is NomanCity and its main export is widgets.

{question}"""
_TOGETHER = """\
<think> This question has two parts. I will ask two different experts to answer each part. I'll \
ask expert 1 about the capital and expert 2 about the main export. </think>
<agent_calls> [{"expert_id": 1, "input_parameters": {"query": "capital city of NomanLand"}}, \
{"expert_id": 2, "input_parameters": {"query": "main export of NomanLand"}}] </agent_calls>
<agent_returns> [{"expert_id": 1, "result": "The capital city of NomanLand is NomanCity."}, \
{"expert_id": 2, "result": "The main export of NomanLand is widgets."}] </agent_returns>
<think> I see. Expert 1 says the capital is NomanCity, and Expert 2 says the main export is \
widgets. </think>"""
_ONE_BY_ONE = """\
<think> This question has two parts. I will ask an expert about both. </think>
<agent_calls> [{"expert_id": 1, "input_parameters": {"query": "capital city and main export of \
NomanLand"}}] </agent_calls>
<agent_returns> [{"expert_id": 1, "result": "The capital city of NomanLand is NomanCity, and its \
main export is widgets."}] </agent_returns>
<think> I see. Expert 1 says the capital is NomanCity and the main export is widgets. </think>"""
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# A version of two sentences for chat models.
_SHORT_PANEL = """\
{question}

{sentence}
If you are not sure, ask an expert (1 to {experts}) first, as in <agent_calls>[{{"expert_id": 1, \
"input_parameters": {{"query": "your question"}}}}]</agent_calls>; the reply follows."""
_PLAIN_PANEL = "Question: {question}\nExperts: 1 to {experts}\nSolve:"


def training_prompt(
    question: str,
    style: ExpertStyle,
    *,
    experts: int,
    at_once: int,
    budget: int,
    kind: AnswerKind = "math",
) -> str:
    """Return the policy's prompt when it can consult experts.

    Args:
        question: the problem's text.
        style: see :data:`coterie.envs.prompts.ExpertStyle`.
        experts: number of experts; ids begin at 1.
        at_once: most calls in one block.
        budget: most consultations.
        kind: the kind of answer.
    """
    if style == "plain":
        return _PLAIN_PANEL.format(question=question, experts=experts)
    if style == "answer":
        sentence = answer_sentence(kind)
        return _SHORT_PANEL.format(question=question, sentence=sentence, experts=experts)
    ids = ", ".join(map(str, range(1, experts + 1)))
    *first, last = ids.split(", ")
    comma = "," if len(first) > 1 else ""
    several = experts > 1
    return _PANEL.format(
        question=question,
        experts=f"{_number(experts)} expert{'s' * several}",
        agents=f"{_number(experts)} auxiliary intelligent agent{'s' * several} (ID {ids})",
        ids=f"{', '.join(first)}{comma} or {last}" if first else last,
        at_once=_at_once(experts, at_once),
        budget=budget,
        # With one call at a time, the example asks one expert for both things.
        example=_TOGETHER if at_once > 1 else _ONE_BY_ONE,
    )


def _at_once(experts: int, at_once: int) -> str:
    if at_once == 1:
        return "You can ask one expert at a time for their opinion."
    most = f", at most {_number(at_once)} at once," if at_once < experts else ""
    return (
        f"You can ask one or more experts{most} for their opinion. You can ask them the same "
        "question or different questions simultaneously."
    )


def _number(value: int) -> str:
    return _NUMBERS[value] if value < len(_NUMBERS) else str(value)
