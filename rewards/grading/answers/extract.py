"""Where a response states its answer.

Rules of CoRe (arXiv:2601.21600, appendix A): tags, answer lines and boxes are candidates; the one
that starts last wins; the last number of a text is never taken for an answer. A base model may go
on to the next question: text from there on is not read. Every function is linear in the length of
the text and raises on none.
"""

import json
import re
from dataclasses import dataclass, replace

from coterie.datatypes.thinking import after_thinking
from coterie.rewards.grading.answers.bold import DECORATION, TRUTH, value_in_bold
from coterie.rewards.grading.answers.normalise import plain
from coterie.rewards.grading.answers.sentences import value_in_sentence
from coterie.rewards.grading.answers.statements import value_stated
from coterie.rewards.grading.answers.values import NUMBER_WORDS, exact

LONGEST = 1 << 17
"""Characters at the end that are searched for an answer: some 30,000 tokens."""
_FLOURISHES = "✅✔☑✨⭐🎉🎯🏁👉👍💡📌😊\ufe0f"
"""Signs that decorate what stands before an answer."""
_TAG = re.compile(
    r"<(?P<slash>/?)(?P<name>final[_-]answer|answer|outcome|result|strategy_\w{1,40}_outcome)"
    r"(?:\s[^<>]{0,80})?>",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\A[ \t>]*[*][ \t]")
_HASHES = re.compile(r"^[ \t]{0,8}####(?!#)(?P<rest>.*)$", re.MULTILINE)
_SO = r"so|thus|hence|therefore|finally|consequently|in conclusion"
_LEAD = rf"(?:(?:{_SO}|then)\b[ \t,]{{1,4}}|(?:因此|所以|因而|于是|故|综上所述)[，,：: ]{{0,2}})?"
_CLAUSE = (
    # "Based on the above, the answer is 72.", "Step 3: The answer is 72."
    r"(?:(?P<clause>(?-i:[A-Z])(?:[^.!?:\n]|\.(?=[0-9])){0,80}?),[ \t]{1,4}"
    r"(?:(?:so|thus|hence|therefore)[ \t,]{1,4})?"
    r"|(?:step[ \t][0-9]{1,2}|conclusion)[.:)][ \t*_]{1,4}"
    r"|(?:this|that|which)[ \t]means[ \t](?:that[ \t])?|we[ \t](?:find|see|conclude)[ \t]that[ \t])"
)
_CONDITION = re.compile(
    r"\A(?:for|on|at|under|without|with(?!\s(?:this|that|these)\b)|were|had|should)\b(?!\ssecond\b)"
    r"|\b(?:if|unless|when(?:ever)?|suppos\w*|assum\w*|otherwise|else|case)\b",
    re.IGNORECASE,
)
"""A clause behind which something is the answer to another question."""
_WHOSE = r"(?:(?:the|my|our)[ \t]{1,4})?"
_ABROAD = (
    r"(?:最终|最后|正确)?(?:答案|答え)|정답|(?:la[ \t])?respuesta(?:[ \t]final)?"
    r"|(?:la[ \t])?réponse(?:[ \t]finale)?|(?:die[ \t])?antwort|(?:la[ \t])?risposta"
    r"|(?:a[ \t])?resposta(?:[ \t]final)?|ответ"
)
"""Words for the answer in other languages."""
_WHICH = (
    r"(?:(?:final|correct|right|best|true|actual|corrected|revised|updated|required|desired"
    r"|numerical)[ \t]{1,4}){0,3}"
)
_NAMED = (
    rf"{_WHICH}(?:answer|ans\b\.?|(?:(?<=correct )|(?<=best ))(?:option|choice)"
    r"|(?<=final )(?:result|solution))"
    r"(?:[ \t]to[ \t](?:this|the|your)[ \t](?:\w{1,12}[ \t])?(?:problem|question))?"
)
_ANSWER = (
    rf"(?:{_NAMED}(?:\.(?=[*_]{{2}})|[ \t*_]{{0,8}}(?:[:：=→]|[-=]>|is\b))"
    rf"|(?:{_ABROAD})[ \t*_]{{0,8}}(?:[:：=]|是|为|は|es\b|est\b|ist\b|lautet\b|è\b|é\b))"
    r"[ \t*_:：]{0,8}(?:(?:therefore|thus|then)\b[ \t,:]{0,4})?"
)
_MUST_BE = rf"(?:{_NAMED}[ \t](?:should|would|must)[ \t]be\b|solution[ \t]is\b)[ \t*_:]{{0,8}}"
_ANSWER_LINE = re.compile(
    # "Final Answer: The final answer is 7. I hope it is correct.": Minerva, arXiv:2206.14858
    rf"^[ \t>*_#{_FLOURISHES}]{{0,12}}(?:(?:[-+•]|[0-9]{{1,2}}[.)])[ \t]{{1,4}}[*_]{{0,4}})?{_LEAD}"
    rf"(?:{_WHOSE}{_ANSWER}){{1,2}}(?P<rest>.*?)(?: I hope it is correct\.)?$",
    re.MULTILINE | re.IGNORECASE,
)
_SENTENCE = re.compile(
    # In a line only what begins like a value: "The answer is clearly right" is none.
    rf"(?:(?:(?<=[.!?)\]}}][ \t])[*_]{{0,3}}|^[ \t>*_]{{0,8}})"
    rf"(?:{_CLAUSE}{_WHOSE}(?:{_ANSWER}|{_MUST_BE})"
    rf"|(?:(?:{_SO})\b[ \t,]{{1,4}})?{_WHOSE}{_MUST_BE})"
    rf"|(?:(?<=[.!?)\]}}][ \t])[*_]{{0,3}}{_LEAD}"
    rf"|(?<=,[ \t])(?:so|thus|hence|therefore)[ \t,]{{1,4}}){_WHOSE}{_ANSWER})"
    r"(?=(?P<rest>[*_]{0,3}(?-i:[A-Z])[^.!?()\n]{1,60}[*_]{0,3}\.?$"
    r"|(?:[*_]{0,3}[-+−]?[$\\(\[{\d.]|[*_]{0,3}(?-i:[A-Z])(?![A-Za-z])"
    # "The answer is twenty-six pens."
    rf"|[*_]{{0,3}}(?:{'|'.join(NUMBER_WORDS)})\b(?![ \t]of\b)[A-Za-z -]{{0,60}}[.!]?[*_]{{0,3}}$"
    r"|[*_]{0,3}(?:yes|no|true|false)\b"
    # "The answer is carbon dioxide (C)."
    r"|[A-Za-z][^.!?()\n]{0,120}(?:\((?:option[ \t])?(?-i:[A-J])\)"
    r"|,[ \t]option[ \t]\(?(?-i:[A-J])\b)).{0,1024}))",
    re.MULTILINE | re.IGNORECASE,
)
_WRONG = r"(?:wrong|incorrect|mistaken|not\s+(?:right|correct|[-$\\0-9]))"
_CORRECTION = re.compile(
    # "Correction: 35", "Wait, I made a mistake. It should be 35.", "Actually, he has 35 apples."
    r"(?:^[ \t>*_#]{0,12}|(?<=[.!?)\]}][ \t])[*_]{0,3})(?:"
    r"(?:correction|corrected|edit|erratum|update"
    r"|(?:corrected|revised|updated|new)[ \t](?:final[ \t])?answer)"
    r"[ \t*_]{0,4}[:：—–-][ \t*_]{0,4}"
    r"(?:(?:it|that|this|the[ \t](?:\w{1,12}[ \t])?(?:answer|result|total))"
    r"[ \t](?:is|was|should[ \t]be|equals)[ \t:]{1,4})?(?P<announced>\S.{0,511})"
    r"|(?:(?:(?:but[ \t]|oh[ \t]|no[ \t,]{1,2})?(?:wait|oops|sorry|hmm+|actually|correction"
    r"|hold[ \t]on|scratch[ \t]that|on[ \t]second[ \t]thoughts?|my[ \t]mistake|i[ \t]was[ \t]wrong"
    r"|(?:that|this)[ \t](?:is|was)[ \t](?:wrong|incorrect|not[ \t]right)"
    r"|i[ \t]made[ \t]an?[ \t](?:\w{1,12}[ \t])?(?:mistake|error))"
    r"\b[ \t,.:;!—–-]{1,6}(?:no[ \t,.:;!]{1,4})?){1,3}"
    r"|(?<=\n)nope[ \t,.!]{1,4}|(?<=\n)no[,.!][ \t])"
    r"(?:(?:so|then)[ \t,]{1,3})?(?:"
    r"(?:(?:it|that|this|the[ \t](?:\w{1,12}[ \t])?(?:answer|result|total|number|value))"
    r"(?:['’]s|[ \t](?:is|was|equals|(?:should|must)[ \t](?:be|have[ \t]been)))"
    r"|i[ \t](?:mean|meant))[ \t:*_]{1,4}"
    rf"(?P<rest>(?:[-+−]?[$\\(\[{{0-9.]|(?-i:[A-Z])|(?:yes|no|true|false|{_WRONG})\b).{{0,511}})"
    r"|(?:(?:he|she|they|we|there)[ \t]\w{1,12}[ \t])?"
    r"(?P<short>[-+−]?[$\\(*]{0,4}[0-9][0-9.,/]{0,40}[)$*]{0,4}(?:[ \t][A-Za-z]{1,20}){0,3}[.!]?)"
    r"|(?:it(?:['’]s|[ \t]is)[ \t])?(?P<option>\(?[A-Za-z][^.!?\n]{0,80}[.!]?)"
    r"))[ \t]{0,8}$",
    re.MULTILINE | re.IGNORECASE,
)
"""What is announced to take the place of an answer that stands before it."""
_CHOSEN = re.compile(
    # "Therefore, option A is correct.", "故选A。"
    rf"(?:(?:^[ \t>*_]{{0,8}}|(?<=[.!?)\]}}][ \t])[*_]{{0,3}})"
    rf"(?P<lead>(?:(?:{_SO}|then)\b[ \t,]{{1,4}}|{_CLAUSE})?)"
    r"(?:(?:option|choice)[ \t]|(?=\()|(?=[*_]{0,3}(?-i:[A-J])[*_]{0,3}[ \t]is[ \t]the[ \t]))"
    r"[(*_]{0,3}(?P<letter>(?-i:[A-J]))[)*_]{0,3}[ \t]is[ \t](?:the[ \t])?(?:correct|right|best)"
    r"(?:[ \t](?:answer|option|choice|one))?"
    r"|^[ \t>*_]{0,8}(?:因此|所以)?[，,]?(?:故|应|答案)?选[ ：:]{0,2}(?P<abroad>(?-i:[A-J])))"
    r"[.!。．]?[*_ \t]{0,4}$",
    re.MULTILINE | re.IGNORECASE,
)
_WHICH_OPTION = re.compile(
    r"\bis[ \t](?:an?[ \t]|the[ \t])?"
    r"(?P<text>[^.,!?\n]{1,60}),[ \t]which[ \t]is[ \t](?:option|choice)[ \t]"
    r"\(?(?P<letter>(?-i:[A-J]))\)?[.!*_ \t]{0,4}\Z",
    re.IGNORECASE,
)
"""``The metal is iron, which is option A.``"""
_SET_LINE = re.compile(
    # "\\[ \\text{Answer: } 7 \\]", "$\\textbf{Answer: C}$"
    r"^[ \t>*_#]{0,12}(?:\$\$?|\\\[|\\\()?\s{0,4}\\(?:text|textbf|mathrm|mathbf)\s?\{\s{0,4}"
    r"(?:the\s)?(?:final\s|correct\s)?answer\s?(?:is\b|[:=])(?P<inside>[^{}\n]{0,256})\}"
    r"(?P<rest>.{0,512})$",
    re.MULTILINE | re.IGNORECASE,
)
_HEADING = re.compile(
    rf"^[ \t>]{{0,8}}(?:(?:#{{1,6}}|\*\*|__)[ \t*_{_FLOURISHES}]{{0,8}}"
    rf"(?:the[ \t])?{_WHICH}answer[ \t*_:：]{{0,8}}"
    r"|(?:the[ \t])?final[ \t]{1,4}answer)[ \t]{0,8}$",
    re.MULTILINE | re.IGNORECASE,
)
_JSON = re.compile(
    r"\"(?:final[_ ]?)?answer\"\s{0,8}:\s{0,8}"
    r"(?P<value>\"(?:[^\"\\\n]|\\.){1,512}\"|-?[0-9][0-9.eE+-]{0,99})\s{0,8}[,}]",
    re.IGNORECASE,
)
_NEXT_QUESTION = re.compile(
    r"^[ \t>*_#]{0,8}(?:(?:Q|Question|Human|User)\s?[0-9]{0,3}|Problem\s[0-9]{1,3})"
    r"\s?[*_]{0,2}[:：]"
    r"|^#{1,6}[ \t]{1,4}(?:Question|Problem|Instruction)\b",
    re.MULTILINE,
)
_SHORT_ANSWER = re.compile(
    r"^[ \t*_]{0,8}A[ \t*_]{0,4}:[ \t*_]{0,4}(?P<rest>\S.{0,511})$", re.MULTILINE
)
_OTHER_OPTION = re.compile(r"^[ \t*_(]{0,8}[B-E][ \t*_]{0,4}[:.)]", re.MULTILINE)
_LABEL = re.compile(
    r"\A(?P<text>\\(?:text|textbf|mathrm|mathbf)\s?\{\s*)?(?:the\s+)?(?:final\s+|correct\s+)?"
    r"(?:answer|ans)\s*(?:is\b|[:=])\s*",
    re.IGNORECASE,
)
_BETWEEN_BOXES = re.compile(
    r"(?:\s|[$.]|\\[()\[\]])*(?:[,;&]|\\(?:text|mathrm|mbox)\s?\{\s*(?:and|or|,)\s*\}|\b(?:and|or)\b|\\\\|\\q?quad"
    r"|\\[,; ()\[\]]|[\s$])*(?P<name>[A-Za-z](?:_\{?[A-Za-z0-9]\}?)?\s*=)?[\s$]*"
)
_NEXT_LINE = re.compile(r"\s{0,16}(?:(?:\\\[|\$\$|`{3,8}\w{0,16})\s{1,8})?(\S.*)")
_BARE_BOX = re.compile(
    r"\\f?boxed(?:\s{0,8}(?P<number>[+-]?(?:\\?\$)?[0-9]{1,400}(?:,[0-9]{3}){0,9}(?:\.[0-9]{1,99})?)"
    r"|\s{1,8}(?P<letter>[A-Z]))(?![A-Za-z0-9^_/\\{!(])"
)
_BOX = re.compile(r"\\(?:f?boxed|fbox)\s{0,8}\{")
_BRACE = re.compile(r"\\[\\{}]|[{}]")
_PLAIN_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_SIGN_BEFORE = re.compile(r"(?:\A|[=$(\[{:≈\n])[ \t]*(?P<sign>[-−])(?:\\?\$)?\Z")
_FACTOR_BEFORE = re.compile(
    r"(?:(?:\A|(?<=[=$(\[{:≈\n]))[ \t]*[-−])?(?<![A-Za-z0-9_.,])[0-9]+(?:\.[0-9]+)?\Z"
)
"""``2\\boxed{12}``, ``= -2\\boxed{12}``"""
_FACTOR_BEHIND = re.compile(
    r"\s{0,4}(?:\\(?:times|cdot)\s{0,4}(?:10\s{0,2}\^\s{0,2}(?:\{[-+]?[0-9]{1,4}\}|[0-9])|[0-9]+(?:\.[0-9]+)?)"
    r"|\^\s{0,2}(?:\{[^{}]{1,64}\}|[0-9A-Za-z])|/\s{0,2}[0-9]+"
    # A letter in a formula; m, g, s, h and l may be units.
    r"|\\pi(?![A-Za-z])|\\sqrt\s?(?:\{[^{}]{1,64}\}|[0-9])|[iknxyz]\s{0,4}(?=\$|\\[)\]])|\\?%)"
    r"|(?:[ \t$]|\\[)\]]){0,6}"
    r"(?P<scale>\b(?:hundred|thousand|million|billion|trillion|dozen|percent)\b)"
)
"""What changes the value of a box that it touches: ``\\boxed{12}\\times 10^3``."""
_OTHER_VALUE = re.compile(
    r"(?:[ \t$]|\\[)\]]){0,6}\(?(?:or|\\text\s?\{\s?or\s?\})"
    r"(?P<value>\s+(?:about\s+|approximately\s+)?\$?[-−]?(?:[0-9]|\\(?!f?box))(?:[^\n.,;!?()]|[.,](?=[0-9])){0,64})"
)
"""``\\boxed{72} or 73``"""
_DENIED_BEFORE = re.compile(
    r"(?:\\neq?\b|\\not\s?=|≠|\b(?:not|cannot)(?:\s(?:be|equal))?|n['’]t(?:\s(?:be|equal))?)[\s$:]{0,4}\Z",
    re.I,
)
_DENIED_BEHIND = re.compile(
    r"[\s$)]{0,4}(?:\?|(?:is|was|seems|looks)\s(?:wrong|incorrect|mistaken|not\s(?:right|correct|possible|the\sanswer)))",
    re.I,
)
_LETTER = re.compile(r"[(\[]?[A-Z][)\]]?\.?")
_FACTORIAL_OF = re.compile(r"(?<![A-Za-z])[A-Za-z]\Z|(?<!\\)[)\]}]\Z")
_NAME_BEFORE = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?:_\{?[A-Za-z0-9]\}?)?\s*=[\s$]*\Z")
_BRACKET = re.compile(r"\[[^\[\]\n]{1,512}\]")


