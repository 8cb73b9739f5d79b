r"""One spelling for answers that are written differently and mean the same.

``plain`` keeps what carries meaning (brackets of intervals and tuples, case of variables,
percent signs) and drops what is only typesetting.
"""

import itertools
import re
from collections.abc import Callable
from functools import lru_cache
from unicodedata import normalize

from coterie.rewards.grading.answers.units import CAPITALS, LETTERS

_SPELLINGS = {
    "-": "−–－‐‑",
    " ": "\u00a0\u2009\u202f\u3000",
    "": "\u200b",
    "/": "÷",
    "'": "’‘",
    r"\times ": "×",
    r"\cdot ": "·⋅",
    r"\pi ": "π",
    r"\infty ": "∞",
    r"\emptyset ": "∅",
    r"\pm ": "±",
    r"\approx ": "≈",
    r"\le ": "≤",
    r"\ge ": "≥",
    r"\cup ": "∪",
    r"\to ": "→⟶",
    r"\in ": "∈",
    r"^\circ ": "°º˚",
    r"^\circ C": "℃",
    r"^\circ F": "℉",
}
_FRACTIONS = {sign: normalize("NFKC", sign).split("⁄") for sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
_WIDE = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) != "＄"}
"""Full-width signs by the signs that they are."""
_DIGITS = {chr(zero + digit): str(digit) for zero in (0x660, 0x6F0, 0x966) for digit in range(10)}
"""Digits of Arabic, Persian and Hindi."""
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-", strict=True))
_UNICODE = str.maketrans(
    _WIDE
    | _DIGITS
    | {sign: spelling for spelling, signs in _SPELLINGS.items() for sign in signs}
    | {sign: rf"\frac{{{top}}}{{{bottom}}}" for sign, (top, bottom) in _FRACTIONS.items()}
)

DOLLAR = "＄"
r"""Money, ``\$`` in LaTeX, where ``$`` only opens and closes formulas."""

_SUPERSCRIPT = re.compile("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")


def _regrouped(match: re.Match[str]) -> str:
    whole, comma, rest = match[0].partition(",")
    return re.sub("[.'_]", "", whole) + (f".{rest}" if comma else "")


_EMPHASIS = re.compile(
    # Bold or italics around a word; "2**10" and "2 * 3" are powers and products.
    r"(?<![\w)}\]*])(?P<mark>\*\*\*|\*\*|__)(?=[^\s*_])(?P<inside>[^*_\n]{1,512}?)(?<=[^\s*_])(?P=mark)(?![\w*])"
    r"|(?:\A|(?<=[A-Za-z]\s))(?P<sign>[*_`])(?=[^\s*_`])(?P<within>[^*_`\n]{1,512}?)(?<=[^\s*_`])(?P=sign)(?![\w*])"
)
"""Markdown around a part of an answer: ``**18** eggs``."""


def _without_points(match: re.Match[str]) -> str:
    r"""``\mathbb{R}\setminus\{3, 5\}`` as a union of intervals, if the points are whole numbers."""
    points = [point.strip() for point in match[1].split(",")]
    if not all(re.fullmatch("-?[0-9]{1,9}", point) for point in points):
        return match[0]
    ends = [r"-\infty", *sorted(set(points), key=int), r"\infty"]
    return r" \cup ".join(f"({left},{right})" for left, right in itertools.pairwise(ends))


def _without_interval(match: re.Match[str]) -> str:
    r"""``\mathbb{R}\setminus(1, 3]`` as a union of intervals."""
    opening, left, right, closing = match.groups()
    return (
        rf"(-\infty,{left}{']' if opening == '(' else ')'}"
        rf" \cup {'[' if closing == ')' else '('}{right},\infty)"
    )


def _in_one_line(match: re.Match[str]) -> str:
    r"""``\begin{cases} x=4 \\ y=3 \end{cases}`` as ``x=4, y=3``, and one line as what it holds."""
    rows = [row for row in re.split(r"\\\\", match["body"].replace("&=", "=")) if row.strip()]
    named = all(_GIVEN.fullmatch(row) for row in rows)
    return ", ".join(rows) if len(rows) == 1 or named else match[0]


_GIVEN = re.compile(r"\s*[A-Za-z](?:_\{?[0-9]\}?)?\s*=[^=&<>]{1,64}")


