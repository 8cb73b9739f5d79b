r"""The answer of a response that marks none: a complete last sentence, read with the question.

``So she has missed 50 - 35 = 15 socks.``, ``So, the solution is x = 9.``, ``Yes, whales breathe
air.`` and ``The novel was written by Aldous Huxley.`` answer questions in their own words. What may
have been cut off, and what speaks of something else, answers none.
"""

import re

from coterie.datatypes.thinking import after_thinking
from coterie.rewards.grading.answers.bold import (
    DISAPPROVED,
    bold_at_end,
    last_line,
    value_around,
)
from coterie.rewards.grading.answers.leads import (
    SAYING_NOTHING,
    SENTENCE_END,
    counts_requested,
    leads_to_words,
    says_opposite_end,
)
from coterie.rewards.grading.answers.normalise import plain
from coterie.rewards.grading.answers.sentences import asks_for, ending_in_value
from coterie.rewards.grading.answers.statements import doubted
from coterie.rewards.grading.answers.values import exact
from coterie.rewards.grading.answers.verbs import VERBS, asking_sentence, stands_in, words_of

_TITLE = re.compile(r"(?<=\bMr)\.|(?<=\bMrs)\.|(?<=\bMs)\.|(?<=\bDr)\.|(?<=\bSt)\.")
_ASKS_YEAR = re.compile(r"\b(?:what|which) year\b")
_YEAR = re.compile(r"(?<![\w,.$])(?:1[0-9]{3}|20[0-9]{2})(?![\w,]|\.[0-9])")
_SO = re.compile(r",\s+(?:and\s+)?(?:so|thus|hence|therefore)\s+")
_SOLUTION = re.compile(
    r"(?P<words>(?:[A-Za-z]+,? )*?)\$?(?P<name>[a-z])\s*=\s*(?P<value>[^=<>≤≥≈,;$]{1,64})\$?\."
)
_EQUATION = re.compile(
    r"(?P<words>(?:[A-Za-z]+,? )+?)(?P<mark>\$?)(?P<left>[^=<>≤≥≈$]{1,64}?)\s*="
    r"(?P<right>[^<>≤≥≈$]{1,128})(?P=mark)\."
)
_SOLVE = re.compile(r"\A\s*(?:solve|find|what is)\b", re.IGNORECASE)
_GENERAL = frozenset({
    "a", "an", "his", "her", "their", "its", "for", "in", "s", "simplified", "expression", "form",
    "result", "total", "number",
})  # fmt: skip
"""Words that a conclusion may use without the question."""
_TRUTH = re.compile(r"(?P<truth>yes|no)\b(?:[,.!]|\s*\Z)", re.IGNORECASE)
_ASKS_TRUTH = re.compile(
    r"\A(?:do|does|did|is|are|was|were|can|could|will|would|has|have|had|should|must)\b"
    r"|\byes or no\b"
)
_NAME = r"(?:[A-Z][\w'’.-]*(?: (?:(?:of|de|von|van|the|and) )?[A-Z][\w'’.-]*){0,4})"
_ENDS_IN_NAME = re.compile(rf"(?P<before>.+? )(?P<name>{_NAME})")
_BEGINS_WITH_NAME = re.compile(rf"(?P<name>{_NAME}) (?P<deed>[a-z][a-z ]{{2,60}})")
_AT = re.compile(r",? (?:at|with|by) (?:about )?[0-9].*\Z")
"""A measure behind a comparison: ``K2 is higher, at 8,611 meters``."""
_NAME_ONLY = re.compile(rf"{_NAME}\.?")
"""A response that is a name and nothing else."""
_CONCLUDES = re.compile(
    r"(?:so|thus|therefore|hence|in conclusion|finally|in total|overall|as a result)\b,?\s+"
    r"(?P<said>.+)",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\b(?:is|are|was|were|equals?|gives?|will be|is equal to|=)\s*(?:exactly\s+)?\Z"
)


