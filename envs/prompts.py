"""Prompts that several environments share."""

from typing import Literal

from coterie.datatypes import AnswerKind, Problem

StrategyStyle = Literal["plain", "answer", "strategies"]
"""plain: CoRe's prompts; answer: the question and a sentence that asks for a readable answer;
strategies: a request for strategy blocks and a final answer."""
ExpertStyle = Literal["plain", "answer", "panel"]
"""plain: one short line, for tiny models; answer: as in :data:`StrategyStyle`; panel: EAPO's
prompts."""

# CoRe, arXiv:2601.21600, appendix A.1
_PLAIN_COLD = "Question: {question}\nLet's solve this step by step:"
_PLAIN_HINT = "Question: {question}\nHint:\n{hint}\nLet's solve this step by step:"

_STRATEGIES = """\
Solve the problem below with at least two different strategies{hint_clause}. Write each one as

<strategy id="1">
<approach>name of the approach</approach>
<reasoning>the steps</reasoning>
<result>the answer that this strategy finds</result>
</strategy>

and close with the answer you trust most: <final_answer>...</final_answer>
{answer_form}
{hint_block}
Question: {question}"""
_HINT_CLAUSE = ", one inspired by the hint of a peer and one of your own"
_HINT_BLOCK = "\n<peer_hint>\n{hint}\n</peer_hint>\n"
_ANSWER_FORM: dict[AnswerKind, str] = {
    "math": r"Give every answer in LaTeX as \boxed{...}.",
    "number": "Give every answer as a plain number.",
    "choice": "Give every answer as the letter of one option.",
    "list": "Give every answer as a list separated by commas.",
    "text": "Give every answer in as few words as possible.",
    "qa": "Give every answer in as few words as possible.",
    "judged": "Give every answer in as few words as possible.",
    "code": "Give every answer as one fenced block of Python that holds the whole function.",
}
_ASKED_FOR: dict[AnswerKind, str] = {
    "number": "the number",
    "choice": "the letter of the option",
    "list": "the values, separated by commas",
}
_CODE = "Think step by step, and end with one fenced block of Python that holds the whole function."


def answer_sentence(kind: AnswerKind) -> str:
    """Return the sentence that tells a model how to end, so that the checker finds its answer.

    >>> answer_sentence("number")
    'Think step by step, and end with the line "Answer: " followed by the number.'
    """
    if kind == "code":
        return _CODE
    what = _ASKED_FOR.get(kind, "the answer")
    return f'Think step by step, and end with the line "Answer: " followed by {what}.'


def strategy_prompt(problem: Problem, style: StrategyStyle, hint: str | None = None) -> str:
    """Return the prompt of CoRe and of SD-E2.

    Args:
        problem: the problem.
        style: see :data:`StrategyStyle`.
        hint: a hint to include; None: a cold prompt.
    """
    if style == "plain":
        template = _PLAIN_COLD if hint is None else _PLAIN_HINT
        return template.format(question=problem.question, hint=hint)
    if style == "answer":
        hints = () if hint is None else (f"Hint:\n{hint}",)
        return "\n\n".join((problem.question, *hints, answer_sentence(problem.kind)))
    return _STRATEGIES.format(
        question=problem.question,
        answer_form=_ANSWER_FORM[problem.kind],
        hint_clause="" if hint is None else _HINT_CLAUSE,
        hint_block="" if hint is None else _HINT_BLOCK.format(hint=hint),
    )


# EAPO, arXiv:2509.23730, appendix G: the evaluation prompt, verbatim.
ALONE = (
    "You are a helpful assistant. You must give the final answer in the last line, in the format "
    'of "Answer: xxx", xxx represents the final answer.'
)


def lone_prompt(question: str, style: ExpertStyle, kind: AnswerKind = "math") -> str:
    """Return the prompt of EAPO's policy without experts, of an expert, and of LeaP's paths.

    Args:
        question: the question.
        style: see :data:`ExpertStyle`.
        kind: the kind of answer; only style ``answer`` uses it.
    """
    if style == "answer":
        return f"{question}\n\n{answer_sentence(kind)}"
    return f"Question: {question}\nSolve:" if style == "plain" else f"{ALONE}\n\n{question}"
