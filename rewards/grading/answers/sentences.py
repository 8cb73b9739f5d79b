r"""The value in a sentence that is marked as the answer, read with the question.

``Answer: A total of 87 cakes were sold.``, ``Answer: Ann would pay **$32** after 2 days``,
``Answer: 4 (3 pens and 1 ruler)`` and ``Answer: $a+b=12$`` state one value each. A sentence has to
say what the question asks: its words stand in the question, its verb is the question's, and nothing
in it denies, hedges or compares what the question does not.
"""

import calendar
import re
from functools import lru_cache
from itertools import dropwhile, takewhile

from coterie.rewards.grading.answers.caps import MAX_QUESTION
from coterie.rewards.grading.answers.normalise import DOLLAR, key, plain
from coterie.rewards.grading.answers.statements import DOUBTS, NUMBER, doubted
from coterie.rewards.grading.answers.structure import shape
from coterie.rewards.grading.answers.units import NUMBERS, opposed, things_in, unit_of
from coterie.rewards.grading.answers.values import Value, value_of
from coterie.rewards.grading.answers.verbs import (
    VERBS,
    asking_clause,
    asking_sentence,
    says_another_deed,
    shares_verb,
    stands_in,
    words_of,
)

_LONGEST = 256
_BOLD = re.compile(r"\*\*(?P<inside>[^*\n]{1,64})\*\*")
_NUMBER = re.compile(
    r"(?:(?<![\w.)])[-+−]\s?)?[$＄€£]?(?<![\w.,/^_])[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:\s?%)?"
    r"(?![\w^_/*+=-]|[.,:][0-9]|\s?[-+*/=^<>×÷±])"
)
_FORMULA = re.compile(
    # "$5 for 2 of them at $3" and "$5, $6" hold no formula.
    r"\$(?![\s$])(?:(?!\s[A-Za-z]{2})[^$\n]){1,200}(?<!\s)\$(?![0-9])|\\\([^\n]{1,200}?\\\)"
)
_VALUE = re.compile(
    rf"{_FORMULA.pattern}|(?<![\w.,/^])[0-9]+/[0-9]+(?![\w/^.]|\s?[-+*/=^<>×÷±])|{_NUMBER.pattern}"
)
_NEXT = re.compile(
    r",\s+(?:and\s+)?|\s+and\s+|\s*(?:=|≈|\\approx)\s*"
    r"|,?\s+(?:(?:or|which is|i\.e\.,?|that is,?)\s+)?(?:approximately|about|roughly)\s+"
    r"|,?\s+(?:or|i\.e\.,?|that is,?)\s+"
)
"""What stands between the values of a list, or the forms of one."""
_RANGE = re.compile(r"\s*(?:[;–-]|\sto\s)\s*")
"""What stands between the ends of a range."""
_SELECTOR = re.compile(
    r"\bthe (?:least|most|first|second|third|other|maximum|minimum|two|three|four) (?=[a-z])"
)
"""Words that only tell which thing is meant: ``the second side``."""
_SIGNS = re.compile(
    r"[=<>~≈≠≤≥❌✗✘✖❓👎🤔√×·∞\\^?;:(*$+/{}|\[\]]|\s[-−]\s|[.!]\s|,\s*(?:and|but|or)\b"
)
"""What stands in no sentence that is read: formulas, other sentences, and what contrasts."""
_PURPOSE = re.compile(r"\bto [a-z ]{2,80}\Z")
_NAMES_NO_THING = re.compile(
    r"(?!how many)|how many (?:do|does|did|will|would|can|could|should|are|is|were|was|has|have)\b"
)
"""Beginnings of questions that name no counted thing."""
_ARTICLE = re.compile(r"\b(?:the|an?|his|her|their|its|my|our) ")
_BEGINNINGS = """
the there they this that these those she his her their its how what which who when where why each
every all both some after before for from with then now one two three four five last next today
during once mrs suppose given find let answer total also only another following
"""
_NO_NAMES = frozenset(_BEGINNINGS.split())
"""Words that begin sentences and are no names."""
_GENERAL = frozenset({"answer", "number", "amount", "value", "result", "final"})
"""What the value of anything may be called."""
_REMAINING = frozenset(
    {"left", "leftover", "remain", "remains", "remained", "remaining", "now", "still"}
)
_ONLY_IF_IN_QUESTION = frozenset(
    {"would", "could", "might", "times", "first", "initially", "originally", "before", "previously"}
)
"""Words that change a value, unless the question has them too."""
_SHARES = frozenset({"each", "per", "every", "daily"})
_WHOLE = frozenset({"sum", "total", "altogether", "both", "overall", "together", "combined"})
_IS = frozenset({"is", "are", "equals"})
_EXTENTS = {
    "old": ("age",), "long": ("length", "time"), "tall": ("height",), "high": ("height",),
    "wide": ("width",), "deep": ("depth",), "far": ("distance",), "fast": ("speed",),
    "heavy": ("weight",), "much": ("cost", "price", "money"),
}  # fmt: skip
"""Words that ask how far something extends, and the nouns for it."""
_CALENDAR = frozenset([*calendar.day_name, *calendar.month_name])
_REMARK = re.compile(r"(?P<value>.{1,200}?)\s+\((?P<remark>[^()]{2,120})\)[\s.*]*", re.DOTALL)
_CONTENTS = re.compile(r"(?P<holder>\s*[a-z]+)?\s+of\s+(?P<contents>[a-z]+)\b")
_COUNT = re.compile(r"[$＄]?(?P<number>[0-9]+(?:\.[0-9]+)?)\s+[a-z]{3,20}(?:\s[a-z]{3,20}){0,2}")
_AND_MORE = re.compile(r"(?:and|with|plus|while)\s+[0-9]+\s+(?P<words>[a-z]+(?:\s+[a-z]+){0,3})")
_CLARIFIES = re.compile(r"(?:the|this|that is the)\s+[a-z ]{3,60}|(?:all|both)\s+of\s+[a-z ]{3,60}")
_OTHER_FALLS_SHORT = re.compile(
    r"(?:only\s+|just\s+)?(?P<number>[0-9]+|[a-z]+(?:-[a-z]+)?)\s+(?:(?!not\b)[a-z]+\s+){0,3}?(?:"
    r"(?:(?:would|will|do|does|is|are|can|could)\s+not|[a-z]+n['’]t)\s+(?:be\s+)?"
    r"(?:enough|sufficient|suffice|fit|do|work|reach|cover|hold)\b(?:\s+[a-z]+){0,4}"
    r"|(?:would\s+be|is|are)\s+too\s+(?:few|many|little|much|small|large|short|long)"
    r"|(?:would\s+)?(?:only\s+[a-z]+|[a-z]+\s+only)\s+[0-9]+(?:\s+[a-z]+){0,2})"
)
"""``six boxes would not be enough``, ``6 boxes hold only 72 eggs``."""
_COMPARES = {
    "more": "more", "less": "less", "fewer": "less", "longer": "longer", "older": "older",
    "younger": "younger", "taller": "taller", "shorter": "shorter", "further": "farther",
    "farther": "farther", "heavier": "heavier", "lighter": "lighter", "faster": "faster",
    "slower": "slower", "extra": "more",
}  # fmt: skip
"""Words that compare, and the kind of each."""
_NAME = re.compile(r"(?<![A-Za-z])[A-Z][a-z]{2,}")
_SMALL = """
a an the of in on at to for from with by he she it they we his her its their there this that each
per and will total altogether all overall sum both combined him them me us end so then thus hence
therefore needed required means going during within can should must able be
"""
_PREPOSITIONS = frozenset(
    {"for", "on", "in", "at", "from", "to", "with", "by", "after", "than", "and"}
)
_WHERE = frozenset({"in", "on", "at"})
_FREE = frozenset(_SMALL.split()) | VERBS | {"do", "does", "did"}
"""Words that a sentence may hold although the question does not."""
_BEHIND = (_FREE - VERBS - {"each", "per", "from", "and", "by"}) | {"needed"}
"""The same for what follows the value."""
_CHANGES = """
dozen dozens pair pairs percent hundred hundreds thousand thousands million billion tens times gross
short too up excluding without besides minus plus extra further off wasted lost
"""
_DENIALS = DOUBTS | NUMBERS | frozenset(_CHANGES.split())
_REQUESTED_FORMULA = re.compile(
    r"\b(?:find|compute|calculate|determine|evaluate|simplify|expand|factor|what\s+is|give|state"
    r"|value\s+of)\s+(?:(?:the\s+)?(?:exact\s+|numerical\s+)?value\s+of\s+"
    r"|the\s+(?:sum|product|difference)\s+)?"
    r"(?:\$(?P<set>[^$]{1,80})\$(?=\s*(?:[.?!;]|,|\Z|\bin\b|\bas\b|\bif\b|\bwhen\b))"
    r"|\\\((?P<round>[^$]{1,80}?)\\\)(?=\s*(?:[.?!;,]|\Z|in\b|as\b|if\b|when\b))"
    r"|(?P<bare>[^.?!;$\n]{1,40}?)(?=\s*(?:[.?!;]|\Z)))",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?P<subject>[A-Za-z][\w ]{0,60}?) (?P<verb>is|are|was|were) (?P<value>\w+)\.?"
)
_ONE = re.compile(r"(?:\A|[.?!]\s+)(?:An?|The)\s+([a-z]{3,})\b")
_WHO = re.compile(
    r"(?P<value>[A-Z][\w'’-]*(?: [A-Z][\w'’-]*){0,3}) (?P<deed>[a-z][\w ,'’-]{1,80}?)\.?"
)