def value_unmarked(response: str, question: str) -> str | None:
    """The value of a complete last sentence that says in words what the question asks for; None
    where there is no such sentence.

    >>> value_unmarked("So he has 9 - 2 = 7 pens left.", "How many pens are left?")
    '7 pens left'
    >>> value_unmarked("9 - 2 = 7.", "How many pens are left?")
    """
    line, question = (_TITLE.sub("", text) for text in (last_line(response), question))
    if _ASKS_YEAR.search(asking_sentence(question)):
        years = {*_YEAR.findall(line)} - {*_YEAR.findall(question)}
        said = len(years) == 1 and not doubted(line) and not says_opposite_end(line, question)
        return years.pop() if said else None
    if not question or line[-1:] not in (".", "!") or "**" in line:
        return None
    sentence = _SO.split(SENTENCE_END.split(line)[-1])[-1]
    if value := _solution(sentence, question) or _conclusion(sentence, question):
        return value
    parts = ending_in_value(sentence, asking_sentence(question))
    if parts is None or DISAPPROVED.search(sentence):
        return None
    before, inside, behind = parts
    whole = inside + behind.rstrip(" .!")
    if re.search(r"/|\bper\b", behind) and exact(plain(whole)) is not None:
        inside, behind = whole, "."  # "60 km/h"
    # "So 50 - 35 = 15." says nothing of what 15 is.
    words = {*words_of(f"{before} {behind}")}
    if words <= SAYING_NOTHING or not counts_requested(inside + behind, question):
        return None
    return value_around(before, inside, behind, question, bold=False)


def name_unmarked(response: str, question: str) -> str | None:
    """The name, or the yes or no, of a response that marks none: its last part in bold, a last
    sentence that ends with it or says of it what the question asks, or ``Yes, ...``.

    >>> name_unmarked("It was written by Ann Lee.", "Who wrote it?")
    'Ann Lee'
    >>> name_unmarked("No, they breathe water.", "Do fish breathe air?")
    'No'
    """
    if ending := bold_at_end(response, question):
        return ending
    text = after_thinking(response).strip()
    if _ASKS_TRUTH.search(asking_sentence(question)):
        return _truth(text)
    if _NAME_ONLY.fullmatch(text) and not doubted(text):
        return text
    line = last_line(response)
    if line[-1:] not in (".", "!"):
        return None
    named = {named_in(sentence, question) for sentence in SENTENCE_END.split(line)}
    named -= {None}
    return named.pop() if len(named) == 1 else None


def named_in(sentence: str, question: str) -> str | None:
    """The name that a sentence gives: ``It was written by Ann Lee.`` to "Who wrote it?",
    ``Harvard was founded first.`` to "Which was founded first, Harvard or Yale?"."""
    asking, sentence = asking_sentence(question), sentence.strip().rstrip(".!")
    if len(sentence) > 512 or doubted(sentence):
        return None
    match = _BEGINS_WITH_NAME.fullmatch(_AT.sub("", sentence))
    offered = match and re.search(rf"\b{re.escape(match['name'].casefold())}\b", asking)
    if match and offered and " or " in asking and match["deed"] in asking:
        return match["name"]
    match = _ENDS_IN_NAME.fullmatch(sentence)
    if match is None or match["name"].casefold() in asking:
        return None
    return match["name"] if leads_to_words(match["before"], question) else None


def _solution(sentence: str, question: str) -> str | None:
    """``x = 9`` of ``So, the solution is x = 9.``, where an equation in x is to be solved, and of
    ``So, f(2) = 9.``, where that formula is asked for."""
    equation = _EQUATION.fullmatch(re.sub(r"\\\(\s?|\s?\\\)", "$", sentence))
    if equation and asks_for(equation["left"], question):
        told = {*words_of(equation["words"])} <= SAYING_NOTHING
        return f"{equation['left']} = {equation['right']}" if told else None
    match = _SOLUTION.fullmatch(sentence)
    if match is None or _SOLVE.match(question) is None:
        return None
    words = {*words_of(match["words"])}
    letters = {*re.findall(r"(?<![A-Za-z\\])[a-z](?![A-Za-z])", question)} - {"a"}
    if not words or not words <= SAYING_NOTHING or letters != {match["name"]}:
        return None
    return f"{match['name']} = {match['value']}"


def _conclusion(sentence: str, question: str) -> str | None:
    """The value that a sentence behind ``Therefore`` ends with: ``Therefore, the median is 10.``"""
    match = _CONCLUDES.fullmatch(sentence)
    if match is None or doubted(sentence):
        return None
    parts = ending_in_value(match["said"], asking_sentence(question))
    if parts is None or not _TELLS.search(parts[0]) or parts[2].strip(" ."):
        return None
    said, known = {*words_of(parts[0])} - SAYING_NOTHING, question.casefold()
    # "So it is 15" says nothing of what 15 is.
    if not said or not all(word in VERBS or stands_in(word, known) for word in said - _GENERAL):
        return None
    return parts[1] if counts_requested(parts[1], question) else None


def _truth(text: str) -> str | None:
    """The yes or no with which a text begins, where it says no other one later."""
    match = _TRUTH.match(text)
    behind = text[match.end() :] if match else ""
    if match is None or re.search(r"\b(?:yes|no)\b", behind, re.IGNORECASE) or doubted(behind):
        return None
    return match["truth"]