_REWRITES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # A comma in braces, or before a thin space, is a thousands separator before three digits.
        (r"(?<=[0-9])(?:\{,\}|,\\!)\s*(?=[0-9]{3}(?![0-9]))", ""),
        # Before one or two it is a decimal point.
        (r"(?<=[0-9])\{,\}(?=[0-9]{1,2}(?![0-9]))", "."),
        # So are points and apostrophes where they can be nothing else.
        (
            r"(?<![0-9.,'_])[1-9][0-9]{0,2}(?:(?:\.[0-9]{3}){2,9}(?:,[0-9]{1,9})?"
            r"|(?:'[0-9]{3}){1,9}|(?:_[0-9]{3}){2,9})(?![0-9'_]|[.,][0-9])",
            _regrouped,
        ),
        # A dollar sign that opens no formula is money.
        (r"\A(\s*[+-]?\s?(?:HK|NZ|AU?|CA?|US?|S|R)?)\$(?=\s?[0-9.][^$]*\Z)", r"\1＄"),
        (r"\A\s*[\"“「『《]([^\"”」』》]*)[\"”」』》][\s.。]*\Z", r"\1"),
        (r"\A\s*(?:[Mm]inus|[Nn]egative)\s+(?=[0-9.\\])", "-"),
        (r"(?<=[0-9])\s?[xX]\s?(?=10\s?(?:\^|\*\*))", r"\\times "),
        (r"\{([^{}]{1,64})\\over(?![A-Za-z])([^{}]{1,64})\}", r"\\frac{\1}{\2}"),
        # The same without the braces, where it is the whole of the answer.
        (
            r"\A[\s$]*([^{}\\$&=]{1,64})\\over(?![A-Za-z])([^{}\\$&=]{1,64}?)[\s$]*\Z",
            r"\\frac{\1}{\2}",
        ),
        # Sizes, faces and colours; an equals sign that follows on nothing.
        (
            r"\\(?:bf|bfseries|rm|it|itshape|sf|tt|em|tiny|small|normalsize|large|Large|LARGE|huge|Huge"
            r"|scriptsize|boldmath)(?![A-Za-z])|\\(?:text)?color\s?\{[A-Za-z]{1,16}\}",
            " ",
        ),
        (r"\A[\s$]*=(?!=)", ""),
        (
            r"\A[\s$]*(?:\\(?:text|textbf|mathrm)\s?\{\s*)?(?:Domain|Range|Solutions?|Solution set"
            r"|Interval|Vertex|Cent(?:er|re)|Point|Value|Result|Total|Area|Volume|Perimeter|Slope)"
            r"\s?:\s*\}?\s*(?=\S)",
            "",
        ),
        # The end of a line, with nothing behind it.
        (r"\s*(?:\\\\)+\s*\Z", ""),
        (r"\\cr(?![A-Za-z])", r"\\\\\\\\"),
        (
            r"\\begin ?\{ ?(?P<name>aligned|gathered|split|cases|array) ?\}(?:\{[lcr]\})?"
            r"(?P<body>(?:(?!\\begin|\\end)[^\0]){1,512})\\end ?\{ ?(?P=name) ?\}",
            _in_one_line,
        ),
        # \[ \] \( \) only where no other backslash stands before them (as in "\\[2pt]").
        (r"(?<!\\)\\[\[\]()]", " "),
        (r"\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z])\.?", ""),
        (r"\\(?:displaystyle|textstyle|limits|quad|qquad|hfill)(?![A-Za-z])", " "),
        (r"(?<!\\)\\[!]", ""),
        (r"(?<!\\)\\(?:[,;: ]|\Z)", " "),
        # "~12" is about 12.
        (r"(?<=\S)~", " "),
        (r"\\(?:[dtc]|nice|s)frac(?![A-Za-z])", r"\\frac"),
        # The package siunitx.
        (r"\\ang\s?\{\s?(-?[0-9.]{1,16})\s?\}", r"\1^\\circ "),
        (r"\\num\s?\{\s?([-+0-9.,]{1,32})\s?\}", r"\1"),
        (
            r"\\(?:SI|qty)\s?\{\s?([-+0-9.,]{1,32})\s?\}\s?\{([A-Za-z/^0-9 ]{1,16})\}",
            r"\1 \\text{ \2}",
        ),
        # Units as a fraction, or with a power below zero
        (
            r"(?<=[0-9 ,~])\\frac\s?\{\s*\\(?:text|mathrm)\s?\{([A-Za-z ]{1,16})\}\s*\}"
            r"\s*\{\s*\\(?:text|mathrm)\s?\{([A-Za-z ]{1,16})\}(\s?\^\s?\{?[23]\}?)?\s*\}",
            r" \1/\2\3",
        ),
        (
            r"\\(?:text|mathrm)\s?\{\s*([a-z]{1,2})(?:\\,|[\s~])+s\s?\^\s?\{\s?-2\s?\}\s*\}",
            r" \1/s^2",
        ),
        (r"\\[hv]space\*?\s?\{[^{}]{1,16}\}", " "),
        (r"\{ ?smallmatrix ?\}", "{matrix}"),
        (r"\\neq(?![A-Za-z])", r"\\ne"),
        # √13 is the root of 13, \sqrt13 is typeset as the root of 1, and then 3.
        (r"√\s?([0-9.]+)", r"\\sqrt{\1}"),
        (r"√", r"\\sqrt "),
        (r"\\colon(?![A-Za-z])|\{:\}", ":"),
        (r"\\[lr]?vert(?![A-Za-z])", "|"),
        (r"\\\\\[[0-9.]+ ?[a-z]{2}\]", r"\\\\\\\\"),
        (
            r"(?:\\mathbb\s?(?:\{\s?R\s?\}|R)|ℝ)\s?(?:\\setminus(?![A-Za-z])|\\backslash(?![A-Za-z])|\\)"
            r"\s*\\?\{([^{}]{1,64}?)\\?\}",
            _without_points,
        ),
        (
            r"(?:\\mathbb\s?(?:\{\s?R\s?\}|R)|ℝ)\s?(?:\\setminus(?![A-Za-z])|\\backslash(?![A-Za-z])|\\)"
            r"\s*([(\[])([^,()\[\]]{1,32}),([^,()\[\]]{1,32})([)\]])\s*\Z",
            _without_interval,
        ),
        (r"\\mathbb\s?(?:\{\s?R\s?\}|R)", r"(-\\infty,\\infty)"),
        (r"\\bigcup(?![A-Za-z])", r"\\cup"),
        (r"(?<![A-Za-z\\])[Ii]nfinity(?![A-Za-z])", r"\\infty "),
        (r"\\varnothing(?![A-Za-z])|\\\{\s?\\\}", r"\\emptyset "),
        (r"\\(?:leqslant|leq)(?![A-Za-z])", r"\\le"),
        (r"\\(?:geqslant|geq)(?![A-Za-z])", r"\\ge"),
        (r"\\(?:lbrace)(?![A-Za-z])", r"\\{"),
        (r"\\(?:rbrace)(?![A-Za-z])", r"\\}"),
        (r"\\\$", DOLLAR),
        (r"\$", " "),
        # "About 7" in signs: how far a rounded value may be off is the problem's to say.
        (r"\A[\s*]*\\approx(?![A-Za-z])", ""),
        (r"\\%", "%"),
        (r"\\#", "#"),
        (r"\^\s*\{\s*\\circ\s*\}", r"^\\circ"),
        # An index may stand behind an exponent: x^2_1 is x_1^2.
        (
            r"(\^(?:\{[^{}]{1,32}\}|[0-9A-Za-z]))\s?(_(?:\{[^{}]{1,16}\}|[0-9A-Za-z]))",
            r"\2\1",
        ),
    )
)

