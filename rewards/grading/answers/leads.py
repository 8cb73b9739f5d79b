"""What leads to a part in bold at the end of a response, and whether that is what is asked for.

``Total = 120 + 30 = **150**``, ``and so **x = 4**`` and ``The next one after 31 is **37**`` lead to
a value, ``It lies on the continent of **Asia**`` to a name. A wrong or unfinished sum, a condition,
an item of a list and words that the question lacks lead to nothing.
"""

import re

from coterie.rewards.grading.answers.caps import MAX_QUESTION
from coterie.rewards.grading.answers.normalise import plain
from coterie.rewards.grading.answers.sentences import value_in_sentence
from coterie.rewards.grading.answers.values import value_of
from coterie.rewards.grading.answers.verbs import (
    VERBS,
    asking_clause,
    asking_sentence,
    shares_verb,
    stands_in,
)
from coterie.rewards.grading.answers.worked import sums_to

_ASSIGNED = re.compile(
    r"\$?(?P<name>[A-Za-z](?:_\{?[A-Za-z0-9]\}?)?)\s*=\s*(?P<value>[^=<>≤≥≈,;]{1,64})"
)
_EQUALS = re.compile(r"=\s*(?:\$|\\\))?\s*\Z")
_WORKING = re.compile(
    r"(?:(?P<words>[A-Za-z][A-Za-z ,'’]*?)(?:\s*(?P<joint>[=:])\s*|\s+(?![-−+])))?"
    r"(?P<sums>[-−0-9(\\$√].*)"
)
"""Words, and a sum behind them: ``The total is 3 + 4``, ``Total = 3 + 4``."""
_CONDITION = re.compile(
    r"\b(?:if|when|where|whenever|for|case|suppose|supposing|assum\w*|let|let's|try\w*|test\w*|say"
    r"|set|setting|start\w*|check\w*|example|instance|given|with|until|step)\b",
    re.IGNORECASE,
)
_CONNECTING = """
so thus hence therefore then and we get gets have obtain find finally which that this it gives
yields means implies leads to us conclude follows the solution answer is must be consequently final
value dividing subtracting adding multiplying simplifying both sides by
"""
SAYING_NOTHING = frozenset(_CONNECTING.split())
"""Words that lead to an equation and say nothing of it."""
_BY_NUMBER = re.compile(r"\bby\s[-−]?[0-9][0-9./]*(?=\s[a-z])")
_MORE_THAN_NAME = re.compile(
    r"\b(?:sum|product|difference|number|ratio|average|mean|square|cube|double|twice|half|terms"
    r"|remainder|reciprocal|largest|smallest|greatest|least|all)\b"
)
_REQUESTED_FORMULA = re.compile(
    r"\b(?:find|compute|calculate|determine|evaluate|give|state|what\s+is|value\s+of)\s+"
    r"(?:the\s+)?(?:value\s+of\s+)?\$?(?P<formula>[^.?!;,$]{1,60})"
)
_END_WORDS = frozenset(
    {"is", "are", "was", "were", "of", "in", "on", "at", "by", "called", "named"}
)
_PLACED = """
a an the of in on at by it they these this that all he she his her its their there so thus hence
therefore is are was were be been who what which answer final correct called named lie lies located
situated found
"""
_PLACES = frozenset({"lie", "lies", "located", "situated", "found"})
_DEED = re.compile(r"(?:ed|en|orn|own|ost|eld|uilt|ie)\Z")
_BEGINS = re.compile(r"\b(?:beg[aiu]n\w*|start\w*|born)\b")
_ENDS = re.compile(r"\b(?:end\w*|finish\w*|die[sd]?)\b")
_FREE = frozenset(_PLACED.split())
"""Words that may lead to a name without being in the question."""
_COUNTED = re.compile(
    r"how many (?P<things>.*?)(?= (?:of|in|on|for|to|do|does|did|will|would|can|could|should|must"
    r"|are|is|was|were|has|have|had)\b|[?.]|\Z)"
)
_THING = re.compile(
    r"[$€£]?[0-9][0-9,./]*\s+(?:more\s+)?(?P<thing>[A-Za-z]+)(?:\s(?P<next>[a-z]+))?"
)
SENTENCE_END = re.compile(r"(?<=[a-z0-9$)])[.!][*_]{0,2}\s+")
_DIGITS = re.compile(r"[0-9]+")


def value_led_to(before: str, inside: str, behind: str, question: str) -> str:
    """The value in bold, where what stands around it on the last line leads to it and to what the
    question asks for; empty where it may lead to another.

    >>> value_led_to("Total = 3 + 4 = ", "7 pens", ".", "How many pens are there?")
    '7 pens'
    >>> value_led_to("x + 3 = ", "7", ".", "What is x?")
    ''
    """
    if not question:
        return ""
    ends = not behind.strip(" .!")
    if (equation := _ASSIGNED.fullmatch(inside)) is not None:
        clause = _BY_NUMBER.sub("by", re.split(r"[,;:$]", before)[-1])
        leads = {*_words(clause)} <= SAYING_NOTHING and not _DIGITS.search(clause)
        clear = ends and leads and not _CONDITION.search(before)
        return inside if clear and _asks_for_name(equation["name"], question) else ""
    if (equals := _EQUALS.search(before)) is not None:
        return _result(before[: equals.start()], inside, behind, question)
    if says_opposite_end(f"{before} {behind}", question):
        return ""
    return value_in_sentence(f"{before}**{inside}**{behind}", question)


