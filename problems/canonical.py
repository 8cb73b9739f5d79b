r"""The canonical form of a question; questions with the same form count as equal.

It ignores case, white space, Unicode variants, spacing commands of LaTeX and the format of numbers.
It can merge different questions (about ``x`` and ``X``). This is safe, because the form keeps
training and evaluation disjoint.
"""

import re
import unicodedata

from coterie.datatypes import Problem

_SUPERSCRIPTS = str.maketrans({sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")})
_ONE_SIGN = str.maketrans(
    {
        **dict.fromkeys("−–—‐‑‒", "-"),
        **dict.fromkeys("‘’′`", "'"),
        **dict.fromkeys("“”″", '"'),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", None),
        "×": r"\times",
        "·": r"\cdot",
        "÷": r"\div",
    }
)
_SPACING = re.compile(
    r"\\[,;:!> ]|\\(?:thinspace|medspace|thickspace|negthinspace|qquad|quad"
    r"|displaystyle|textstyle|left|right|[bB]ig[lr]?)(?![a-zA-Z])|~"
)
_DELIMITERS = re.compile(r"\\?\$|\\[()\[\]]")
_FRACTIONS = re.compile(r"\\[dt]frac(?![a-zA-Z])")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_DECIMAL = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")
_SPACE_BY_SIGN = re.compile(r" (?=[^\w ])|(?<=[^\w ]) ")


def canonical(question: str) -> str:
    r"""Return the canonical form, in linear time.

    Example: ``canonical("What is $1,000 \\, + 2.50$ ?") == canonical("what is 1000+2.5")``
    """
    text = question
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_SUPERSCRIPTS))
    text = text.translate(_ONE_SIGN) if not text.isascii() or "`" in text else text
    text = _SPACING.sub(lambda match: "" if match.group() == r"\!" else " ", text)
    text = _DELIMITERS.sub(" ", text).replace("{,}", ",")
    text = _FRACTIONS.sub(r"\\frac", text).casefold()
    text = _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)
    text = _DECIMAL.sub(lambda match: match.group().rstrip("0").rstrip("."), text)
    text = _SPACE_BY_SIGN.sub("", " ".join(text.split()))
    return text.strip(" .?!:")


def problem_key(problem: Problem) -> str:
    """Return the canonical form of a problem; the order of options is ignored."""
    if not problem.choices:
        return canonical(problem.question)
    stem = problem.question
    marker = stem.rfind(f"\nA. {problem.choices[0]}")
    options = sorted(canonical(choice) for choice in problem.choices)
    return "\x1f".join([canonical(stem[:marker] if marker >= 0 else stem), *options])
