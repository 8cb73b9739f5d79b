"""Where a response states its answer.

Rules of CoRe (arXiv:2601.21600, appendix A): tags, answer lines and boxes are candidates; the one
that starts last wins; the last number of a text is never taken for an answer. Every function is
linear in the length of the text and raises on none.
"""

import re
from dataclasses import dataclass

from coterie.datatypes.thinking import after_thinking
from coterie.rewards.grading.answers.normalise import plain
from coterie.rewards.grading.answers.values import exact

_FLOURISHES = "✅✔☑✨⭐🎉🎯🏁👉👍💡📌😊\ufe0f"
"""Signs that decorate an answer and say nothing of it; a cross or a question mark is none."""

_TAG = re.compile(
    r"<(?P<slash>/?)(?P<name>final[_-]answer|answer|outcome|result|strategy_\w{1,40}_outcome)"
    r"(?:\s[^<>]{0,80})?>",
    re.IGNORECASE,
)
_HASHES = re.compile(r"^[ \t]{0,8}####(?!#)(?P<rest>.*)$", re.MULTILINE)
_LEAD = r"(?:(?:so|thus|hence|therefore|then|finally|consequently|in conclusion)\b[ \t,]{1,4})?"
_ANSWER = (
    r"(?:final[ \t]{1,4}|correct[ \t]{1,4}|right[ \t]{1,4}){0,2}"
    r"(?:answer|(?<=correct )(?:option|choice))"
    r"(?:[ \t]to[ \t](?:this|the|your)[ \t](?:problem|question))?"
    r"[ \t*_]{0,8}(?:[:：=]|is\b)[ \t*_:]{0,8}(?:(?:therefore|thus|then)\b[ \t,:]{0,4})?"
)
_ANSWER_LINE = re.compile(
    # "Final Answer: The final answer is 7. I hope it is correct.": Minerva, arXiv:2206.14858
    rf"^[ \t>*_#{_FLOURISHES}]{{0,12}}(?:(?:[-+•]|[0-9]{{1,2}}[.)])[ \t]{{1,4}}[*_]{{0,4}})?{_LEAD}"
    rf"(?:(?:the[ \t]{{1,4}})?{_ANSWER}){{1,2}}(?P<rest>.*?)(?: I hope it is correct\.)?$",
    re.MULTILINE | re.IGNORECASE,
)
_SENTENCE = re.compile(
    # After another sentence only what begins like a value: "The answer is clearly right" is none.
    rf"(?:(?<=[.!?)\]}}][ \t]){_LEAD}|(?<=,[ \t])(?:so|thus|hence|therefore)[ \t,]{{1,4}})"
    rf"the[ \t]{{1,4}}{_ANSWER}"
    r"(?P<rest>(?:[-+−]?[$\\(\[{0-9.]|(?-i:[A-Z])(?![A-Za-z])).*)$",
    re.MULTILINE | re.IGNORECASE,
)
_HEADING = re.compile(
    rf"^[ \t>]{{0,8}}(?:#{{1,6}}|\*\*|__)[ \t*_{_FLOURISHES}]{{0,8}}"
    r"(?:the[ \t])?(?:final[ \t]{1,4})?answer[ \t*_:：]{0,8}$",
    re.MULTILINE | re.IGNORECASE,
)
_NEXT_LINE = re.compile(r"\s{0,16}(?:(?:\\\[|\$\$)\s{1,8})?(\S.*)")
_BARE_BOX = re.compile(
    r"\\f?boxed(?:\s{0,8}(?P<number>[+-]?(?:\\?\$)?[0-9]{1,400}(?:,[0-9]{3}){0,9}(?:\.[0-9]{1,99})?)"
    r"|\s{1,8}(?P<letter>[A-Z]))(?![A-Za-z0-9^_/\\{!(])"
)
_BOX = re.compile(r"\\f?boxed\s{0,8}\{")
_BRACE = re.compile(r"\\[\\{}]|[{}]")
_LETTER = re.compile(r"[(\[]?[A-Z][)\]]?\.?")
_FACTORIAL_OF = re.compile(r"(?<![A-Za-z])[A-Za-z]\Z|(?<!\\)[)\]}]\Z")
_BRACKET = re.compile(r"\[[^\[\]\n]{1,512}\]")


@dataclass(frozen=True)
class Candidate:
    """One place where a response may state its answer."""

    start: int
    """Offset of its marker in the text after the thinking."""
    text: str
    """What stands there, trimmed."""


def boxes(text: str) -> list[tuple[int, int, int]]:
    r"""The outermost balanced ``\boxed{...}`` of ``text`` in order.

    Returns (start of the command, start of the content, end of the content).
    """
    return arguments(text, _BOX)


