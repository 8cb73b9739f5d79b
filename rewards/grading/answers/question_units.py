"""The unit that a question asks for, and which units contradict it.

To "How many minutes?" ``30 hours``, ``30%`` and ``$30`` are wrong, to "How many apples?" every
measure is, and to "in m/s" ``12 m`` is. ``30 minutes a day`` is right where it names days.
Where a measure, money or a percentage is asked for, counted things are wrong (``15 students``).
"""

import re
from functools import lru_cache
from itertools import takewhile

from coterie.rewards.grading.answers.caps import MAX_QUESTION
from coterie.rewards.grading.answers.units import (
    ADDED,
    CURRENCIES,
    NUMBERS,
    SCALES,
    SENTENCE_START,
    THING,
    is_plural,
    scales_of,
    things_in,
    things_of,
    unit_of,
)

_HOW_MANY = re.compile(
    r"\b(?:how\s+many|(?:find|determine|compute|calculate|give|state|what\s+is)\s+the\s+"
    r"(?:total\s+|exact\s+|whole\s+)?number\s+of)\s+(?P<words>[A-Za-z][A-Za-z '’/-]{0,79})",
    re.IGNORECASE,
)
_UPRIGHT = re.compile(
    r"\$?\s?(?P<unit>\\(?:mathrm|text|textrm|rm)\s?\{[^{}$]{1,24}\}"
    r"(?:\\(?:mathrm|text|textrm|rm)\s?\{[^{}$]{1,24}\}|\^\s?\{?\s?[23]\s?\}?|[\s~/]|\\[,;: ])*)\$?"
)
"""A unit in a formula: ``$\\mathrm{km} / \\mathrm{h}$``, ``$\\mathrm{~cm}^{2}$``."""
_TYPESETTING = re.compile(r"\\(?:mathrm|textrm|text|rm)\s?|[{}]|\\[,;: ]|(?<=[/^])\s+|\s+(?=[/^])")
_IN_UNITS = re.compile(
    r"\bin\s+(?P<words>[a-z]{1,12}\s+per\s+[a-z]{3,12}|(?:(?:square|cubic)\s+)?(?:[a-z]{3,12}s|feet)"
    r"|[a-z]{1,4}/[a-z]{1,4}|[ckm]m|kg|ml)\b(?!\s*(?:[\^²³/]|squared|cubed))"
)
_IN_POWERS = re.compile(
    r"\bin\s+\$?(?P<words>[a-z]{1,4}(?:/[a-z]{1,4})?)\s?(?:\^\s?\{?(?P<power>[23])|(?P<raised>[²³]))"
)
_PERCENT = re.compile(r"\b(?:what|which|how many|as an?|in)\s+percent", re.IGNORECASE)
_PERCENTAGE = re.compile(
    r"(?<![0-9])(?<![0-9] )percent|\b(?:what|how\s+many|in|as\s+an?)\s+\\?%", re.IGNORECASE
)
"""A percentage that is asked for, and no ``10%`` or ``10 percent`` that is given."""
_RATE = re.compile(
    r"\b(?:rate|probability|chance|likelihood|proportion|share|concentration|discount|interest"
    r"|margin|mark-?up|increase|decrease|average|score|grade|accuracy|efficiency|return|yield|confidence)\b",
    re.IGNORECASE,
)
"""What is given in percent without saying so."""
_MONEY = re.compile(
    r"\bhow\s+much\s+(?:more\s+|less\s+|extra\s+)?(?:money\b|(?:does|do|did|will|would|is|was)\b"
    r"[^.?!]{0,80}\b(?:cost|pay|spend|earn|make|owe|charge)\b)",
    re.IGNORECASE,
)
_SIGNS = {
    r"(?i:\brs\.?\s?[0-9])|\bINR\b|₹|[0-9]/-": "rupee",
    r"\bCHF\b": "franc",
    r"€|\bEUR\b": "euro",
    r"£|\bGBP\b": "sterling",
    r"¥|\bJPY\b": "yen",
    # "$5 each", "$.5 a pound", and no formula as "$5$", "$5 a$" and "$5 + x$".
    r"\\\$|\$(?:[0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)"
    r"(?=\s+[A-Za-z]+(?![A-Za-z$]|\s*[\^+=<>*/-])|[.,;?!])": "dollar",
}
_TEMPERATURE = re.compile(
    r"\b(?:temperature|hot|cold|warm|heat|weather|thermometer|oven|freezer)", re.IGNORECASE
)
_BEHIND = """
of does do did is are was were will would can could should has have had in to at for with on from
and or if when that which
"""
_STOPS = frozenset(_BEHIND.split())
"""Words that end what is counted."""
_COUNTED = re.compile(
    rf"\b(?:[0-9][0-9,]*|{'|'.join(sorted(NUMBERS))}|each|per|every)\s+"
    r"(?P<things>[A-Za-z]{3,20}(?:\s+[A-Za-z]{3,20})?)",
    re.IGNORECASE,
)
"""A number and what it counts, with one word before it: "30 large trays"."""
_HOLDERS = "dozen pair set box bag pack package packet case carton crate bundle"
_CONTAINERS = frozenset(_HOLDERS.split())
"""What holds several of the things that are counted."""
_PIECES = frozenset({"piece", "item", "unit", "thing"})
"""What any thing may be counted in: "15 pieces" of fruit are 15 fruits."""
_MODIFIERS = 3
"""Words that may stand before the unit: "how many more whole minutes"."""


