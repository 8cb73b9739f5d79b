r"""The value in a sentence that is marked as the answer, read with the question.

``Answer: A total of 87 cakes were sold.``, ``Answer: Ann would pay **$32** after 2 days``,
``Answer: 4 (3 pens and 1 ruler)`` and ``Answer: $a+b=12$`` state one value each. A sentence has to
say what the question asks: its words stand in the question, its verb is the question's, and nothing
in it denies, hedges or compares what the question does not.
"""

import re
from itertools import takewhile

from coterie.rewards.grading.answers.caps import MAX_QUESTION
from coterie.rewards.grading.answers.extract import asking_sentence, shares_verb
from coterie.rewards.grading.answers.normalise import key, plain
from coterie.rewards.grading.answers.statements import DOUBTS, VERBS, doubted
from coterie.rewards.grading.answers.structure import shape
from coterie.rewards.grading.answers.units import CURRENCIES, NUMBERS, opposed, things_in
from coterie.rewards.grading.answers.values import Value, value_of

_LONGEST = 256
_BOLD = re.compile(r"\*\*(?P<inside>[^*\n]{1,64})\*\*")
_NUMBER = re.compile(
    r"(?:(?<![\w.)])[-+−]\s?)?[$＄€£]?(?<![\w.,/^_])[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:\s?%)?"
    r"(?![\w^_/*+=-]|[.,:][0-9]|\s?[-+*/=^<>×÷±])"
)
_DIGITS = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_REMARK = re.compile(r"(?P<value>.{1,200}?)\s+\((?P<remark>[^()]{2,120})\)[\s.*]*", re.DOTALL)
_COUNT = re.compile(r"[$＄]?(?P<number>[0-9]+(?:\.[0-9]+)?)\s+[a-z]{3,20}(?:\s[a-z]{3,20}){0,2}")
_AND_MORE = re.compile(r"(?:and|with|plus|while)\s+[0-9]+\s+(?P<words>[a-z]+(?:\s+[a-z]+){0,3})")
_BESIDE = re.compile(r"(?:the|this|that is the)\s+[a-z ]{3,60}|(?:all|both)\s+of\s+[a-z ]{3,60}")
_COMPARES = {
    "more": "more", "less": "less", "fewer": "less", "longer": "longer", "older": "older",
    "younger": "younger", "taller": "taller", "shorter": "shorter", "further": "farther",
    "farther": "farther", "heavier": "heavier", "lighter": "lighter", "faster": "faster",
    "slower": "slower", "extra": "more",
}  # fmt: skip
"""Words that compare, and the kind of each."""
_WORD = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?")
_NAME = re.compile(r"(?<![A-Za-z])[A-Z][a-z]{2,}")
_SMALL = """
a an the of in on at to for from with by he she it they we his her its their there this that each
per and will total altogether all overall sum both
"""
_PREPOSITIONS = frozenset(
    {"for", "on", "in", "at", "from", "to", "with", "by", "after", "than", "and"}
)
_DEEDS = frozenset(VERBS.replace(",", " ").split())
_FREE = frozenset(_SMALL.split()) | _DEEDS | {"do", "does", "did"}
"""Words that a sentence may hold although the question does not."""
_BEHIND = _FREE - _DEEDS - {"each", "per", "from", "and", "by"}
"""The same for what follows the value."""
_CHANGES = """
dozen dozens pair pairs percent hundred hundreds thousand thousands million billion tens times gross
short too excluding without besides minus plus extra further off wasted lost
"""
_DENIALS = DOUBTS | NUMBERS | frozenset(_CHANGES.split())
_ASKED = re.compile(
    r"\b(?:find|compute|calculate|determine|evaluate|what\s+is|give|state|value\s+of)\s+"
    r"(?:(?:the\s+)?(?:exact\s+|numerical\s+)?value\s+of\s+|the\s+(?:sum|product|difference)\s+)?"
    r"(?:\$(?P<set>[^$]{1,80})\$(?=\s*(?:[.?!;]|,|\Z|\bin\b|\bas\b|\bif\b|\bwhen\b))"
    r"|\\\((?P<round>[^$]{1,80}?)\\\)(?=\s*(?:[.?!;,]|\Z|in\b|as\b|if\b|when\b))"
    r"|(?P<bare>[^.?!;$\n]{1,40}?)(?=\s*(?:[.?!;]|\Z)))",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?P<subject>[A-Za-z][\w ]{0,60}?) (?P<verb>is|are|was|were) (?P<value>\w+)\.?"
)