def arguments(text: str, command: re.Pattern[str]) -> list[tuple[int, int, int]]:
    """The outermost balanced arguments of ``command``, which ends with its opening brace; spans as
    in :func:`boxes`."""
    starts = {match.end() - 1: match.start() for match in command.finditer(text)}
    if not starts:
        return []
    # One pass with a stack, so that 10^5 unclosed braces cost no more than one.
    closed: dict[int, int] = {}
    stack: list[int] = []
    for match in _BRACE.finditer(text):
        token = match.group()
        if token == "{":
            stack.append(match.start())
        elif token == "}" and stack:
            closed[stack.pop()] = match.start()
    spans: list[tuple[int, int, int]] = []
    reached = 0
    for brace, start in starts.items():
        end = closed.get(brace)
        if end is not None and start >= reached:
            spans.append((start, brace + 1, end))
            reached = end
    return spans


def _tagged(text: str) -> list[Candidate]:
    tagged: list[Candidate] = []
    opened: dict[str, tuple[int, int]] = {}
    for match in _TAG.finditer(text):
        name = match["name"].lower().replace("-", "_")
        if not match["slash"]:
            opened[name] = match.span()
        elif name in opened:
            start, content = opened.pop(name)
            inside = text[content : match.start()].strip()
            line = _ANSWER_LINE.fullmatch(inside)
            tagged.append(Candidate(start, line["rest"] if line else inside))
    return tagged


def _unexclaimed(text: str) -> str:
    """A line without the exclamation mark that ends its sentence: ``7!``, but not ``n!``."""
    bare = text.rstrip("! ")
    return text if _FACTORIAL_OF.search(bare[-2:]) else bare


def _lines(text: str) -> list[Candidate]:
    stated: list[Candidate] = []
    for match in _HASHES.finditer(text):
        rest = _unexclaimed(match["rest"].strip())
        # "#### Answer: 7" and "#### Answer" are met below, with their own prefix taken off.
        if rest and not _ANSWER_LINE.match(rest) and not _HEADING.fullmatch(match[0]):
            stated.append(Candidate(match.start(), rest))
    for match in _ANSWER_LINE.finditer(text):
        rest = match["rest"].strip().rstrip(f"{_FLOURISHES}* \t") or _following(text, match.end())
        stated.append(Candidate(match.start(), _unexclaimed(rest)))
    for match in _HEADING.finditer(text):
        stated.append(Candidate(match.start(), _unexclaimed(_following(text, match.end()))))
    for match in _SENTENCE.finditer(text):
        stated.append(Candidate(match.start(), _unexclaimed(match["rest"].strip())))
    return [candidate for candidate in stated if candidate.text]


def _following(text: str, end: int) -> str:
    """The line after "Final answer:", which announces it."""
    match = _NEXT_LINE.match(text, end)
    return match[1].strip() if match else ""


def candidates(response: str) -> list[Candidate]:
    """Every stated answer of ``response`` after its thinking, in the order of their markers."""
    text = after_thinking(response)
    stated = [Candidate(start, text[a:b].strip()) for start, a, b in boxes(text)]
    stated += [
        Candidate(match.start(), match["number"] or match["letter"])
        for match in _BARE_BOX.finditer(text)
    ]
    stated += _tagged(text)
    stated += _lines(text)
    return sorted(stated, key=lambda candidate: candidate.start)


def bare(response: str) -> str | None:
    """The whole text where it is nothing but a number, one capital letter or one ``[...]``."""
    text = after_thinking(response).strip()
    if not text or len(text) > 512:
        return None
    if _LETTER.fullmatch(text) or _BRACKET.fullmatch(text) or exact(plain(text)) is not None:
        return text
    return None


def extract(response: str) -> str | None:
    r"""The answer that ``response`` states, as it is written; None where it states none.

    Examples: ``"... \boxed{\frac{1}{2}}."`` gives ``\frac{1}{2}``; ``"#### 1,080"`` gives
    ``1,080``; ``"so 3 and then 4"`` gives None.
    """
    stated = candidates(response)
    if stated:
        return stated[-1].text or None
    return bare(response)


def last_box(response: str) -> str:
    r"""The last ``\boxed{...}`` after the thinking, whatever follows it; all of ``response`` where
    there is none.

    For prompts that ask for something after the box, such as a confidence: a sentence about it
    ("The answer is likely correct.") is no second answer.
    """
    text = after_thinking(response)
    spans = boxes(text)
    return text[spans[-1][0] : spans[-1][2] + 1] if spans else response