_END_MARK = re.compile(
    r"<\|(?:im_end|endoftext|end_of_text|eot_id|eom_id|end_of_turn|end)\|>|<end_of_turn>|<eos>"
    r"|</s>(?=\s*(?:<|\Z))"
)
"""A mark of the end that a tokenizer has spelled out."""


@dataclass(frozen=True)
class Candidate:
    """One place where a response may state its answer."""

    start: int
    """Offset of its marker in the text after the thinking."""
    text: str
    """What stands there, trimmed."""
    labelled: bool = False
    """Whether it stands after a colon, where a letter or a number may head a list."""
    corrects: bool = False
    """Whether it replaces the answers before it, even if it is no value."""

    @property
    def value(self) -> str:
        """The value that is stated there, without the words around it."""
        return value_stated(self.text, labelled=self.labelled)


def visible(response: str) -> str:
    """A response after its thinking, up to a spelled-out end mark.

    >>> visible("<think>8 * 9</think>72<|im_end|>")
    '72'
    """
    text = after_thinking(response)
    end = _END_MARK.search(text)
    return text[: end.start()] if end and text[: end.start()].strip() else text


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


def _is_label(match: re.Match[str]) -> bool:
    return (
        match[0][: match.start("rest") - match.start()].rstrip(" \t*_").endswith((":", "：", "="))
    )