@lru_cache(maxsize=1024)
def question_units(question: str) -> frozenset[str]:
    """The units that a question asks for: measures by their names, ``%``, ``money``, and the empty
    name for what is only counted. Empty where it names none."""
    question = _UPRIGHT.sub(_untypeset, question[:MAX_QUESTION])
    counted = (_first_unit(match["words"]) for match in _HOW_MANY.finditer(question))
    units = {unit for unit in counted if unit is not None}
    last = SENTENCE_START.split(question.strip())[-1]
    # "30 miles" answers "how many miles per hour", and not "how fast, in miles per hour".
    units.update({unit.partition("/")[0] for unit in units})
    units.update(filter(None, (unit_of(match["words"]) for match in _IN_UNITS.finditer(last))))
    for match in _IN_POWERS.finditer(last):
        power = "square" if (match["power"] or match["raised"]) in "2²" else "cubic"
        units.update(filter(None, [unit_of(f"{power} {match['words']}")]))
    if units <= {"degree"} and len(scales := scales_of(question)) == 1:
        units = set(scales)
    if _PERCENT.search(question):
        units = (units - {""}) | {"%"}
    if _MONEY.search(question) and units.isdisjoint(CURRENCIES):
        units |= _currencies_named(question) or {"money"}
    return frozenset(units)


def _untypeset(match: re.Match[str]) -> str:
    return _TYPESETTING.sub("", match["unit"].replace("~", " ")).strip() + " "


def contradicts(unit: str, question: str) -> bool:
    """Whether a unit (``%`` for per cent, ``thing`` for what is counted) is another one than the
    question asks for.

    >>> contradicts("hour", "How many minutes?"), contradicts("hour", "How long is it?")
    (True, False)
    """
    requested = question_units(question) if unit else frozenset()
    if "money" in requested:
        requested |= CURRENCIES
    measure, _, share = unit.partition("/")
    if measure in CURRENCIES and share and not _names(share, question):
        # "$9 per year" is no price a month.
        return True
    return bool(requested) and not any(
        _satisfies(unit, name or THING, question) for name in requested
    )


def asks_percentage(question: str, *, share: bool = False) -> bool:
    """Whether a percentage answers a question: without one, it may; a ``share`` below 1 needs the
    word.

    >>> asks_percentage("What percent of 50 is 5?"), asks_percentage("What is 10% of 50?")
    (True, False)
    """
    question = question[:MAX_QUESTION]
    if _PERCENTAGE.search(question):
        return True
    return not share and (not question.strip("? ") or _RATE.search(question) is not None)