_SET_UPRIGHT = re.compile(r"(?<=[0-9}])\s*\\(?:text|textrm|mathrm|mbox)\s?\{[\s~]*([mgshlLJNWV])\}")
_SPELLED = LETTERS | CAPITALS
"""An upright letter after a number is a unit: m is a variable in ``5m`` only."""
_WRAPPERS = re.compile(
    r"\\(?:text|textbf|textit|textrm|texttt|mathrm|mathbf|mathit|mbox|hbox|underline"
    r"|textnormal|textsf|textup|boldsymbol|bm|mathsf|mathtt|operatorname|boxed|fbox)"
    r"\s{0,4}\{([^{}]*+(?:\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\}[^{}]*+)*+)\}"
)
_INCHES = re.compile(r"(?P<number>[^\"']{0,64}[0-9])\s?(?:\"|'')\.?")
"""``12"``; a number in quotes has two of them."""
_WORDY = re.compile(r"\s*\\(?:text|textbf|textit|textrm|mathrm|mbox)\s{0,4}\{([^{}]*)\}\s*\.?\s*")
# "Tuesday", "No solution"; but abc is a product, as its letters are in their order.
_BARE_WORDS = re.compile(r"[A-Za-z][a-z]{2,}(?: [a-z]{2,})*")
# "Nora Emil", "red-blue-green"; "mgh-fd" is a difference of products.
_NAME = r"(?=[A-Za-z]?[a-z]*[aeiouyAEIOUY])[A-Za-z][a-z]{2,}"
_NAMES = re.compile(rf"{_NAME}(?: ?[- ] ?{_NAME})+")
_CAPITALS = re.compile(r"[A-Z]{2,}|[A-Z](?: [A-Z]){2,}")
_ARROW = r"\\(?:long)?(?:right)?(?:to|arrow)(?![A-Za-z])|->"
# "S-T-R"; "S - T - R" is a difference.
_JOINED = re.compile(rf"[A-Z](?:-[A-Z]){{2,}}|[A-Z](?:\s?(?:{_ARROW})\s?[A-Z]){{2,}}")
_SINGLE_LETTERS = re.compile(r"[A-Za-z]+")
_ASKS_FORMULA = re.compile(
    r"\bin terms of\b|\b(?:expression|formula) (?:for|of|that)\b|\bas a (?:function|product) of\b",
    re.IGNORECASE,
)
LETTER_ALONE = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
_JOINTS = re.compile(r"[\s*,]+|\\cdot(?![A-Za-z])|\\times(?![A-Za-z])")
_CLOCK = re.compile(r"(?<=:[0-9]{2})\s?([AaPp])\.?\s?[Mm]\b\.?")
_SPACE = re.compile(r"\s+")
# A space between two letters, or between a command and a letter, may carry meaning.
_LOOSE = re.compile(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])")
_ELLIPSIS = re.compile(r"(?<![A-Za-z.])\.{3,}\Z")
_ALL_REALS = re.compile(
    r"(?:the set of )?all (?:real numbers?|reals|real values?)(?: of)?(?: [a-z])?", re.IGNORECASE
)
_NO_SOLUTION = re.compile(r"(?:there (?:is|are) )?no solutions?")
_EDGES = " \t\r\n*_`。"
_NESTING = 4
_OPTION = re.compile(
    r"\A[\s$]*\\(?:text|textbf|textrm|mathrm|mathbf)\s?\{\s*\([A-J]\)\s*\}"
    r"(?:\\[ ,;:]|\\quad|[\s~])*(?=\S)"
)
_POINT_THEN_COMMA = re.compile(r"\s*([+-]?[1-9][0-9]{0,2})\.([0-9]{3}),([0-9]{1,2}|[0-9]{4,9})\s*")
_INDIAN = re.compile(r"(?<![0-9.,])[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}(?![0-9]|,[0-9])")
_EUROS = re.compile(r"\s*([+-]?(?:€\s?)?[0-9]{1,9}),([0-9]{2}(?:\s?(?:€|EUR|euros?))?)\s*\.?\s*")