def value_in_sentence(text: str, question: str) -> str:
    """The one value that a sentence states in answer to a question; empty where there is none, or
    where it may be of something else. Without a question it is the one that nothing denies.

    >>> value_in_sentence("Ann had 87 cakes.", "Ann made cakes. How many cakes did Ann have?")
    '87 cakes'
    >>> value_in_sentence("Ann ate 87 cakes.", "Ann made cakes. How many cakes did Ann have?")
    ''
    """
    if len(text) > _LONGEST or "\n" in text.strip():
        return ""
    question = question[:MAX_QUESTION]
    text = text.strip().rstrip("!. ")
    # "50 loss" is no 50 to "a profit or a loss?"
    if opposed(question) & (things_in(text) | {*words_of(text)}):
        return ""
    if (match := _REMARK.fullmatch(text)) is not None and question:
        value = match["value"].strip("* ")
        stated = value if _literal(value, question) else _in_words_around(value, question)
        return stated if stated and _is_aside(match["remark"], value, stated, question) else ""
    return _in_words_around(text, question)


def _literal(text: str, question: str) -> Value | None:
    value = value_of(plain(text), question)
    return value if value is not None and value.literal is not None else None


def _is_aside(remark: str, value: str, stated: str, question: str) -> bool:
    """Whether a remark in parentheses leaves the value as it is."""
    # It may give the parts of a sum, the rest, or a smaller number that is not enough.
    number = _literal(stated, question)
    if number is None or number.literal is None or doubted(remark):
        return False
    if (short := _OTHER_FALLS_SHORT.fullmatch(remark.casefold())) is not None:
        other = _literal(short["number"], "")
        return other is not None and other.literal != number.literal
    words = {*words_of(remark)}
    if changes_value(words) or re.search(r"[?!;:=~≈]", remark):
        return False
    parts = [
        _COUNT.fullmatch(part.strip())
        for part in re.split(r",\s*(?:and\s)?|\sand\s|\s\+\s", remark)
    ]
    if len(parts) > 1 and all(parts):
        return sum(float(part["number"]) for part in parts if part) == float(number.literal)
    asking = asking_sentence(question)
    if more := _AND_MORE.fullmatch(remark):
        others = {*more["words"].split()} - _FREE
        counted = {*words_of(value)}
        whole = re.search(r"\b(?:total|altogether|both|all|combined|together|and)\b", asking)
        return bool(counted and others) and not others & counted and not whole
    return _CLARIFIES.fullmatch(remark) is not None and _speaks_of(words - _FREE, asking)


