"""The answer that the last line of a response sets in bold.

``9 * 2 = 18. She makes **$18** a day.`` gives a value, ``It was written by **Ann Lee**.`` a name.
Bold face alone proves nothing: what stands around it has to say what the question asks for.
"""

import re

from coterie.datatypes.thinking import after_thinking
from coterie.rewards.grading.answers.leads import SENTENCE_END, leads_to_words, value_led_to
from coterie.rewards.grading.answers.normalise import plain
from coterie.rewards.grading.answers.statements import doubted, value_stated
from coterie.rewards.grading.answers.values import exact
from coterie.rewards.grading.answers.verbs import VERBS, asking_sentence, shares_verb
from coterie.rewards.grading.answers.worked import sums_to

_LONGEST = 512
"""Characters of a sentence that may be an answer."""
_DISAPPROVING = "✕✖✗✘❌❎❓❔❕❗⚠⛔👎🚫🤔🤷🙅😕🙁🙃😬🧐🤨😅"
DISAPPROVED = re.compile(f"[{_DISAPPROVING}]")
DECORATION = re.compile(
    rf"(?:(?![{_DISAPPROVING}])"
    r"[\U0001f300-\U0001faff☀-☄☑☔☕☘☝☺⚓⚡⚽⚾⛄⛅\u26f0-\u26ff\u2700-✔✨❤⭐\ufe0f\u200d \t])+\Z"
)
"""Signs that decorate the end of a line and say nothing of it, as a cross or a doubting face do."""
TRUTH = re.compile(r"\A(?:yes|no|true|false)[.!]?\Z", re.IGNORECASE)