def plain(text: str) -> str:
    r"""``text`` without typesetting: ``\left( \dfrac{1}{2},\, 3 \right)`` -> ``(\frac{1}{2}, 3)``.

    Linear in the length of ``text``; ``\text{}`` is unwrapped four levels deep.
    """
    return _remembered(text) if len(text) <= 512 else _plain(text)


def _exponent(match: re.Match[str]) -> str:
    digits = "".join(map(_RAISED.__getitem__, match[0]))
    return f"^{digits}" if len(digits) == 1 else f"^{{{digits}}}"


def without_emphasis(text: str) -> str:
    """``**18** eggs`` as ``18 eggs``; marks that may be signs of a formula stay.

    >>> without_emphasis("**$18** a *day*"), without_emphasis("2**10")
    ('$18 a day', '2**10')
    """
    return _EMPHASIS.sub(lambda match: match["inside"] or match["within"], text)


def _plain(text: str) -> str:
    text = without_emphasis(_SUPERSCRIPT.sub(_exponent, text).translate(_UNICODE))
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    text = _SET_UPRIGHT.sub(lambda match: f" {_SPELLED[match[1]]} ", text)
    for _ in range(_NESTING):
        text, count = _WRAPPERS.subn(r" \1 ", text)
        if not count:
            break
    text = _SPACE.sub(" ", text).strip(_EDGES)
    if _ALL_REALS.fullmatch(text.rstrip(".")):
        return r"(-\infty,\infty)"
    if inches := _INCHES.fullmatch(text):
        text = f"{inches['number']} inches"
    # A full stop ends a sentence, three of them stand for digits that are not told.
    return text if _ELLIPSIS.search(text) else text.rstrip(_EDGES + ".")