def _in_words_around(text: str, question: str) -> str:
    asking = asking_sentence(question)
    before, inside, behind = _one_value(text.replace(r"\$", DOLLAR), asking)
    behind = _without_contents(inside, behind, question)
    around = f"{before} {behind}"
    if not inside or not re.search(r"[A-Za-z]{2}", around) or _SIGNS.search(around):
        return ""
    if doubted(before) or doubted(behind):
        return ""
    if before[-1:] not in ("", " ") or behind[:1] not in ("", " ", ",", "."):
        return ""
    return _with_unit(inside, behind, question) if _answers(before, behind, question) else ""


def _one_value(text: str, asking: str) -> tuple[str, str, str]:
    """Split a sentence around its one value (or list); the value is empty without exactly one."""
    bold = [match for match in _BOLD.finditer(text) if re.search(r"[0-9$\\]", match["inside"])]
    if len(bold) == 1:
        inside = bold[0]["inside"].strip()
        if _literal(inside, asking) or _VALUE.fullmatch(inside):
            return text[: bold[0].start()], inside, text[bold[0].end() :]
    text = text.replace("**", "")
    spans: list[tuple[int, int]] = []
    for match in _VALUE.finditer(text):
        start, end = match.span()
        between = text[spans[-1][1] : start] if spans else ""
        joined = _NEXT.fullmatch(between)
        # "3 and 4" and "3 to 4" are no 3, whatever the question says of 4.
        if not (joined or _RANGE.fullmatch(between)) and _is_in_question(match, asking):
            continue
        if joined:
            start = spans.pop()[0]
        spans.append((start, end))
    if len(spans) != 1:
        return text, "", ""
    start, end = spans[0]
    return text[:start], text[start:end], text[end:]