def _closed(match: re.Match[str]) -> str:
    """The announced answer without the mark that closes bold text: ``**Answer: 18** eggs``."""
    rest = match["rest"]
    before = _BULLET.sub("", match[0][: match.start("rest") - match.start()])
    for mark in ("***", "**", "__", "*", "_"):
        if before.count(mark) % 2:
            return re.sub(re.escape(mark) + r"(?!\w)", "", rest, count=1).strip()
    return rest.strip()


def _undecorated(text: str) -> str:
    """A line without the signs and marks that decorate its end, unless it is nothing else."""
    bare = DECORATION.sub("", text[-1024:].rstrip("* \t")).rstrip("* \t")
    return text[:-1024] + bare if bare else text.rstrip(f"{_FLOURISHES}* \t")


def _lines(text: str) -> list[Candidate]:
    stated: list[Candidate] = []
    for match in _HASHES.finditer(text):
        rest = _unexclaimed(_undecorated(match["rest"].strip()))
        # "#### Answer: 7" and "#### Answer" are met below, with their own prefix taken off.
        if rest and not _ANSWER_LINE.match(rest) and not _HEADING.fullmatch(match[0]):
            stated.append(Candidate(match.start(), rest, labelled=True))
    for match in _ANSWER_LINE.finditer(text):
        rest = _undecorated(_closed(match)) or _following(text, match.end())
        stated.append(Candidate(match.start(), _unexclaimed(rest), labelled=_is_label(match)))
    for match in _SET_LINE.finditer(text):
        rest = _unexclaimed(f"{match['inside']} {match['rest']}".strip())
        stated.append(Candidate(match.start(), rest, labelled=True))
    for match in _HEADING.finditer(text):
        rest = _unexclaimed(_following(text, match.end()))
        stated.append(Candidate(match.start(), rest, labelled=True))
    for match in _SENTENCE.finditer(text):
        if _CONDITION.search(match["clause"] or ""):
            continue
        rest = _unexclaimed(_closed(match))
        stated.append(Candidate(match.start(), rest, labelled=_is_label(match)))
    # "Final answer:" and, on the next line, "\\text{Answer: } 7"
    stated = [replace(one, text=_LABEL.sub(r"\g<text>", one.text)) for one in stated]
    return [candidate for candidate in stated if candidate.text]


