"""Units: the words that may stand after a number and leave its value as it is.

Measures, currencies and common things that are counted, and whatever the question itself counts
("9 apples"), never a word that is not known: "5 quadrillion", "5 factorial" and "5 is not the
answer" are no five of anything.
"""

import re
from functools import lru_cache

from coterie.rewards.grading.answers.caps import MAX_QUESTION

_MEASURES = """
meter metre m|centimeter centimetre cm|millimeter millimetre mm|kilometer kilometre km|inch
foot feet ft|yard yd|mile mi|gram gramme g|kilogram kg kgs kilo|milligram mg|ton tonne|ounce oz
pound lb lbs|liter litre l|milliliter millilitre ml|gallon gal|quart|pint|acre|hectare
second sec s|minute min|hour hr hrs h|day|week|month|year yr yrs|decade
dollar usd buck|cent|euro eur|rupee rs|yuan|yen|peso|franc|ruble|degree deg|radian rad
celsius centigrade c|fahrenheit f|kelvin k|mph|kph|kmph|watt|volt|joule|newton|hertz hz|byte
kilobyte kb|megabyte mb|gigabyte gb|terabyte tb|calorie
pascal pa|ampere amp|coulomb|ohm|tesla|mole mol|kilojoule kj|kilowatt kw|kilopascal kpa
nanometer nm|electronvolt ev|megahertz mhz
"""
_COUNTED = """
adult altogether animal apple arrangement bag ball balloon banana bead bean bird block bolt book
bottle bouquet bowl box boy brick bunch bus buses cake caller can candle candy car card carrot case
cat chair chicken child children choice class classroom clip coin combination committee cookie cow
crayon cube cup cupcake customer digit dog donut drink duck each egg employee family fish flower
friend fruit game gift girl glass goat golf grape group guest handshake hat homework horse house
item jar kid kitten lap leg lemon lesson letter man marble marker meal member men mice minivan mouse
muffin necklace nickel object onion option orange outcome outfit page painting pair pancake pant
paper parent participant passenger pastry pathway peach pear pen pencil penny people permutation
person photo picture pie piece pig pizza plane plant plate player point possibility post potato
present prize problem puppy puzzle question rabbit ride ring rock room rose round row sandwich seat
seed sheep sheet shelf shell shelve shelves shirt shoe slice snack sock solution song square stamp
star step sticker stone store story student subset table tablet task teacher team test thing ticket
tile time tire tomato total toy train tree triangle trip truck tulip unit vase visit vote walnut
watch water way wheel window woman women word worker left remaining
"""
_DIRECTIONS = tuple(
    tuple(frozenset(side.split()) for side in line.split("|"))
    for line in """
profit gain gained win won earn increase increased|loss los lose lost losing decrease decreased
up above higher upward rise rose over|down below lower downward drop dropped fall fell under
north northward|south southward
east eastward|west westward
forward ahead|backward backwards behind back
early earlier|late later
clockwise|counterclockwise anticlockwise
right|left
""".strip().split("\n")
)
"""Words for one direction and for the other, in the singular."""
_NEUTRAL = frozenset(["early", "earlier", "clockwise", "right"])
"""Directions that are no more positive than their opposites."""
SENTENCE_START = re.compile(r"(?<=[.?!])\s+")
_QUARTERS = re.compile(r"\bhow many\s+(?:\w+\s+){0,3}quarters\b", re.IGNORECASE)
_DOZENS = re.compile(r"\bhow many\s+(?:\w+\s+){0,2}dozens?\b", re.IGNORECASE)
_CONNECTORS = {"a", "an", "per", "of", "in", "every", "the", "old", "long", "tall"}
_CONNECTORS |= {"different", "distinct", "possible", "unique", "separate"}
"""Words that change nothing beside a unit: ``5 different ways``."""
THING = "thing"
"""Stands for the unit of what is counted."""
ADDED = frozenset({"left", "remaining", "total", "altogether", "each", "more"})
"""Words that may follow a counted thing and are none."""
_PER = frozenset({"a", "an", "per", "every", "each"})
_POWERS = {"square": "2", "sq": "2", "cubic": "3", "cu": "3"}
_CARDINALS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
CARDINALS = _CARDINALS.split()
_ORDINALS = """
zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth
"""
ORDINALS = _ORDINALS.split()
TENS = {
    name: 10 * place
    for place, name in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
_VALUE_WORDS = """
thousand million billion trillion quadrillion quintillion lakh crore dozen gross half halve once
twice thrice double triple quadruple percent percentage pi sqrt plus minus multiplied divided into
by over under mod modulo squared cubed factorial choose inverse reciprocal negative positive and or
nor not no none never neither but except without if unless is isn are was were be been wrong
incorrect false invalid impossible undefined unknown uncertain maybe perhaps possibly about around
approximately roughly almost nearly exactly only just least most more less fewer than up to from
between within above below beyond after before off other rather instead equal equals versus times
"""
NUMBERS = frozenset([*CARDINALS, *TENS, "hundred"])
_CHANGING = NUMBERS | frozenset(_VALUE_WORDS.split())
"""Words that change a value, or take it back; where a question holds one, it is no unit."""
_PARTS = frozenset([*ORDINALS[3:], *(f"{ten[:-1]}ieth" for ten in TENS), "hundredth", "thousandth"])
"""Three of them are a share, but not three of "third graders"."""

_ENDINGS = {"ies": "y", "sses": "ss", "ches": "ch", "shes": "sh", "xes": "x", "oes": "o", "s": ""}
_TAIL = re.compile(
    r"(?<![\\A-Za-z])(?P<words>[A-Za-z][A-Za-z.'/ -]{0,79}?)"
    r"\s?(?:\^\s?(?:\{\s?(?P<group>[23])\s?\}|(?P<digit>[23])))?\s?\Z"
)
_BRACKETED = re.compile(r"(?<=[0-9}])\s\(([A-Za-z]{3}[A-Za-z ]{0,79})\)\Z")
_SHARED = re.compile(r"(?<=[0-9])\s?/\s?([a-z]{3,12})\Z")
_VERB = re.compile(r"\b(?:is|are|were|was) (?=(?:left|remaining)\Z)")
_BEFORE = re.compile(r"(?:[0-9)}\]!%.]|\\pi|\\circ)(?P<gap>\s*)\Z")
_WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_HOW_MUCH_MORE = re.compile(r"\bhow (?:many|much) more\b", re.IGNORECASE)
_SCALE = re.compile(
    r"(?P<to>\b(?:in|to|into)\s+)?\$?(?:"
    r"(?:degrees?\s+)?\b(?P<word>(?i:celsius|centigrade|fahrenheit|kelvins?)\b)"
    r"|(?:[°º˚]|\^?\{?\s?\\circ\s?\}?|\bdegrees?\s)\s*(?:\\(?:text|mathrm|mbox)\s?\{\s*)?"
    r"(?P<letter>[CF])\b|(?P<sign>[℃℉]))"
)
_SCALE_NAMES = {"c": "celsius", "f": "fahrenheit", "k": "kelvin", "℃": "celsius", "℉": "fahrenheit"}
_KELVIN = re.compile(r"\bkelvins?\b|(?:\bdegrees?|[0-9])\s*Kelvin\b")
"""The scale, and nobody of this name."""
_FORMULA = re.compile(r"\$[^$]*\$|\\\(.*?\\\)|\\[A-Za-z]+")


def _singular(word: str) -> str:
    for plural, single in _ENDINGS.items():
        if word.endswith(plural) and not word.endswith("ss") and len(word) > 3:
            return word.removesuffix(plural) + single
    return word


def is_plural(word: str) -> bool:
    """Whether a word may be of several things: ``pens``, ``people``."""
    return word.casefold() in _IRREGULAR or _singular(word.casefold()) != word.casefold()


_IRREGULAR = frozenset({"people", "children", "men", "women", "sheep", "fish", "mice", "feet"})
_NAMES = {
    alias: names.split()[0]
    for names in re.split(r"[|\n]", _MEASURES.strip())
    for alias in names.split()
} | {"mph": "mile/hour", "kph": "kilometer/hour", "kmph": "kilometer/hour"}
_MONEY = "dollar cent euro rupee yuan yen peso pound sterling franc won ruble real"
CURRENCIES = frozenset(_MONEY.split())
LETTERS = {letter: _NAMES[letter.casefold()] for letter in "mgshlL"}
"""Units that one letter stands for."""
CAPITALS = {"J": "joule", "N": "newton", "W": "watt", "V": "volt"}
"""Units that one capital letter stands for, where the question names them."""
_IN_FRACTIONS = {capital.casefold(): name for capital, name in CAPITALS.items()}
"""The same in ``N/m``."""
SCALES = frozenset({"celsius", "fahrenheit", "kelvin"})
"""Of temperatures: their degrees are no measure of their own."""
_THINGS = frozenset(_COUNTED.split())


@lru_cache(maxsize=1024)
def things_of(question: str) -> frozenset[str]:
    """The words of a question outside its formulas, in the singular, that may follow a number as
    what is counted."""
    words = _WORD.findall(_FORMULA.sub(" ", question[:MAX_QUESTION]))
    # "xy" may be a product, "CD" is none.
    known = (word for word in words if len(word) > 2 or word.isupper())
    things = frozenset(_singular(word.casefold()) for word in known) - _CHANGING
    things -= opposed(question[:MAX_QUESTION])
    if "quarter" in things and not _QUARTERS.search(question[:MAX_QUESTION]):
        things -= {"quarter"}
    if _DOZENS.search(question[:MAX_QUESTION]):
        things |= {"dozen"}
    # "8 more" answers "how many more".
    return things | {"more"} if _HOW_MUCH_MORE.search(question[:MAX_QUESTION]) else things


def opposed(question: str) -> frozenset[str]:
    """The words of a question that turn an answer round: of "a profit or a loss" the loss.

    Where the sentence that asks names one direction only ("how far down"), none of them.
    """
    words = {_singular(word) for word in _WORD.findall(question.casefold())}
    asking = [part for part in SENTENCE_START.split(question) if part.rstrip().endswith("?")]
    asking_words = {_singular(word) for word in _WORD.findall(" ".join(asking).casefold())}
    turned: set[str] = set()
    for forward, backward in _DIRECTIONS:
        if words & forward and words & backward:
            named = asking_words & (forward | backward)
            if not named or (named & forward and named & backward):
                turned |= backward
                turned |= forward & _NEUTRAL
    return frozenset(turned)


def split_unit(text: str, question: str | None = None) -> tuple[str, str]:
    """``text`` without the unit at its end, and that unit's name.

    The name is empty where there is none, and where it is no measure (``5 apples``).

    Args:
        question: given where a number is asked for. What it counts is then a unit as well, and
            ``5 m`` and ``5cm`` are no products (``5m`` is one).

    >>> split_unit("5.4 cents"), split_unit("15 cm ^2"), split_unit("5 million")
    (('5.4', 'cent'), ('15', 'centimeter^2'), ('5 million', ''))
    """
    if bracketed := _BRACKETED.search(text, max(0, len(text) - 96)):
        # "7 (pens)"
        text = text[: bracketed.start()] + " " + bracketed[1]
    if not text or not (text[-1].isalpha() or text[-1] in "23}."):
        return text, ""
    match = _TAIL.search(text, max(0, len(text) - 96))
    before = _BEFORE.search(text, 0, match.start()) if match else None
    if match is None or before is None:
        return text, ""
    letter = match["words"].strip()
    if len(letter) == 1 and (question is None or not _may_be_unit(letter, before[0], question)):
        return text, ""
    if question is None and not before["gap"]:
        return text, ""
    words = (
        _VERB.sub("", match["words"].strip())
        .replace("/", " per ")
        .replace(".", " ")
        .casefold()
        .split()
    )
    words = [CAPITALS[letter]] if letter in CAPITALS else words
    name = _name(words, match["group"] or match["digit"] or "", question or "")
    if name is None and len(words) > 1 and NUMBERS.isdisjoint(words) and "and" not in words:
        # "4 positive integers" to "How many positive integers?"
        asked = f"how many {' '.join(words)}" in " ".join((question or "").casefold().split())
        name = (unit_of(words[0]) or "") if asked else None
    return (text, "") if name is None else (text[: before.start("gap")], name)


def spelled_out(text: str) -> str:
    """``$18 per day`` of ``$18/day``; any other text as it is."""
    shared = _SHARED.search(text, max(0, len(text) - 24))
    if shared is None or not unit_of(shared[1]):
        return text
    return f"{text[: shared.start()]} per {shared[1]}"


def things_in(text: str) -> frozenset[str]:
    """The words of a text in the singular."""
    return frozenset(_singular(word) for word in _WORD.findall(text.casefold()))


@lru_cache(maxsize=1024)
def scales_of(question: str) -> frozenset[str]:
    """The scales of temperature that a question names, or the one that it converts to:
    ``celsius`` for "degrees Celsius" and "°C"."""
    named = [
        (
            match["to"],
            _SCALE_NAMES[(match["word"] or match["letter"] or match["sign"])[0].casefold()],
        )
        for match in _SCALE.finditer(question[:MAX_QUESTION])
    ]
    if {scale for _, scale in named} == {"kelvin"} and not _KELVIN.search(question):
        return frozenset()
    targets = [scale for to, scale in named if to]
    return frozenset(targets[-1:] or (scale for _, scale in named))


def counts(tail: str) -> bool:
    """Whether what stands after a number names a thing: ``apples left``, and not ``left``."""
    words = frozenset(_WORD.findall(tail.casefold()))
    return bool(words - ADDED - _CONNECTORS)


def unit_of(words: str) -> str | None:
    """The name of a measure in words (``miles per hour``); empty for a thing that is counted, None
    for other words."""
    return _name(words.replace("/", " per ").casefold().split(), "", "")


def _may_be_unit(letter: str, before: str, question: str) -> bool:
    """Whether a letter is a unit: ``5 m``, and ``5g`` if the question names grams; not ``5m``."""
    if before.startswith("\\"):
        return letter in "CF" and before.startswith("\\circ")
    name = _NAMES.get(letter.casefold())
    if letter in "CFK" and name in SCALES:
        return not SCALES.isdisjoint(scales_of(question))
    if letter in CAPITALS:
        return CAPITALS[letter] in things_of(question)
    named = before.endswith(" ") or name in things_of(question)
    return letter in LETTERS and named


def _name(words: list[str], power: str, question: str) -> str | None:
    """The name of the measure; empty for a thing; None where a word is neither."""
    named: list[str] = []
    counted = shared = divided = False
    # "in" is an inch where no word follows that it could stand before.
    following = [*words[1:], "per"]
    words = ["inch" if pair == ("in", "per") else pair[0] for pair in zip(words, following)]
    if "per" in words:
        words = [_IN_FRACTIONS.get(word, word) for word in words]
    for word, after in zip(words, [*words[1:], ""]):
        single = _singular(word)
        # "5 pages a day" are counted, by the day, as "5 a day" are.
        shared |= (counted or word is words[0]) and not named and word in _PER
        divided |= bool(named) and word in _PER
        if word in _POWERS:
            power = _POWERS[word]
        elif word in _NAMES and not is_plural(word) and is_plural(after) and not unit_of(after):
            counted = True  # "gallon cans"
        elif word in _NAMES or single in _NAMES:
            named.append(_NAMES.get(word) or _NAMES[single])
        elif {word, single} & _THINGS or single in things_of(question):
            counted = single not in _PARTS
        elif word not in _CONNECTORS:
            return None
    if not SCALES.isdisjoint(named):
        # 5 degrees Celsius
        named = [unit for unit in named if unit != "degree"]
    if not named:
        return "" if counted else None
    # "kilometers an hour" and "km/h" divide, "km h" does not.
    between = "/" if divided or shared else " "
    return "/" * shared + between.join(named) + (f"^{power}" if power else "")