def _is_in_question(value: re.Match[str], asking: str) -> bool:
    """Whether a value stands in the question with the word behind it: ``for 9 hours``."""
    next_word = re.match(r"\s*[A-Za-z]*", value.string[value.end() :])
    word = next_word[0] if next_word else ""
    # "36 has 9 divisors" to "How many divisors does 36 have?"
    words = value[0] + ("" if word.strip().casefold() in VERBS else word)
    return re.search(rf"(?<![0-9.]){re.escape(words).casefold()}\b", asking) is not None


def _without_contents(inside: str, behind: str, question: str) -> str:
    """Drop ``of soup`` behind ``cans`` if the question has cans of nothing else."""
    match = _CONTENTS.match(behind)
    words = words_of(match["holder"] if match and match["holder"] else inside)
    if match is None or not words:
        return behind
    holder = re.escape(re.sub(r"e?s\Z", "", words[-1]))
    named = re.findall(rf"\b{holder}(?:e?s)?\s+of\s+([a-z]+)", question.casefold())
    if {*named} != {match["contents"].casefold()}:
        return behind
    return (match["holder"] or "") + behind[match.end() :]


def _with_unit(value: str, behind: str, question: str) -> str:
    """A value with the longest beginning of what follows that is its unit."""
    words = [*takewhile(lambda word: word.casefold() not in _PREPOSITIONS, behind.split())]
    for many in range(min(len(words), 4), 0, -1):
        stated = " ".join([value, *words[:many]]).rstrip(",.")
        if _literal(stated, question) is not None:
            return stated
    # "7 eighteenths" is no 7.
    return value if not words or words[0].casefold() in _FREE | {*_COMPARES, "up"} else ""


def _answers(before: str, behind: str, question: str) -> bool:
    """Whether the words around a value say what the question asks for, and nothing else."""
    asking, clause = asking_sentence(question), asking_clause(question)
    left, right = (words_of(_without_selector(side, asking)) for side in (before, behind))
    compared = _matching_comparison(left, right, clause)
    if compared is None:
        return False
    clause_words = {*words_of(clause)}
    # Words that change a value, or are not the question's, and are right here all the same.
    allowed = (clause_words & _ONLY_IF_IN_QUESTION) | compared
    if "up" not in left:
        # "8 feet up the wall", and not "up to 8 feet"
        allowed |= clause_words & {"up"}
    if _has_other_number(before + behind, asking) or changes_value({*left, *right} - allowed):
        return False
    if not clause_words:
        # "up to 2" has no verb.
        return bool(VERBS & {*left[-1:]})
    if not all(shares_verb(word, clause) for word in left):
        return False
    if _is_of_more_or_less({*left}, {*right}, clause_words):
        return False
    if (purpose := _PURPOSE.search(behind)) and _is_purpose(purpose[0], question):
        behind = behind[: purpose.start()]
        right = words_of(behind)
    if says_another_deed(behind, question) or not _names_no_other(before, behind, question, clause):
        return False
    if re.search(r"\bnot\b|n['’]t\b", clause) and not {*left} <= _FREE - VERBS | _IS | _GENERAL:
        # What denies is not read.
        return False
    allowed |= _REMAINING
    # "How old" asks for an age.
    allowed |= {
        noun for word, nouns in _EXTENTS.items() if f"how {word}" in clause for noun in nouns
    }
    return _begins_as_asked(before, question, allowed) and _ends_as_asked(right, question, allowed)