def _corrections(text: str, start: int, *, options: bool) -> list[Candidate]:
    """What is announced, from ``start`` on, as the correction of an answer: ``Correction: 35``;
    with ``options`` also ``Actually, B.`` and ``Wait, carbon.``, which may be one or none."""
    return [
        Candidate(
            match.start(),
            _unexclaimed(said.rstrip("* ")),
            labelled=True,
            corrects=not match["option"] or said.casefold().startswith("not "),
        )
        for match in _CORRECTION.finditer(text, start)
        if (said := match["announced"] or match["rest"] or match["short"] or match["option"])
        and (options or not match["option"])
    ]


def _chosen(text: str, *, alone: bool) -> list[Candidate]:
    """The letters of ``Therefore, option A is correct.``; a sentence that concludes nothing counts
    at the end, and ``It is iron, which is option A.`` where it is ``alone``."""
    chosen = [
        Candidate(match.start(), match["letter"] or match["abroad"])
        for match in _CHOSEN.finditer(text)
        if (match["lead"] or match["abroad"] or not text[match.end() :].strip())
        and not _CONDITION.search(match["clause"] or "")
    ]
    last = _WHICH_OPTION.search(text.rstrip(), max(0, len(text.rstrip()) - 128))
    if last and alone and not chosen:
        chosen.append(Candidate(last.start(), f"{last['text']} ({last['letter']})"))
    return chosen