def value_in_sentence(text: str, question: str) -> str:
    """The one value that a sentence states in answer to a question; empty where there is none, or
    where it may be of something else.

    >>> value_in_sentence("Ann had 87 cakes.", "Ann made cakes. How many cakes did Ann have?")
    '87 cakes'
    >>> value_in_sentence("Ann ate 87 cakes.", "Ann made cakes. How many cakes did Ann have?")
    ''
    """
    question = question[:MAX_QUESTION]
    text = text.strip().rstrip("!. ")
    # "50 loss" is no 50 to "a profit or a loss?"
    if opposed(question) & (things_in(text) | {*map(str.casefold, _WORD.findall(text))}):
        return ""
    if len(text) > _LONGEST or "\n" in text or not question or doubted(text):
        return ""
    if (match := _REMARK.fullmatch(text)) is not None:
        value = match["value"].strip("* ")
        stated = value if _literal(value, question) else _in_words_around(value, question)
        return stated if stated and _is_aside(match["remark"], value, stated, question) else ""
    return _in_words_around(text, question)


def _literal(text: str, question: str) -> Value | None:
    value = value_of(plain(text), question)
    return value if value is not None and value.literal is not None else None


def _is_aside(remark: str, value: str, stated: str, question: str) -> bool:
    """Whether a remark in parentheses leaves the value as it is: it says the same number in words,
    what the number is the sum of, or what the rest is (``and 24 incorrectly``)."""
    own = _literal(stated, question)
    if own is None or own.literal is None:
        return False
    said = _number_in_words(remark)
    if said is not None:
        unit = remark.split()[-1].casefold().rstrip("s")
        same_unit = unit not in CURRENCIES or unit == own.unit
        return said == own.literal and same_unit
    words = {word.casefold() for word in _WORD.findall(remark)}
    if words & _DENIALS or re.search(r"[?!;:=~≈]", remark):
        return False
    parts = [
        _COUNT.fullmatch(part.strip())
        for part in re.split(r",\s*(?:and\s)?|\sand\s|\s\+\s", remark)
    ]
    if len(parts) > 1 and all(parts):
        return sum(float(part["number"]) for part in parts if part) == float(own.literal)
    asking = asking_sentence(question)
    if more := _AND_MORE.fullmatch(remark):
        others = {*more["words"].split()} - _FREE
        beside = {word.casefold() for word in _WORD.findall(value)}
        whole = re.search(r"\b(?:total|altogether|both|all|combined|together|and)\b", asking)
        return bool(beside and others) and not others & beside and not whole
    return _BESIDE.fullmatch(remark) is not None and _speaks_of(words - _FREE, asking)


def _number_in_words(text: str) -> int | None:
    """``four hundred dollars`` as 400; None where it is no number and one unit."""
    words = text.casefold().replace("-", " ").split()
    if words and words[-1] not in NUMBERS | {"thousand"}:
        words.pop()
    words = [word for word in words if word != "and"]
    total = part = 0
    for word in words:
        if word == "thousand":
            total, part = total + part * 1000, 0
        elif word == "hundred":
            part *= 100
        else:
            value = value_of(word, "")
            if word not in NUMBERS or value is None or value.literal is None:
                return None
            part += int(value.literal)
    return total + part if words else None


def _in_words_around(text: str, question: str) -> str:
    bold = [match for match in _BOLD.finditer(text) if any(map(str.isdigit, match["inside"]))]
    if len(bold) > 1 or text.count("**") != 2 * len(bold):
        return ""
    if bold:
        inside = bold[0]["inside"].strip()
        before, behind = text[: bold[0].start()], text[bold[0].end() :]
        if _literal(inside, question) is None:
            return ""
    else:
        text = re.sub(r"\\[()]|(?<![0-9])\$(?=[0-9.]+\$)|(?<=[0-9])\$", "", text).replace(
            r"\$", "$"
        )
        numbers = [*_NUMBER.finditer(text)]
        if len(numbers) != 1 or len(_DIGITS.findall(text)) != 1:
            return ""
        inside = numbers[0][0]
        before, behind = text[: numbers[0].start()], text[numbers[0].end() :]
    if re.search(r"[=<>~≈\\^?;:(]|[.!]\s|,\s*(?:and|but|or)\b", before + " " + behind):
        return ""
    if not _answers(before, behind, question):
        return ""
    return _with_unit(inside, behind, question)


def _with_unit(number: str, behind: str, question: str) -> str:
    """A number with the longest beginning of what follows that is its unit."""
    words = [*takewhile(lambda word: word.casefold() not in _PREPOSITIONS, behind.split())]
    for many in range(min(len(words), 4), 0, -1):
        stated = " ".join([number, *words[:many]]).rstrip(",.")
        if _literal(stated, question) is not None:
            return stated
    # "7 eighteenths" is no 7.
    return number if not words or words[0].casefold() in _FREE | {*_COMPARES} else ""