# One answer passes through several rules, and each of them starts from its plain form.
_remembered = lru_cache(maxsize=8192)(_plain)


def without_letter(text: str) -> str:
    r"""``\textbf{(C)}\ 12`` as ``12``: the letter of an option, set off as options are."""
    return _OPTION.sub("", text)


def one_number(text: str) -> str:
    """``45.678,90`` as ``45678.90``, ``12,34,567`` as ``1234567`` and ``18,00 €`` as ``18.00 €``,
    which they can only be where one number is asked for."""
    text = _INDIAN.sub(lambda match: match[0].replace(",", ""), text)
    if _EUROS.fullmatch(text) and re.search("€|(?i:eur)", text):
        return _EUROS.sub(r"\1.\2", text)
    return _POINT_THEN_COMMA.sub(r"\1\2.\3", text) if _POINT_THEN_COMMA.fullmatch(text) else text


def key(text: str, *, fold: bool) -> str:
    """The string under which two answers are the same to the letter.

    ``fold`` ignores case (words do not carry meaning in it, variables do).
    """
    text = _LOOSE.sub("", plain(text).replace(DOLLAR, "").strip())
    return text.casefold() if fold else text


def words(text: str) -> str:
    """The string under which two answers in words are the same: an exclamation mark is no more
    than a full stop there, and a factorial in a formula; ``3:30 p.m.`` is ``3:30PM``."""
    text = _CLOCK.sub(r" \1m", key(text, fold=True)).rstrip("! ")
    return "no solution" if _NO_SOLUTION.fullmatch(text) else text


def is_words(text: str) -> bool:
    r"""Whether an answer is words or a time of day, and no formula: all of it stands in
    ``\text{}``, or it looks like no product of letters."""
    if match := _WORDY.fullmatch(text.replace("$", "")):
        return not any(character.isdigit() for character in match[1])
    text = plain(text)
    if _CLOCK.search(text) or text.casefold() in {"yes", "no", "true", "false"}:
        return True
    if _NAMES.fullmatch(text):
        return any(sorted(word) != list(word) for word in re.split("[- ]+", text.casefold()))
    return _BARE_WORDS.fullmatch(text) is not None and sorted(text) != list(text)


_WORD_OR_MORE = re.compile(r"[^\W\d_]{2,}(?:(?:['’] ?|[ -])[^\W\d_]+)*")


def may_be_name(gold: str) -> bool:
    """Whether a reference answer may be a name in a sentence: ``Jupiter``, ``carbon dioxide``.

    Wider than :func:`is_words`, which has to keep products of letters apart: ``Al Gore`` and ``xy``
    may be names, and are no words there.
    """
    return _WORD_OR_MORE.fullmatch(gold.strip()) is not None


def is_sequence(text: str) -> bool:
    """Whether an answer is letters whose order counts: a ranking, coins, moves, a strand, a code.

    Capital letters alone are one (``HTH``, ``A C B``, ``A-C-B``), and so is a text in which a
    letter comes again (``aab``), which a product would write as a power.

    >>> is_sequence("HTH"), is_sequence("P V"), is_sequence("aab"), is_sequence("abc")
    (True, False, True, False)
    """
    text = plain(text)
    repeated = _SINGLE_LETTERS.fullmatch(text) is not None and len(set(text)) < len(text)
    return repeated or bool(_CAPITALS.fullmatch(text) or _JOINED.fullmatch(text))


def asks_product(gold: str, question: str) -> bool:
    """Whether a question asks for a formula "in terms of" the letters that the gold answer is.

    >>> asks_product("IR", "Give the voltage in terms of $I$ and $R$.")
    True
    """
    letters = plain(gold).replace(" ", "").replace("-", "")
    if _SINGLE_LETTERS.fullmatch(letters) is None or _ASKS_FORMULA.search(question) is None:
        return False
    return set(letters) <= set(LETTER_ALONE.findall(question))


def sequence(text: str) -> str:
    """The letters of a sequence, without what may stand between them."""
    text = plain(text)
    joined = _JOINED.fullmatch(text.replace(" - ", "-"))
    return re.sub(rf"{_ARROW}|[\s-]", "", text) if joined else _JOINTS.sub("", text)