def _has_other_number(around: str, asking: str) -> bool:
    """Whether a number that the question does not have stands around a value: it may be the
    answer."""
    return not {*NUMBER.findall(around)} <= {*NUMBER.findall(asking)}


def changes_value(words: set[str]) -> bool:
    """Whether words near a value may deny it or make it another: ``not``, ``twice``, ``two``."""
    return bool(words & _DENIALS) or any(word.endswith(("n't", "n’t")) for word in words)


def _is_of_more_or_less(left: set[str], right: set[str], clause_words: set[str]) -> bool:
    """Whether words speak of each, the rest or the total, and the question of something else."""
    words = left | right
    # What each has is not what all have, and the other way round.
    if left & _SHARES and not clause_words & _SHARES:
        return True
    if "each" in right - clause_words:
        return True
    if "both" in clause_words and left - _FREE and not words & _WHOLE:
        return True
    if words & _REMAINING:
        return not clause_words & _REMAINING
    if clause_words & _REMAINING and words & {"had", "were", "was"}:
        # What she had is not what she has left.
        return True
    if clause_words & _REMAINING - {"now", "still"} and words & (_WHOLE | VERBS - _IS):
        return True
    return bool(
        words & _WHOLE and clause_words & (_SHARES | {"average", "mean"}) and not words & _SHARES
    )


def _begins_as_asked(before: str, question: str, allowed: set[str]) -> bool:
    """Whether the words before a value are the question's.

    ``For 9 hours, she would earn $63``: the condition before the comma may use all words of the
    sentence that asks, the rest only those of the clause that asks, and names.
    """
    asking, clause = asking_sentence(question), asking_clause(question)
    names = " ".join([*_names_in(question), *_subject(question)]).casefold()
    if re.search(r"\b(?:he|she)\b", clause):
        names = f"{names} {_person(question)}"
    condition, _, rest = _without_selector(before, asking).rpartition(",")
    known = _FREE | _GENERAL | allowed
    return _speaks_of({*words_of(rest)} - known, f"{clause} {names}") and _speaks_of(
        {*words_of(condition)} - known, asking
    )


def _ends_as_asked(words: list[str], question: str, allowed: set[str]) -> bool:
    """Whether the words behind a value are the question's."""
    asking, clause = asking_sentence(question), asking_clause(question)
    if not _speaks_of_part(words, asking):
        return False
    words, known = _without_measure(words), _BEHIND | allowed
    if _NAMES_NO_THING.match(clause):
        # "14,000 bars" answers "How much does he make?"
        counted = [*takewhile(lambda word: word == "of" or word not in _FREE, words)]
        things = (word for word in counted[:3] if not word.endswith(("ing", "ed")))
        known |= {word for word in things if stands_in(word, question.casefold())}
    known |= {word for word in words if word in VERBS and shares_verb(word, clause)}
    words = _as_in_question(words, asking, question.casefold())
    for index, word in enumerate(words):
        if word.endswith("ing") and stands_in(word, asking):
            # "writing letters": any sentence of the question may say what is done.
            return _speaks_of({*words[:index]} - known, asking) and _speaks_of(
                {*words[index:]} - known, question.casefold()
            )
    return _speaks_of({*words} - known, asking)


def _without_measure(words: list[str]) -> list[str]:
    """Words after a value without the measure that they begin with: ``years old``."""
    rest = [*dropwhile(lambda word: word not in _PREPOSITIONS and unit_of(word), words)]
    return rest[1:] if len(rest) < len(words) and rest[:1] and rest[0] in _EXTENTS else rest