def _following(text: str, end: int) -> str:
    """The line after "Final answer:", which announces it."""
    match = _NEXT_LINE.match(text, end)
    return match[1].strip() if match else ""


def _boxed(text: str) -> list[Candidate]:
    r"""The boxes; ``\boxed{7} and \boxed{9}`` are one list, as Qwen writes it."""
    stated: list[Candidate] = []
    names: list[str] = []
    parts: list[str] = []
    reached = start = 0
    for begin, a, b in boxes(text):
        if not text[a:b].strip():  # "As asked, it is within \\boxed{}."
            continue
        before, behind = text[max(0, begin - 24) : begin], text[b + 1 : b + 129]
        if _DENIED_BEFORE.search(before) or _DENIED_BEHIND.match(behind):
            continue
        near = bool(parts) and begin - reached <= 64
        between = _BETWEEN_BOXES.fullmatch(text, reached, begin) if near else None
        if between is None or not re.search(r"[,;&]|and|or|\\q?quad|\\\\", between[0]):
            stated += _joined(start, names, parts)
            names, parts, start = [], [], begin
            name = _NAME_BEFORE.search(text, max(0, begin - 16), begin)
            names.append(name[0].strip(" $") if name else "")
        else:
            names.append((between["name"] or "").strip())
        inside = _LABEL.sub(r"\g<text>", text[a:b].strip().rstrip(" ,;"))
        if _SIGN_BEFORE.search(before):
            inside = f"-{inside}" if _PLAIN_NUMBER.fullmatch(inside) else f"-({inside})"
        if factor := _FACTOR_BEFORE.search(before):
            inside = f"{factor[0].strip()} \\times ({inside})"
        if factor := _FACTOR_BEHIND.match(behind):
            inside = inside if _PLAIN_NUMBER.fullmatch(inside) else f"({inside})"
            inside += f" {factor['scale']}" if factor["scale"] else factor[0]
        if other := _OTHER_VALUE.match(behind):
            inside += f" or{other['value'].rstrip(' $')}"
        parts.append(inside)
        reached = b + 1
    return stated + _joined(start, names, parts)