def _currencies_named(question: str) -> frozenset[str]:
    """The currencies that a question names, by words, codes or signs."""
    words = CURRENCIES & things_of(question)
    signs = {name for sign, name in _SIGNS.items() if re.search(sign, question)}
    named = words | signs
    if "sterling" in named or named == {"pound"}:
        return frozenset(named | {"pound", "sterling"})
    # "$4 a pound" is a price of meat.
    return frozenset(named - {"pound"})


def miscounts(behind: str, question: str) -> bool:
    """Whether what stands after a number is counted in pairs, boxes or the like, and the question
    asks for single things, or the other way round; or is another thing that the question counts.

    >>> miscounts(" pairs", "How many shoes?"), miscounts(" shoes", "How many pairs of shoes?")
    (True, True)
    >>> miscounts(" trays", "5 trays hold 8 rolls each. How many rolls are there?")
    True
    """
    question = question[:MAX_QUESTION]
    phrases = [match["words"] for match in _HOW_MANY.finditer(question)] if behind.strip() else []
    if not phrases:
        return False
    requested, counted = things_in(_phrase(phrases[0])), things_in(_phrase(behind))
    if counted & _CONTAINERS:
        return bool(requested) and not requested & counted & _CONTAINERS
    if requested & _CONTAINERS and counted & things_of(question) - requested:
        return True
    every = [things_in(_phrase(phrase)) - ADDED for phrase in phrases]
    if not all(every) or any(one & counted for one in every):
        return False
    said = _counted_in(question)
    if said and counted & said[0] and not any(map(is_plural, phrases[-1].split()[:5])):
        # "He had 20 sheep. How many remain?" asks for sheep.
        return False
    return any(counted & things for things in said)


def _counted_in(question: str) -> list[frozenset[str]]:
    """The things of which a question says a number: ``tray`` of "30 large trays", "per tray"."""
    phrases = (_phrase(match["things"]) for match in _COUNTED.finditer(question))
    return [things - ADDED - _PIECES for things in map(things_in, phrases)]


def _phrase(words: str) -> str:
    """The words before the first that ends what is counted: ``pens`` of "pens in the box"."""
    before = takewhile(lambda word: word.casefold() not in _STOPS, words.split())
    return " ".join(before)


def _satisfies(unit: str, requested: str, question: str) -> bool:
    """Whether a unit is the requested one; "30 minutes a day" has to fit the question's days."""
    measure, _, share = unit.partition("/")
    measure = measure or THING
    if unit == "degree" and requested in SCALES:
        return True
    if requested == "degree" and unit in SCALES:
        return _TEMPERATURE.search(question) is not None
    return unit == requested or (measure == requested and _names(share, question))


def _names(measure: str, question: str) -> bool:
    """Whether the question names a measure: ``day`` as day, days or daily."""
    words = things_of(question)
    often = {"day": "daily", "year": "annual"}.get(measure, f"{measure}ly")
    return bool({measure, f"{measure}ly", often} & words)


def _first_unit(words: str) -> str | None:
    """The first measure in a phrase; empty for a counted thing, None if nothing is named."""
    phrase = _phrase(words).split()
    if NUMBERS.intersection(map(str.casefold, phrase[:2])):
        # "how many five dollar toys", but not "how many miles the two run"
        return ""
    for start in range(min(len(phrase), _MODIFIERS + 1)):
        for end in range(min(len(phrase), start + 4), start, -1):
            if name := unit_of(" ".join(phrase[start:end])):
                # "how many gallon cans"
                thing = not is_plural(phrase[end - 1]) and any(map(is_plural, phrase[end:][:1]))
                return "" if thing else name
        if unit_of(phrase[start]) == "":
            return ""
    return "" if phrase else None
