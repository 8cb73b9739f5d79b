r"""What an answer line states, where it says more than the value.

``72, because 8 * 9 = 72``, ``72. Note that ...`` and ``She has 72 eggs left.`` state 72. What is
taken back, hedged or one of two is stated by none of these: ``72 or 73``, ``not 72``, ``72? No.``,
``72 is wrong``, ``72. Wait, that is wrong.`` stay as they are, and no reader reads them.
"""

import re

from coterie.rewards.grading.answers.worked import sums_to

_REASON = r"because|since|due to|given that"
_RESULT = r"so|thus|hence|therefore|meaning|making|leaving|giving"
_STOP = re.compile(r"(?<=[^\s.!?])[.!][\"”'*_)\]$`]{0,4}\s+(?=[\"“'(*_]{0,3}[A-Z])")
"""A sentence ends: "72. Note that ..."."""
_TAIL = re.compile(
    rf"(?P<stop>{_STOP.pattern})"
    rf"|(?P<reason>,?\s+(?:[-–—]{{1,2}}\s+)?\(?(?:{_REASON})\b)"
    rf"|(?P<result>,\s+(?:and\s+)?(?:{_RESULT})\b)"
    r"|(?P<which>,\s+(?:which|as|where)\b)"
    r"|(?P<other>(?:,\s+|\s+\()not\s+(?:[-$\\(]{0,3}(?:[0-9]|(?<=\\)[a-z])|\(?[A-J]\b))"
    r"|(?P<aside>\s+\((?:as|from|using|by|see|note|i\.e\.|that is|where|which)\s)"
    r"|(?P<check>\s+\((?=[^()=]{1,80}=[^()]{1,80}\)[\s.*]*\Z))"
)
_IDLE = re.compile(
    r",?\s+(?:in\s+(?:total|all|sum|the\s+end)|altogether|overall|all\s+together"
    r"|as\s+(?:required|requested|desired|needed))[\s.!*]*\Z",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"(?:\A|[.!?;,]|[-–—]{1,2})\W{0,3}(?:or|no|nope|not|wait|actually|hmm+|oops|sorry|rather|maybe"
    r"|perhaps|but|however|correction|alternatively|either|otherwise|except|although|though"
    r"|hold on|on second thought|scratch that|i mean)\b"
    r"|\b(?:it|that|this|which|answer|result|value|i|we)"
    r"(?:['’]s|['’]m|\s+(?:is|am|are|was|were|seems?|looks?|(?:may|might|could|must|can)\s+be))?"
    r"\s+(?:\w+\s+)?"
    r"(?:wrong|incorrect|false|mistaken|impossible|absurd|unlikely|unsure|uncertain"
    r"|not\s+(?:sure|right|correct|possible|valid|certain|the\s+(?:answer|right|correct)))\b"
    r"|\bshould(?:\s+have)?\s+be|\bmistake|\berror\b|\btry again\b|\bstart over\b"
    # "Oxygen is released instead" is of something else.
    r"|(?:\A|[.!?;]\s)\W{0,3}instead\b(?!\s+of\b)|(?:[0-9]|\b(?-i:[A-J]))[)*$]{0,3}\s+instead\b"
    r"|\b(?:it|that|this|answer|result|value|use|choose|take|pick|say|try|answer|i|we)\b"
    r"[^.!?;]{0,40}\binstead\b(?!\s+of\b)"
    r"|\bre-?(?:calculat|comput|consider|evaluat|think|do\b)|\bnot sure\b",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\b(?:round|simplif|reduc|approx|about|(?<!\\)times|plus|minus|percent|hundred|thousand|million"
    r"|billion|dozen|equal|becomes|comes|gives|half|twice|wrong|incorrect|false|or)",
    re.IGNORECASE,
)
_GIVEN = re.compile(r"(?<![\w\\^.)}*+/-])(?P<name>[A-Za-z])\s?=\s?(?P<value>-?[0-9][0-9./]*)")
"""``y = 3``, and no ``2y = 3``."""
_FORM = re.compile(
    r"(?:i\.e\.|that is|as|(?:which|where)\s+(?:is|equals|makes|means)),?\s+"
    # A formula holds no words but its unit.
    r"(?P<form>(?=[-−$(\[]{0,3}(?:[0-9.\\]|[A-Za-z](?![A-Za-z]|\s[a-z]{2})))"
    r"(?:\\[A-Za-z]+(?:\{[A-Za-z ~]*\})?"
    r"|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|[^A-Za-z=])*?)(?:\s*[a-z%]+)?[\s.)*$]*\Z"
)
"""Another form of the value, or another value: ``which is 73``, and no ``which is 8 times 9``."""
NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_LETTER = re.compile(r"[\s*_$(\[]{0,6}(?:\\(?:text|textbf|mathrm)\s?\{)?\(?[A-Z][)\]}*_$\s]{0,6}")
_NAME = re.compile(r"[A-Z][a-z]{3,}")
_ITEM = re.compile(r"[\s*_]*[0-9][\s*_]*")
"""What may head an item of a list: ``1. First, ...``."""
_STATED = re.compile(r"[0-9\\$]")
_YES = re.compile(r"\W{0,4}(?:yes|true)\b\W{1,4}([^.,;!?]+)", re.IGNORECASE)
_OTHER_TRUTH = re.compile(r"\W*(?:yes|no|true|false)\b(?!\s+\w)", re.IGNORECASE)
_TRUTHS = frozenset({"yes", "no", "true", "false"})
_TRUTH = re.compile(
    r"[\s*_]{0,4}(?:\\text\s?\{)?(yes|no|true|false)[*_]{0,3}"
    r"(?:\s?[,;]\s+|\s?[—–]\s?|(?P<stop>\.)[*_]{0,3}\s+)",
    re.IGNORECASE,
)
_CONFIRMING = re.compile(
    r"(?:it|there|they|he|she|we|one|you)(?:['’]s|\s+(?:is|are|was|were|would\s+be))\s+"
    r"(?:not\s+(?:possible|valid|correct|right|true)|impossible|false|incorrect)\b"
    r"(?P<rest>[^;]*)\Z",
    re.IGNORECASE,
)
"""A clause that denies, behind a No: ``it is not possible``. "That is not right" may be said of the
No itself."""
_DENYING = re.compile(
    r"(?:it|this|that|they|he|she|we|you|one)(?:['’]s\s+not|\s+(?:cannot|can['’]t|won['’]t"
    r"|(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|may|must|should)"
    r"(?:\s+not|n['’]t)))\b"
    r"(?!\s+(?:only|just|merely|matter))",
    re.IGNORECASE,
)

_DOUBTING = """
not no never none neither nor cannot wrong incorrect false if unless would could might may maybe
perhaps possibly probably likely about around approximately roughly almost nearly over under
least most more less fewer than half third quarter twice thrice double triple between either or
other another first second guess assume suppose think thought initially originally previously
before instead when until unclear unknown
"""
DOUBTS = frozenset(_DOUBTING.split())
_LONGEST = 512


def value_stated(text: str, *, labelled: bool = False) -> str:
    r"""The value that an answer line states, without the words around it; ``text`` itself where
    there are none, or where they may change the value.

    Args:
        labelled: it stands after a colon. ``B. I am sure`` is then a letter with the text of an
            option, and ``1. First, ...`` the first item of a list.

    >>> value_stated("72 because 8 * 9 = 72"), value_stated("72 eggs in all")
    ('72', '72 eggs')
    >>> value_stated("72 or 73"), value_stated("72. Wait, no.")
    ('72 or 73', '72. Wait, no.')
    """
    if len(text) > _LONGEST:
        # What is longer than an answer may have a short beginning.
        head = text[:_LONGEST]
        short = _without_tail(head, labelled)
        return text if short == head else _without_idle(short)
    return _without_idle(_without_tail(text, labelled))


def _without_tail(text: str, labelled: bool) -> str:
    truth = _TRUTH.match(text)
    if truth:
        said = text[truth.end() :]
        if truth[1].casefold() in ("yes", "true") and _DENYING.match(said) and not truth["stop"]:
            # A Yes to what is denied may be a No.
            return text
        denied = _CONFIRMING.match(said) if truth[1].casefold() in ("no", "false") else None
        if not doubted(denied["rest"] if denied else said):
            return truth[1]
    match = _TAIL.search(text)
    if match is None:
        return text
    value, tail = text[: match.start()].strip(), text[match.end() :]
    if not value or doubted(tail):
        return text
    kind = match.lastgroup
    is_letter = _LETTER.fullmatch(value) is not None
    if kind == "stop":
        says = (
            is_letter
            or (_NAME.fullmatch(value) and not labelled)
            or _STATED.search(value)
            or value.strip("*_ ").casefold() in _TRUTHS
        )
        may_head_list = labelled and (is_letter or _ITEM.fullmatch(value))
        return value if says and not may_head_list and not _gives_another(value, tail) else text
    open_bracket = "(" in match[0] and kind in ("reason", "aside")
    other_numbers = set(NUMBER.findall(tail)) - set(NUMBER.findall(value))
    form = _FORM.match(match[0].lstrip(" ,(") + tail)
    unsure = (
        (kind == "reason" and value.endswith("."))
        or (open_bracket and not tail.rstrip(" .*").endswith(")"))
        or (kind == "result" and other_numbers)
        or (kind in ("which", "result") and _CHANGED.search(tail))
        or (kind in ("which", "result") and _GIVEN.search(tail))
        or _gives_another(value, tail)
        or (kind == "check" and not _comes_to(tail, value))
        or (kind in ("which", "aside") and form and not sums_to(form["form"], value))
    )
    return text if unsure else value


def first_sentence(text: str) -> tuple[str, str]:
    """The sentence that a text begins with, and what follows; twice nothing where there is none, or
    where it is taken back.

    >>> first_sentence("(B) Two storms. They meet.")
    ('(B) Two storms', 'They meet.')
    """
    for match in _STOP.finditer(text[:_LONGEST]):
        value, tail = text[: match.start()].strip(), text[match.end() :]
        # "(B). Two" begins with no sentence.
        if _LETTER.fullmatch(value) is None:
            return ("", "") if doubted(tail) else (value, tail)
    return "", ""


def doubted(tail: str) -> bool:
    """Whether what follows a value takes it back: ``No, it is 46``, ``not B? Then A``, ``yes``."""
    return bool(_TAKEN_BACK.search(tail) or _OTHER_TRUTH.match(tail) or "? " in tail)


def denies(text: str, asking: str) -> bool:
    """Whether a Yes is followed by the denial of the very question: ``Yes, 7 is not prime.``

    >>> denies("Yes, 7 is not prime.", "is 7 prime?"), denies("Yes, 7 is not even.", "is 7 prime?")
    (True, False)
    """
    match = _YES.match(text[:_LONGEST])
    said = {*re.findall(r"\w+", re.sub("n['’]t", " not", match[1].casefold()))} if match else set()
    return "not" in said and said - {"not"} == {*re.findall(r"\w+", asking)}


def _gives_another(value: str, tail: str) -> bool:
    """Whether ``p = 3`` is followed by another value of p."""
    values = {match["name"]: match["value"].rstrip(".") for match in _GIVEN.finditer(value)}
    return any(
        match["value"].rstrip(".") != values.get(match["name"], match["value"].rstrip("."))
        for match in _GIVEN.finditer(tail)
    )


def _comes_to(check: str, value: str) -> bool:
    """Whether ``9 * 2 = 18)`` ends in the number that was stated."""
    last = NUMBER.findall(check.rpartition("=")[2])
    return bool(last) and last == NUMBER.findall(value)


def _without_idle(text: str) -> str:
    return _IDLE.sub("", text)