def _joined(start: int, names: list[str], parts: list[str]) -> list[Candidate]:
    if not parts:
        return []
    if len(set(parts)) == 1:
        return [Candidate(start, parts[0])]
    named = names if all(names) else [""] * len(parts)
    return [Candidate(start, ", ".join(map("".join, zip(named, parts, strict=True))))]


def _in_json(text: str) -> list[Candidate]:
    stated: list[Candidate] = []
    for match in _JSON.finditer(text):
        value = match["value"]
        if value.startswith('"'):
            try:
                value = json.loads(value)
            except ValueError:  # a command of LaTeX with one backslash
                value = value[1:-1]
        stated.append(Candidate(match.start(), value.strip()))
    return stated


def candidates(response: str, *, options: bool = False) -> list[Candidate]:
    """Every stated answer of ``response`` after its thinking, in the order of their markers.

    Answers to a next question, to which a base model may go on, are left out.

    Args:
        options: whether the question has options, of which a sentence may say which is right.
    """
    whole = visible(response)
    skipped = max(0, len(whole) - LONGEST)
    text = whole[skipped:]
    stated = _boxed(text)
    stated += [
        Candidate(match.start(), match["number"] or match["letter"])
        for match in _BARE_BOX.finditer(text)
    ]
    stated += _tagged(text)
    stated += _lines(text)
    stated += _in_json(text)
    if options:
        stated += _chosen(text, alone=not stated)
    if stated:
        first = min(candidate.start for candidate in stated)
        stated += _corrections(text, first + 1, options=options)
    stated.sort(key=lambda candidate: candidate.start)
    stated = _of_first_question(stated, text)
    if skipped:
        stated = [replace(candidate, start=candidate.start + skipped) for candidate in stated]
    return stated