def _as_in_question(words: list[str], asking: str, question: str) -> list[str]:
    """Drop words that other sentences of the question use: ``trading`` of ``trading cards``."""
    if len(words) > 1 and stands_in(words[1], asking) and " ".join(words[:2]) in question:
        words = words[1:]
    for index, word in enumerate(words):
        if word in _WHERE and [*words[index + 1 : index + 2]] == ["the"]:
            rest = words[index + 2 :]
            return words[:index] if rest and all(stands_in(w, question) for w in rest) else words
    return words


def _subject(question: str) -> list[str]:
    """The words at the start of a question that say whom or what it is about."""
    words = question.casefold().split()[:2]
    if words and words[0].endswith(("'s", "’s")):
        # "Ann's car"
        return words
    return words[1:] if words[:1] in (["a"], ["an"], ["the"]) else words[:1]


def _person(question: str) -> str:
    """The only noun that starts sentences: ``teacher`` in "A teacher needs 100. Must she buy?" """
    nouns = {*_ONE.findall(question)}
    return nouns.pop() if len(nouns) == 1 else ""


def _without_selector(side: str, asking: str) -> str:
    """Drop words that select one of several things if the question has them: ``the second``."""
    return _SELECTOR.sub(lambda match: "" if match[0] in asking else match[0], side.casefold())


def _is_purpose(phrase: str, question: str) -> bool:
    """Whether a question says what something is for, and no number of it: ``to fill the tank``."""
    sentences = re.split(r"(?<=[.?!])\s+", _ARTICLE.sub("", question.casefold()))
    phrase = _ARTICLE.sub("", phrase.casefold()).strip()
    return any(phrase in each and not NUMBER.search(each) for each in sentences)


def _speaks_of_part(behind: list[str], asking: str) -> bool:
    """Whether ``of the pens`` behind a value stands in the question too."""
    if behind[:1] != ["of"]:
        return True
    part, requested = (
        [*takewhile(lambda word: word not in VERBS, words)]
        for words in (behind[1:], words_of(asking.partition(" of ")[2]))
    )
    return _speaks_of({*part} - _FREE, " ".join(requested))


def _speaks_of(words: set[str], text: str) -> bool:
    """Whether each word stands in a text, in any form of it."""
    return all(stands_in(word, text) for word in words)


def _matching_comparison(left: list[str], right: list[str], asking: str) -> set[str] | None:
    """The words that compare, if the question compares in the same direction; None otherwise."""
    used = {word for word in (*left, *right) if word in _COMPARES}
    words = words_of(asking)
    than = words.index("than") if "than" in words else len(words)
    first, second = {*words[:than]} - _FREE, {*words[than + 1 :]} - _FREE
    compares = bool({*words} & {*_COMPARES, "difference"})
    if compares and "difference" in left:
        return used | {"difference"} if used <= {*words} and "than" not in (*left, *right) else None
    deeds = [word for word in left if word in VERBS]
    says = bool({*left} - _FREE) or bool(deeds[-1:] and deeds[-1] not in _IS)
    needs = bool(deeds[-1:]) and deeds[-1] not in {"has", "have", "had"} | _IS
    if compares and not used and says and ("than" in words or not needs):
        # "Ben has 7" is not how many more he has; "he needs 7" may be how many more he needs.
        return None
    if "than" in left or right.count("than") > 1:
        return None
    if "than" not in right:
        # "9 more books" is asked for by "How many more books does she need?"
        turned = used and {*left, *right} & (second - first)
        return None if turned or not used <= {*words} else used
    kinds = {_COMPARES[word] for word in used}
    requested = {_COMPARES[word] for word in words if word in _COMPARES}
    requested = requested or ({"more"} if {"than", "difference"} & {*words} else set())
    if len(kinds) != 1 or not kinds <= requested:
        return None
    here = right.index("than")
    one, other = {*left, *right[:here]}, {*right[here + 1 :]}
    if "than" in words and (one & (second - first) or other & (first - second)):
        return None
    return used | {"than"}