def _answers(before: str, behind: str, question: str) -> bool:
    """Whether the words around a value say what the question asks for, and nothing else."""
    asking = asking_sentence(question)
    if not {*_DIGITS.findall(before + behind)} <= {*_DIGITS.findall(asking)}:
        return False
    asked = {*map(str.casefold, _WORD.findall(asking))}
    left = [word.casefold() for word in _WORD.findall(before)]
    right = [word.casefold() for word in _WORD.findall(behind)]
    compared = _compares_as_asked(left, right, asking)
    if compared is None:
        return False
    allowed = asked & {"would", "could", "might"} | compared
    if {word for word in (*left, *right) if word.endswith(("n't", "n’t"))}:
        return False
    if ({*left, *right} - allowed) & _DENIALS or not shares_verb(before, asking):
        return False
    if not {"each", "per", "every", "daily", "left", "remaining"} & {*left, *right} <= asked:
        return False
    if not _names_no_other(before, behind, question, asking):
        return False
    whole = {*map(str.casefold, _WORD.findall(question))}
    return _speaks_of({*left} - _FREE - allowed, " ".join(whole)) and _speaks_of(
        {*right} - _BEHIND - allowed, asking
    )


def _speaks_of(words: set[str], text: str) -> bool:
    """Whether each word stands in a text, in any form of it."""
    known = _WORD.findall(text.casefold())
    return all(any(_same_stem(word, other) for other in known) for word in words)


def _same_stem(one: str, other: str) -> bool:
    endings = r"(?:ing|ed|ly|es|s|e|['’]s)\Z"
    for _ in range(2):
        one, other = (re.sub(endings, "", each) if len(each) > 3 else each for each in (one, other))
    return one == other


def _compares_as_asked(left: list[str], right: list[str], asking: str) -> set[str] | None:
    """The words with which a sentence compares, where the question compares so, and the same way
    round; None where it does not."""
    own = {word for word in (*left, *right) if word in _COMPARES}
    if "than" not in right:
        # "9 more books" is asked for by "How many more books does she need?"
        words = {*map(str.casefold, _WORD.findall(asking))}
        return own if own <= words and "than" not in left else None
    kinds = {_COMPARES[word] for word in own}
    asked_words = _WORD.findall(asking.casefold())
    asked = {_COMPARES[word] for word in asked_words if word in _COMPARES}
    asked = asked or ({"more"} if "than" in asked_words or "difference" in asked_words else set())
    if len(kinds) != 1 or not kinds <= asked or "than" in left or right.count("than") != 1:
        return None
    if "than" in asked_words:
        at, here = asked_words.index("than"), right.index("than")
        first, second = {*asked_words[:at]} - _FREE, {*asked_words[at:]} - _FREE
        one, other = {*left, *right[:here]}, {*right[here:]}
        if one & (second - first) - {"than"} or other & (first - second):
            return None
    return own | {"than"}


def _names_no_other(before: str, behind: str, question: str, asking: str) -> bool:
    """Whether a sentence names nobody but who the question asks about."""
    own = {*_NAME.findall(before + " " + behind)}
    inside = {*re.findall(r"(?<=[a-z,$0-9] )[A-Z][a-z]{2,}", question)}
    names = {word for word in _NAME.findall(question) if word in inside or word in own}
    asked = {name for name in names if re.search(rf"\b{name.casefold()}\b", asking)}
    spoken = own & names - {"The", "There", "They", "She", "His", "Her", "Their"}
    if asked or len(names) > 1:
        return spoken <= asked
    return True


def without_asked_side(answer: str, question: str) -> str:
    r"""The right side of an equation whose left side is what the question asks for: ``12`` of
    ``a+b=12`` to "Find $a+b$."; any other answer as it is.

    >>> without_asked_side("a+b=12", "Find $a+b$."), without_asked_side("2a+b=12", "Find $a+b$.")
    ('12', '2a+b=12')
    """
    if shape(answer).name:
        return answer
    left, equals, right = plain(answer).partition("=")
    if not equals or not right.strip() or re.fullmatch(r"[-+\s\w.]*[0-9]", left.strip()):
        return answer
    if key(answer, fold=False) in key(question[:MAX_QUESTION], fold=False):
        # To "Given x^2 = 9, what is x^2?" it says nothing new.
        return answer
    own = key(left, fold=False)
    for match in _ASKED.finditer(question[:MAX_QUESTION]):
        asked = match[match.lastgroup or 0]
        if "=" not in asked and own and key(asked, fold=False) == own:
            return right.strip()
    return answer


def said_of_subject(text: str, question: str) -> str:
    """``blue`` of ``Box 1 is blue.`` to "What colour is box 1?"; empty for any other text.

    >>> said_of_subject("Box 1 is blue.", "What colour is box 1?")
    'blue'
    """
    match = _SUBJECT.fullmatch(text.strip())
    if match is None:
        return ""
    ending = f" {match['verb']} {match['subject']}?".casefold()
    asking = asking_sentence(question).strip()
    asks = re.match(r"(?:so,? )?(?:what|which)\b", asking) is not None
    return match["value"] if asks and asking.endswith(ending) else ""
