"""DAPO-Math-17k (arXiv:2503.14476) publishes each problem inside an instruction."""

import re

_BEFORE = re.compile(
    r"\s*Solve the following math problem step by step\.\s*The last line of your response "
    r"should be of the form\s+Answer:\s*\\?\$Answer\s*\(without quotes\)\s*where\s+\\?\$Answer is "
    r"the answer to the problem\.\s*"
)
_AFTER = re.compile(
    r"Remember to put your answer on its own line after [\"“]Answer:[\"”]\.?\s*", re.IGNORECASE
)


def bare_problem(prompt: str) -> str:
    """The problem without the instruction before and after it; other text is left as it is."""
    opening = _BEFORE.match(prompt)
    if opening is None:
        return prompt.strip()
    body = prompt[opening.end() :]
    for closing in _AFTER.finditer(body):
        if closing.end() == len(body):
            body = body[: closing.start()]
            break
    return body.strip()