def _of_first_question(stated: list[Candidate], text: str) -> list[Candidate]:
    """The candidates, in order, without those of a next question, to which the text goes on."""
    following = _NEXT_QUESTION.search(text, stated[0].start + 1) if stated else None
    return [one for one in stated if following is None or one.start < following.start()]


def bare(response: str) -> str | None:
    """The whole text where it is nothing but a number, yes or no, one capital letter or one
    ``[...]``."""
    text = visible(response).strip()
    if not text or len(text) > 512:
        return None
    only = _LETTER.fullmatch(text) or _BRACKET.fullmatch(text) or TRUTH.fullmatch(text)
    return text if only or exact(plain(text)) is not None else None


def last_stated(response: str, question: str = "") -> Candidate | None:
    """The last stated answer, or else a text that is nothing but an answer, ``A: 18``, or the one
    value in bold in the last line. None for any other text.

    Args:
        question: where it is given, a bold value has to answer it.
    """
    if stated := candidates(response):
        return stated[-1]
    spoken = visible(response)[-LONGEST:]
    if following := _NEXT_QUESTION.search(spoken):
        spoken = spoken[: following.start()] or spoken
    if (text := bare(spoken)) is not None:
        return Candidate(0, text)
    if short := _short_answer(spoken):
        return short
    value = value_in_bold(spoken, question)
    return Candidate(spoken.rstrip().rfind("\n") + 1, value) if value else None


def _short_answer(text: str) -> Candidate | None:
    """``A: 18`` where no other letter heads a line, as options have them."""
    matches = list(_SHORT_ANSWER.finditer(text))
    if len(matches) != 1 or _OTHER_OPTION.search(text):
        return None
    return Candidate(matches[0].start(), matches[0]["rest"], labelled=True)


def extract(response: str) -> str | None:
    r"""The answer that ``response`` states, without the words around it; None where it states none.

    Examples: ``"... \boxed{\frac{1}{2}}."`` gives ``\frac{1}{2}``; ``"#### 1,080"`` gives
    ``1,080``; ``"so 3 and then 4"`` gives None.
    """
    stated = last_stated(response)
    value = stated.value if stated else ""
    is_value = not value or exact(plain(value)) is not None
    return (value if is_value else value_in_sentence(value, "") or value) or None


def last_box(response: str) -> str:
    r"""The last ``\boxed{...}`` after the thinking, with the signs, factors and further boxes that
    belong to it, whatever follows; all of ``response`` where there is none.

    For prompts that ask for something after the box, such as a confidence: a sentence about it
    ("The answer is likely correct.") is no second answer.

    >>> last_box(r"x = -\boxed{5} \confidence{0.9} The answer is likely right.")
    '\\boxed{-5}'
    """
    text = visible(response)[-LONGEST:]
    stated = _of_first_question(_boxed(text), text)
    return rf"\boxed{{{stated[-1].text}}}" if stated else response
