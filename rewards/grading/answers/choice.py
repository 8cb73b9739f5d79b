"""Answers to multiple-choice questions: a letter, or the text of an option."""

import re
from collections.abc import Sequence

from coterie.rewards.grading.answers.extract import bare, candidates
from coterie.rewards.grading.answers.normalise import key, plain

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_LETTER = re.compile(
    r"(?:(?:the )?(?:option|choice|answer)(?: is)?:? )?[(\[{]?\s?(?P<letter>[A-Za-z])\s?[)\]}]?"
    r"(?:\s?[.:)!]|\*\*)*(?P<rest>(?:[\s.:,;)*-].*)?)",
    re.IGNORECASE | re.DOTALL,
)
_ANOTHER = re.compile(
    r"(?P<joined>(?:(?i:and|or|nor)\b|[&/+])\s?)?(?:(?i:option|choice) )?"
    r"[(\[{*]{0,4}(?P<letter>[A-Z])(?![A-Za-z])(?P<set_off>\s?[)\]}.:*,;]|\s?\Z)?"
)
_EDGES = " .:,;)*"
_MAX_LENGTH = 4096


def letter_of(text: str, choices: Sequence[str]) -> str | None:
    """The letter that ``text`` stands for: ``B``, ``(B)``, ``**B.** four``, or option B's text.

    A letter with words behind it counts only where they are that option's text, or where the
    letter is set off (``B.``, ``(B)``): "A force acts" is not option A. Two letters ("A) or B)")
    are none.
    """
    if not text or len(text) > _MAX_LENGTH:
        return None
    allowed = LETTERS[: len(choices)] if choices else LETTERS
    text = plain(text)
    match = _LETTER.fullmatch(text)
    letter = match["letter"].upper() if match else ""
    # In "B - red" the dash sets off, in "B. -1" it is a sign.
    rest = match["rest"].strip(_EDGES).removeprefix("- ") if match else ""
    stated = bool(letter) and letter in allowed and not rest
    # "c" is the option that reads c, where there is one; "C" is always the letter.
    if stated and not (text.islower() and [plain(c) for c in choices].count(text) == 1):
        return letter
    options = [key(choice, fold=True) for choice in choices]
    if options.count(key(text, fold=True)) == 1:
        return LETTERS[options.index(key(text, fold=True))]
    if match is None or letter not in allowed:
        return None
    texts = [key(plain(choice).strip(_EDGES), fold=True) for choice in choices]
    if rest and key(rest, fold=True) in texts:
        # "B. red" where red is option A says neither.
        return letter if texts[LETTERS.index(letter)] == key(rest, fold=True) else None
    if _names_another(rest, allowed.replace(letter, "")):
        return None
    set_off = text[match.start("letter") - 1 : match.start("letter")] in ("(", "[") or text[
        match.end("letter") : match.end("letter") + 1
    ] in (".", ")", ":", "*")
    return letter if set_off and match["letter"].isupper() else None


def _names_another(rest: str, others: str) -> bool:
    """Whether what stands behind a letter begins with another one: "A. B." and "A. or B" name two
    options, "B. A force acts" names one."""
    match = _ANOTHER.match(rest)
    if match is None or match["letter"] not in others:
        return False
    return match["joined"] is not None or match["set_off"] is not None


def choose(response: str, choices: Sequence[str]) -> tuple[str | None, str | None]:
    """(answer as written, letter) of the last stated answer that is an option.

    Both None where nothing is stated; the letter None where what is stated is no option.
    """
    found = candidates(response)
    for candidate in reversed(found):
        letter = letter_of(candidate.text, choices)
        if letter is not None:
            return candidate.text, letter
    if found:
        return found[-1].text or None, None
    text = bare(response)
    if text is None:
        return None, None
    return text, letter_of(text, choices)