_BOLD = re.compile(r"\*\*(?P<inside>[^*\n]{1,256})\*\*")
_ITEM = re.compile(r"(?:[-+•*–]|\(?[0-9a-z]{1,2}[.)])[ \t]", re.IGNORECASE)
_REMARK = re.compile(r"(?P<behind>[^()]*?)\s*\((?P<remark>[^()]{2,120})\)[.!]?")
_DIGIT = re.compile(r"[0-9]")
_DOUBT = re.compile(
    r"\?|\b(?:not|no|never|or|either|about|around|roughly|approximately|almost|nearly|maybe|perhaps"
    r"|possibly|probably|least|most|if|wrong(?:ly)?|incorrect(?:ly)?|false(?:ly)?|would|could|might|n't"
    r"|doubt(?:s|ful)?|nobody|nothing|none|neither|nor|unlikely|mistaken(?:ly)?|instead|excluded?"
    r"|except|eliminated?|unless|rather)\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"\b(?:fewer|less|more|extra|short|above|below|beyond|exceeds?|only|another|other"
    r"|originally|initially|at\s+first|previously|formerly|started|began)\b",
    re.IGNORECASE,
)
"""Words that make a value another one, where the question does not say them."""
_DONE = re.compile(
    r"\b(?:is|are|was|were)\s+(?!needed|required)(\w+(?:ed|en|wn|ld|ost|one))\b", re.IGNORECASE
)
"""What was done to the things of a value: ``36 apples were eaten``."""
_TOO = re.compile(
    r"\btoo\s+(?:many|much|few|little|large|small|big|high|low|long|short)\b", re.IGNORECASE
)
_UNIT = re.compile(
    # "**58** in all" is no length in inches.
    r"(?!\s?in\s+\w)\s?[A-Za-z%]+(?:\s(?:per|a|an|each)\s[A-Za-z]+|\s[a-z]{3,}s\b)?"
)
_LEADS = (" is", " are", " equals")
_OTHER_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
_CLAUSE = re.compile(r",\s+(?:and\s+)?(?:who\s+|which\s+)?|\s+and\s+")
_ASIDE = re.compile(
    r"(?<=\*\*)(?:, (?:which|who|whose|where|a|an|the)\b| and (?:first|later|was|is)\b)[^*]*\Z"
)
"""What is said of a name behind it."""
_PLACE = re.compile(r"(?<=\*\*), (?:[A-Z][\w.]+ ?){1,3}\.?\Z")
"""Where a place lies, behind its name."""


def last_line(response: str) -> str:
    """The last line after the thinking; empty where it is longer than any sentence."""
    line = after_thinking(response).rstrip().rpartition("\n")[2]
    return line.strip() if len(line) <= _LONGEST else ""


def value_in_bold(text: str, question: str) -> str | None:
    """The one value in bold in the last line of a text: ``9 * 2 = 18. She makes **$18** a day.``,
    ``**The total is 18.**`` None where the line may speak of something else."""
    parts = _bold_part(text.rstrip().rpartition("\n")[2].strip())
    return value_around(*parts, question, bold=True) if parts else None


def value_around(before: str, inside: str, behind: str, question: str, *, bold: bool) -> str | None:
    """The value ``inside`` of a sentence, with its unit; None where the words around it deny it or
    speak of something else.

    Args:
        before: the text up to the value.
        inside: the value.
        behind: the rest of the sentence.
        question: the value has to answer it.
        bold: whether the value is set in bold. It then needs words that lead to it only where the
            sentence holds another number, a remark or no verb.
    """
    remark = _REMARK.fullmatch(behind)
    if remark is not None:
        behind = remark["behind"]
        working, _, result = remark["remark"].rpartition("=")
        if sums_to(working, result, question) and sums_to(result, inside, question):
            remark = None  # "(46 + 19 = 65)"
    asking = asking_sentence(question)
    spoken = f"{before}{inside} {behind}"
    if re.search(r"\bwould\b", asking):
        # "How many bags would he have?"
        spoken = re.sub(r"\bwould\b", "", spoken)
    if _DOUBT.search(spoken) or doubted(behind) or behind.lstrip()[:1] == ":":
        return None
    is_item = _ITEM.match(before) is not None
    before = SENTENCE_END.split(before)[-1]
    near = " ".join([*before.split()[-3:], inside, *behind.split()[:3]])
    done = _DONE.search(behind)
    if (
        _TOO.search(behind)
        or (done and done[1].casefold() not in asking)
        or not all(word.casefold() in asking for word in _COMPARED.findall(near))
    ):
        return None
    follows_equals = before.rstrip().endswith("=")
    another_deed = not shares_verb(before or inside, asking)
    if another_deed and "=" not in inside and not follows_equals:
        return None
    value = value_stated(inside.strip())
    if not _DIGIT.search(value):
        return None
    # "Step **18**" is a heading.
    verbless = VERBS.isdisjoint(before.casefold().split())
    is_heading = bool(before.strip()) and verbless and not follows_equals
    is_unclear = is_heading or remark or another_deed or _DIGIT.search(before + behind)
    if (is_unclear and is_item) or (remark and not bold):
        return None
    if is_unclear or not bold:
        value = value_led_to(before, value, behind, question)
        # A remark is read with the value: it may be another form of it, or another value.
        return f"{value} ({remark['remark']})" if value and remark else value or None
    first = _UNIT.match(behind)
    unit = first[0] if first and exact(plain(value)) is not None else ""
    return value + unit if exact(plain(value + unit)) is not None else value


def bold_at_end(response: str, question: str = "") -> str | None:
    """What stands in bold at the end of a last line that only leads to it: ``So: **B. two**``,
    ``The share is **5/8**.``

    Args:
        question: where it is given, words that say what it asks for lead there, too, and it may say
            where a place lies: ``It is by Ann Lee, who was born in **Cork**, Ireland.``
    """
    line = last_line(response)
    aside = _ASIDE.search(line) if question else None
    if aside and _DOUBT.search(aside[0]):
        return None
    end = _PLACE.sub("", _ASIDE.sub("", line)) if question else line
    ending = _bold_ending(end)
    if ending is None:
        return None
    before, inside = ending
    # What follows a name may be another name, unless the clause before it asks where it lies.
    leads = end == line and (
        not before or before.endswith((":", "=")) or _leads_to_name(before, question)
    )
    return inside if leads or leads_to_words(_CLAUSE.split(before)[-1], question) else None


def name_in_statement(text: str, question: str) -> str | None:
    """The words in bold at the end of a stated answer that says what the question asks for: ``It
    was written by **Ann Lee**.``"""
    # The line's last mark may have been taken for the end of what stands in bold before it.
    ending = _bold_ending(text.strip() + "**" * (text.count("**") % 2))
    return ending[1] if ending and _leads_to_name(ending[0], question) else None


def _leads_to_name(before: str, question: str) -> bool:
    # "The capital is", with no name that the question lacks
    names = _OTHER_NAME.findall(before) if question else []
    says = before.casefold().endswith(_LEADS) and all(name in question for name in names)
    return says or leads_to_words(before, question)


def _bold_part(line: str) -> tuple[str, str, str] | None:
    """Split a line around its one part in bold; None without one, or with a disapproving sign."""
    line = DECORATION.sub("", line) if len(line) <= _LONGEST else ""
    match = _BOLD.search(line)
    if match is None or line.count("**") != 2 or DISAPPROVED.search(line):
        return None
    return line[: match.start()], match["inside"], line[match.end() :]


def _bold_ending(line: str) -> tuple[str, str] | None:
    """(text before, bold text) of a line that ends in bold; None if it holds a doubt."""
    parts = _bold_part(line)
    if parts is None:
        return None
    before, inside, behind = parts
    # "no" is an answer where it stands alone.
    doubtful = f"{before}{behind} {TRUTH.sub('', inside)}"
    if _DOUBT.search(doubtful) or behind.strip(" .!"):
        return None
    return before.rstrip(), inside