def _names_no_other(before: str, behind: str, question: str, asking: str) -> bool:
    """Whether a sentence names nobody but who the question asks about."""
    names = _names_in(question)
    spoken = [name for name in names if re.search(rf"\b{name}\b", f"{before} {behind}")]
    requested = [name for name in names if re.search(rf"\b{name.casefold()}\b", asking)]
    if len(requested) > 1 and _WHOLE & {*words_of(asking)}:
        # What one of them has is not what they have together.
        return not spoken or {*requested} == {*spoken}
    if requested or not spoken or len(names) == 1:
        return {*spoken} <= {*(requested or names)}
    if len(spoken) > 1 and re.search(r"\bthey\b", asking):
        return True
    # "How many are left?" is asked of whom the question begins with.
    return spoken == [*names[:1]] and not re.search(r"\b(?:he|she|him|her|his|they)\b", asking)


@lru_cache(maxsize=1024)
def _names_in(question: str) -> tuple[str, ...]:
    """The names in a question, in their order."""
    return tuple(
        name
        for name in dict.fromkeys(_NAME.findall(question))
        if name not in _CALENDAR
        and name.casefold() not in _NO_NAMES
        and not re.search(rf"\b{name.casefold()}\b", question)
    )


def ending_in_value(sentence: str, asking: str = "") -> tuple[str, str, str] | None:
    """Split a sentence around the value that it comes to: the one after its last equals sign, or
    the only one that is not in the question. None without such a value.

    >>> ending_in_value("He has 9 - 2 = 7 pens left.")
    ('He has 9 - 2 = ', '7', ' pens left.')
    """
    last = sentence.rfind("=") + 1
    values = [
        match
        for match in _VALUE.finditer(sentence, last)
        if not re.match(r"\s*[A-Za-z]", sentence[match.end() :])
        or not _is_in_question(match, asking)
    ]
    if len(values) != 1 or (last and sentence[last : values[0].start()].strip(" $")):
        return None
    start, end = values[0].span()
    return sentence[:start], sentence[start:end], sentence[end:]


def without_left_side(answer: str, question: str) -> str:
    r"""The right side of an equation whose left side is what the question asks for: ``12`` of
    ``a+b=12`` to "Find $a+b$."; any other answer as it is.

    >>> without_left_side("a+b=12", "Find $a+b$."), without_left_side("2a+b=12", "Find $a+b$.")
    ('12', '2a+b=12')
    """
    read = shape(answer)
    if read.name or read.ends:
        return answer
    left, equals, right = plain(answer).partition("=")
    if not equals or not right.strip() or re.fullmatch(r"[-+\s\w.]*[0-9]", left.strip()):
        return answer
    if key(answer, fold=False) in key(question[:MAX_QUESTION], fold=False):
        # To "Given x^2 = 9, what is x^2?" it says nothing new.
        return answer
    return right.strip() if asks_for(left, question) else answer


def asks_for(formula: str, question: str) -> bool:
    """Whether a question asks for the value of a formula.

    >>> asks_for("a+b", "Find $a+b$."), asks_for("a+b", "Let $a+b=3$. Find $a$.")
    (True, False)
    """
    wanted = key(formula, fold=False)
    requested = _REQUESTED_FORMULA.finditer(question[:MAX_QUESTION])
    return bool(wanted) and wanted in (
        key(match[match.lastgroup or 0], fold=False) for match in requested
    )


def said_of_subject(text: str, question: str) -> str:
    """``blue`` of ``Box 1 is blue.`` to "What colour is box 1?", ``Ben`` of ``Ben is taller.`` to
    "Who is taller?"; empty for any other text.

    >>> said_of_subject("Box 1 is blue.", "What colour is box 1?")
    'blue'
    """
    asking = asking_sentence(question).strip()
    if (who := _WHO.fullmatch(text.strip())) and asking == f"who {who['deed'].casefold()}?":
        return who["value"]
    match = _SUBJECT.fullmatch(text.strip())
    if match is None:
        return ""
    ending = f" {match['verb']} {match['subject']}?".casefold()
    asks = re.match(r"(?:so,? )?(?:what|which)\b", asking) is not None
    return match["value"] if asks and asking.endswith(ending) else ""
