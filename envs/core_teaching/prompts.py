"""What a role is asked, cold or with a hint."""

from envs.core_teaching.settings import PromptStyle
from vocabulary import AnswerKind, Problem

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


def prompt_for(problem: Problem, style: PromptStyle, hint: str | None = None) -> str:
    """The user's message: cold without a hint."""
    if style == "plain":
        template = _PLAIN_COLD if hint is None else _PLAIN_HINT
        return template.format(question=problem.question, hint=hint)
    return _STRATEGIES.format(
        question=problem.question,
        answer_form=_ANSWER_FORM[problem.kind],
        hint_clause="" if hint is None else _HINT_CLAUSE,
        hint_block="" if hint is None else _HINT_BLOCK.format(hint=hint),
    )
