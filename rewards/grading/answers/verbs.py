"""The sentence in which a question asks, and whether the verb of an answer is its verb."""

import re
from functools import lru_cache

from coterie.rewards.grading.answers.caps import MAX_QUESTION
from coterie.rewards.grading.answers.question_units import question_units
from coterie.rewards.grading.answers.units import unit_of

_FORMS = """
is are was were, equals, has have had, make makes made, earn earns earned, cost costs, need needs
needed, get gets got, take takes took taken, spend spends spent, pay pays paid, sell sells sold,
eat eats ate eaten, save saves saved, run runs ran, walk walks walked, read reads, bake bakes
baked, use uses used, buy buys bought, weigh weighs weighed, owe owes owed, receive receives
received, collect collects collected, drink drinks drank drunk, go goes went gone, feed feeds fed,
dig digs dug, grow grows grew grown, fly flies flew flown, sleep sleeps slept, swim swims swam,
draw draws drew drawn, hide hides hid hidden, steal steals stole stolen, lend lends lent, lay lays
laid, lose loses lost, break breaks broke broken, throw throws threw thrown, win wins won, send
sends sent, bring brings brought, catch catches caught, build builds built, write writes wrote
written, travel travels traveled travelled, drive drives drove driven, find finds found, give gives
gave given, keep keeps kept, score scores scored, plant plants planted, pick picks picked, contain
contains, hold holds, produce produces produced, charge charges charged, last lasts lasted,
choose chooses chose chosen, fill fills filled
"""
"""The forms of each verb that may stand before a value."""
_FIRST = {form: group.split()[0] for group in _FORMS.split(",") for form in group.split()}
"""Verb -> the first form of it: ``ate`` -> ``eat``."""
VERBS = frozenset(_FIRST)
_LIKE = (
    frozenset({"earn", "make", "get", "receive", "collect"}),
    frozenset({"cost", "pay", "spend", "charge"}),
)
"""Verbs that may stand for one another."""
_SAYING = frozenset({"is", "equals"})
_NEUTRAL = _SAYING | {"has", "hold", "contain", "keep"}
"""Verbs that say what is, and no deed."""
_SENTENCES = re.compile(r"(?<=[.?!])(?<!\bvs\.)(?<!\b[md]r\.)(?<!\bmrs\.)(?<!\bst\.)\s+")
_CLAUSE = re.compile(
    # "If she sells them, how much does she earn if ..."
    r"(?:.*?\b(?=how\s)|.*\b(?=(?:what|which|find|calculate|determine|compute)\b))?"
    r"(?P<clause>.*?)(?:,?\s(?:if|assuming|given that|supposing)\b.*)?",
    re.DOTALL,
)
_WORD = re.compile(r"[a-z]+")
_ENDING = re.compile(r"(?:ing|ed|ly|es|s|e|['’]s)\Z")
_SHARED = re.compile(
    r"\b(?:(?:per|every|each)\s+(?P<of>[a-z]+)"
    r"|an?\s+(?P<time>second|minute|hour|day|week|month|year)\b)"
)
_RATE = re.compile(
    r"(?!.*\b(?:how (?:many|much|far|long)|distance|time|total|at (?:this|that|the same))\b)"
    r".*\b(?:speed|velocity|pace|rate|fast|wage|salary|mileage|unit price)\b",
    re.DOTALL,
)
"""A clause that asks how much of something there is in one of another thing."""
_NEEDED = frozenset({"need", "required"})


@lru_cache(maxsize=1024)
def asking_sentence(question: str) -> str:
    """The last sentence of a question that asks."""
    sentences = _SENTENCES.split(question[:MAX_QUESTION].casefold().strip())
    return next((each for each in reversed(sentences) if "?" in each), sentences[-1])


@lru_cache(maxsize=1024)
def asking_clause(question: str) -> str:
    """The part of the asking sentence that asks, without its conditions.

    >>> asking_clause("He has 9. If he sells 2, how many are left if each weighs 1 kg?")
    'how many are left'
    """
    sentence = asking_sentence(question)
    match = _CLAUSE.fullmatch(sentence)
    return match["clause"] if match and match["clause"].strip() else sentence


def shares_verb(before: str, asking: str) -> bool:
    """Whether the last verb before a value fits the question's verb; true without a question."""
    verbs = [_FIRST[word] for word in _WORD.findall(before.casefold()) if word in _FIRST]
    return not verbs or not _WORD.search(asking) or _fits_question(verbs[-1], asking)


def _fits_question(verb: str, asking: str) -> bool:
    verbs = {_FIRST[word] for word in _WORD.findall(asking) if word in _FIRST}
    verbs |= {verb for group in _LIKE if verbs & group for verb in group}
    # "He has 36" says nothing of what he ate.
    return verb in verbs | _SAYING or (verb in _NEUTRAL and verbs <= _NEUTRAL)


def says_another_deed(behind: str, question: str) -> bool:
    """Whether words behind a value say what was done to it, or that it is a share (``per jar``),
    although the question asks for no such thing.

    >>> says_another_deed("pens sold", "How many are left?"), says_another_deed("pens left", "")
    (True, False)
    """
    asking = asking_clause(question) if behind.strip() else ""
    if not _WORD.search(asking):
        return False
    if _says_share(behind, asking) and not (
        any("/" in unit for unit in question_units(question)) or _is_rate(behind, question)
    ):
        return True
    # "5 sliced apples" are apples.
    words: list[str] = _WORD.findall(behind.casefold())[1:]
    deeds = [_FIRST.get(word, word) for word in words if word in _FIRST or word.endswith("ed")]
    return not all(
        deed in _NEUTRAL | _NEEDED or _fits_question(deed, asking) or stands_in(deed, asking)
        for deed in deeds
    )


def says_asked_share(behind: str, question: str) -> bool:
    """Whether a value is said per apple, and the question asks what one apple is."""
    return bool(_SHARED.match(behind.strip())) and not _says_share(behind, asking_clause(question))


def _says_share(behind: str, asking: str) -> bool:
    """Whether a value is said per year, jar or the like, and the question is not."""
    for match in _SHARED.finditer(behind.casefold()):
        of = match["of"] or match["time"]
        if not re.search(
            rf"\b(?:an?|one|per|each|every)\s+(?:[a-z]+\s+)?{of}|\b{of.replace('day', 'dai')}ly\b",
            asking.replace("annual", "yearly"),
        ):
            return True
    return False


def _is_rate(behind: str, question: str) -> bool:
    """Whether a speed or a wage is asked for, and the question has the measures of this one."""
    if _RATE.match(asking_clause(question)) is None:
        return False
    words = re.findall(r"[A-Za-z/]+", question[:MAX_QUESTION])
    known = {part for word in words for part in (unit_of(word) or "").split("/")} - {""}
    return not known or {*(unit_of(behind) or "").split("/")} <= known | {""}


def words_of(text: str) -> list[str]:
    """The English words of a text in lower case, each with its apostrophe: ``ann's``."""
    return re.findall(r"[a-z]+(?:['’][a-z]+)?", text.casefold())


def stands_in(word: str, text: str) -> bool:
    """Whether a word stands in a text, in any form of it."""
    stems = _stems(word)
    return any(stems & _stems(other) for other in words_of(text))


@lru_cache(maxsize=8192)
def _stems(word: str) -> frozenset[str]:
    """The word without its endings, and the first form of a verb."""
    first = _FIRST.get(word)
    for _ in range(2):
        word = _ENDING.sub("", word) if len(word) > 3 else word
    return frozenset({word, first} if first else {word})