def says_opposite_end(said: str, question: str) -> bool:
    """Whether a text says when something began, and the question asks when it ended, or the other
    way round."""
    said, asking = said.casefold(), asking_sentence(question)
    return any(
        one.search(said) and not other.search(said) and other.search(asking)
        for one, other in ((_BEGINS, _ENDS), (_ENDS, _BEGINS))
    )


def _result(working: str, inside: str, behind: str, question: str) -> str:
    """The value that a sum comes to, where the words before the sum say what is asked for."""
    # "After giving away 18, she has 45 - 18"
    for clause in (working, working.rpartition(", ")[2]):
        match = _WORKING.fullmatch(clause.strip(" $*"))
        if match is not None and sums_to(match["sums"], inside, question):
            break
    else:
        return ""
    words = (match["words"] or "").strip(" ,")
    with_unit = inside + behind.rstrip(" .!")
    whole = value_of(plain(with_unit), question)
    ends = not behind.strip(" .!") or (whole is not None and whole.literal is not None)
    vague = {*_words(words)} <= SAYING_NOTHING | {"takes", "makes"}
    if ends and vague and _names_what_is_counted(with_unit, question):
        return with_unit
    if ends and {*_words(words)} <= SAYING_NOTHING - VERBS | {"is"}:
        return with_unit
    if ends and len(words) == 1 and match["joint"]:
        # "A = 3 * 4" is an area.
        nouns = _words(asking_clause(question))[1:]
        initial = any(len(word) > 3 and word[0] == words.casefold() for word in nouns)
        return with_unit if initial or _asks_for_name(words, question) else ""
    joint = "is " if match["joint"] else ""
    return value_in_sentence(f"{words} {joint}**{inside}**{behind}", question)


def _asks_for_name(name: str, question: str) -> bool:
    """Whether a question asks for the value of a name, and for no formula or number made of it."""
    asking = asking_sentence(question)
    letter = re.compile(rf"(?<![A-Za-z\\]){re.escape(name.casefold())}(?![A-Za-z_(])")
    if letter.search(asking) is None or _MORE_THAN_NAME.search(asking):
        return False
    for match in _REQUESTED_FORMULA.finditer(asking):
        formula = match["formula"].strip()
        if letter.search(formula) and re.search(
            r"[-+*/^\\0-9]", re.split(r"\bif\b|\bwhen\b|=", formula)[0]
        ):
            return False
    return True


def leads_to_words(before: str, question: str) -> bool:
    """Whether the words before a name in bold say what the question asks for, and nothing else.

    >>> leads_to_words("It was written by", "Who wrote it?")
    True
    >>> leads_to_words("It was praised by", "Who wrote it?")
    False
    """
    sentence = SENTENCE_END.split(before)[-1]
    asking = asking_sentence(question[:MAX_QUESTION])
    words = _words(sentence)
    while words and words[-1] in ("the", "a", "an"):
        words.pop()
    if not words or words[-1] not in _END_WORDS or not asking:
        return False
    if not _joins(words, asking):
        return False
    if not {*_DIGITS.findall(sentence)} <= {*_DIGITS.findall(asking)}:
        return False
    deeds = [word for word in words if word not in _FREE]
    return shares_verb(" ".join(deeds), asking) and all(stands_in(word, asking) for word in deeds)


def _joins(words: list[str], asking: str) -> bool:
    """Whether the last word joins the name as the question asks: ``in`` to "In which country"."""
    last, before = words[-1], "".join(words[-2:-1])
    if last == "by":
        return _asks_by_whom(asking)
    if last == "of":
        return bool(before) and before not in _FREE and stands_in(before, asking)
    if last in ("in", "on", "at"):
        asks = re.search(r"\b(?:in|on|at|where)\b", asking) or before in _PLACES
        deeds = {word for word in _words(asking) if _DEED.search(word) or word in VERBS}
        return bool(asks) and deeds <= {*words, *_PLACES, "is", "are", "was", "were"}
    return True


def _asks_by_whom(asking: str) -> bool:
    """Whether a question asks who did something: "Who drew it?", and not "Whom did she draw?"."""
    return bool(
        re.search(r"\bby (?:whom|who|which|what)\b", asking)
        or not re.search(r"\b(?:by|did|does|do)\b", asking)
    )


def _words(text: str) -> list[str]:
    # Words of any script, unlike words_of: a foreign word may deny what follows it.
    return re.findall(r"[^\W\d_]+(?:['’][a-z]+)?", text.casefold())


def counts_requested(value: str, question: str) -> bool:
    """Whether what follows a number names no other thing than ``how many ...`` asks for."""
    asking = asking_clause(question)
    if "percent" in asking:
        return "%" in value or "percent" in value
    things, words = _requested_and_counted(value, asking)
    if not words or words[0] in VERBS | {"in", "more", "left"}:
        return True
    # "trading cards"
    return any(stands_in(word.casefold(), things) for word in words)


def _names_what_is_counted(value: str, question: str) -> bool:
    """Whether a number is of the very thing that ``how many ...`` asks for: ``8 weeks``."""
    things, words = _requested_and_counted(value, asking_clause(question))
    return bool(words) and words[0].casefold() in things.split()[:1]


def _requested_and_counted(value: str, asking: str) -> tuple[str, list[str]]:
    """What ``how many ...`` asks for, and the one or two words behind a number."""
    requested, counted = _COUNTED.search(asking), _THING.match(value)
    if requested is None or counted is None:
        return "", []
    return requested["things"], [word for word in (counted["thing"], counted["next"]) if word]
