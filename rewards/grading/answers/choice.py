"""Answers to multiple-choice questions: a letter, or the text of an option."""

import re
from collections.abc import Sequence

from coterie.rewards.grading.answers.bold import bold_at_end
from coterie.rewards.grading.answers.canonical import canonical
from coterie.rewards.grading.answers.caps import MAX_QUESTION
from coterie.rewards.grading.answers.extract import (
    Candidate,
    after_thinking,
    bare,
    candidates,
)
from coterie.rewards.grading.answers.leads import leads_to_words
from coterie.rewards.grading.answers.normalise import key, plain
from coterie.rewards.grading.answers.sentences import value_in_sentence
from coterie.rewards.grading.answers.statements import doubted, first_sentence
from coterie.rewards.grading.answers.values import Value, value_of
from coterie.rewards.grading.answers.verbs import VERBS

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_LETTER = re.compile(
    r"(?:(?:the )?(?:option|choice|answer)(?: is)?:? |it(?: is|['’]s) )?"
    r"[(\[{]?\s?(?P<letter>[A-Za-z])\s?[)\]}]?"
    r"(?:\s?[.:)!]|\*\*)*(?P<rest>(?:[\s.:,;)*–—-].*)?)",
    re.IGNORECASE | re.DOTALL,
)
_LETTER_LAST = re.compile(
    r"(?P<text>.+?)(?:,? (?:which is|i\.e\.,?|so|that is,?))?,? ?"
    r"(?:\((?:option |choice )?(?P<bracketed>[A-Z])\)|(?:option|choice) \(?(?P<letter>[A-Z])\)?)",
    re.DOTALL,
)
_OTHER_LETTER = re.compile(r"(?:\A|[\s(*])(?-i:[A-J])(?:[.:)*]|\s(?:is|or|and)\b|\Z)")
_NEXT_OPTION = re.compile(r"[.!*_\s]+\(?[A-J][.:)]\s")
_AS_GOOD = re.compile(
    # "So is B.", "B is as good.", "and also C"
    r"(?:\A|[.!?;,]\s+)\W{0,3}(?i:and\s+)?(?i:so\s+(?:is|are|does|do))\b(?:\s+\(?(?P<so>[A-J])\b)?"
    r"|\A\W*(?i:(?:and|also)\s+(?:option\s+|choice\s+)?)\(?(?P<and>[A-J])\)?(?=\W*\Z)"
    r"|\b(?P<is>[A-J])\)?\s+(?:is|are|(?:may|could|would|can)\s+(?:also\s+)?be)\s+(?:also\s+)?(?:too\b(?!\s+\w)"
    r"|as\s+(?:well|good|right|correct|likely)|equally|(?:right|correct|true|possible)\b(?!\s+if\b)|fine|another"
    r"|acceptable|plausible)"
    r"|\b(?P<too>[A-J])\)?,?\s+(?:too\b(?!\s+\w)|(?:also\s+)?(?:works|fits))"
    r"|(?i:\b(?:likewise|as\s+is|same\s+for|same\s+goes\s+for)\s+)\(?(?P<same>[A-J])\b"
    r"|(?i:\b(?:correct|right|true|possible),?\s+(?:as\s+well|too|also)\b"
    r"|\b(?:also|equally)\s+(?:correct|right|true|possible|good)\b)"
)
"""Another option that is said to be right as well."""
_EDGES = " .:,;)*"
_IN_BRACKETS = re.compile(r"\s*\(([^()]+)\)[\s.*]*")
_DASH = re.compile(r"\A(?:[-–—−]{1,3}\s+|—\s*)")
"""A dash that sets off: in "B - red" and "B — red" it does, in "B. -1" it is a sign."""
_REMARK = re.compile(r"(?P<value>\W{0,4}(?:\([A-J]\))?[^()]*)\s\((?P<remark>[^()]{4,200})\)[\s.*]*")
_OF_THE_CHOICE = re.compile(
    r"\b(?:answer|option|choice|correct|right|true|best|better|also|too)\b", re.IGNORECASE
)
_EXPLAINS = re.compile(
    r"\s{0,8}[*_#]{0,3}(?:explanation|reason(?:ing)?|rationale|justification|because)\b"
    r"(?![\s\S]*?[\n:.][ \t]{0,8}\(?(?-i:[A-J])[.:)]\s)",
    re.IGNORECASE,
)
"""An explanation that lists no options."""
_REJECTS = re.compile(
    r"\?|\b(?:not|never|no|neither|nor|none|or|wrong|incorrect|false|except|excluded?|eliminated?"
    r"|rather|instead|unlikely|rule[ds]?)\b|n['’]t\b",
    re.IGNORECASE,
)
_BOLD_OPTION = re.compile(r"(?<!\*)\*\*(\(?[A-J][.):]\s[^*\n]{1,200})\*\*(?!\*)")
_LISTED = re.compile(r"(?:\A|\s)(?P<open>\(?)(?P<letter>[A-Ja-j])(?P<close>[.):])\s+(?=\S)")
_SET_LETTER = re.compile(
    r"\$?\s?\\(?:text|textbf|textrm|mathrm|mathbf)\s?\{\s?(\([A-J]\))\s?\}"
    r"(?:\\[ ,;:]|\\q?quad|[~\s])*"
)
"""``$\\textbf{(A)}\\ 12 \\qquad``, as competitions print options."""
_MAX_LENGTH = 4096
_MOST_CANDIDATES = 1024
"""How many of the last candidates are searched for an option."""


def letter_of(text: str, choices: Sequence[str]) -> str | None:
    """The letter that ``text`` stands for: ``B``, ``(B)``, ``**B.** four``, or option B's text.

    A letter counts alone, or with its own option's text after it; nothing else may stand there
    ("A force acts", "B: not blue", "A) or B)").
    """
    if not text or len(text) > _MAX_LENGTH:
        return None
    allowed = LETTERS[: len(choices)] if choices else LETTERS
    text = plain(text)
    match = _LETTER.fullmatch(text)
    letter = match["letter"].upper() if match else ""
    inside = _IN_BRACKETS.fullmatch(match["rest"]) if match else None
    rest = (inside[1] if inside else match["rest"]).strip(_EDGES) if match else ""
    stated = bool(letter) and letter in allowed and not rest
    # "c" is the option that reads c, where there is one; "C" is always the letter.
    if stated and not (text.islower() and [plain(c) for c in choices].count(text) == 1):
        return letter
    named = _options(text, choices)
    if len(named) == 1:
        return named[0]
    if last := _LETTER_LAST.fullmatch(text):
        # "5/8, option D"
        said = last["bracketed"] or last["letter"]
        if said in allowed and _options(last["text"], choices) == [said]:
            return said
    if match is None or letter not in allowed:
        return None
    # "C. (1, 2)" is option C, where that reads "(1, 2)".
    texts = (_DASH.sub("", text.strip(_EDGES)) for text in (rest, match["rest"]))
    return letter if any(letter in _options(text, choices) for text in texts) else None


def _options(text: str, choices: Sequence[str]) -> list[str]:
    """The letters of the options that read as ``text``, or else have its value."""
    if not text:
        return []
    target = key(plain(text).strip(_EDGES), fold=True)
    lettered = list(zip(LETTERS, choices, strict=False))
    # "Bb" and "BB" may be two options.
    for fold in (False, True):
        said = key(text, fold=fold)
        if alike := [letter for letter, choice in lettered if key(choice, fold=fold) == said]:
            return alike
    alike = [
        letter
        for letter, choice in lettered
        if key(plain(choice).strip(_EDGES), fold=True) == target
    ]
    value = None if alike else value_of(plain(text))
    if value is None:
        return alike
    return [letter for letter, choice in lettered if _worth(value, value_of(plain(choice)))]


def _worth(answer: Value, option: Value | None) -> bool:
    """Whether two values are one, in any order and spelling; an answer may leave out the unit."""
    if option is None or canonical(answer.formula)[0] != canonical(option.formula)[0]:
        return False
    return answer.percent == option.percent and answer.unit in ("", option.unit)


def _lists_options(text: str, value: str, choices: Sequence[str]) -> bool:
    """Whether the value of ``D. 5/8. C. 3/8``, of ``D. So is C.`` or, where C reads 3/8, of
    ``D. 3/8``, is one option of several."""
    if not value:
        # An empty box, or "in total" alone.
        return False
    behind = text.partition(value)[2]
    if _NEXT_OPTION.match(behind) or _names_another(value, behind):
        return True
    other = letter_of(behind.strip(_EDGES), choices)
    return other is not None and other != letter_of(value, choices)


def _names_another(value: str, tail: str) -> bool:
    """Whether what follows an option says that another one is right as well."""
    option = _LETTER.fullmatch(plain(value))
    letter = option["letter"] if option else ""
    return any(
        match.lastgroup is None or match[match.lastgroup] != letter
        for match in _AS_GOOD.finditer(tail)
    )


def _first_option(text: str) -> str:
    """The first sentence where what follows names no other option: ``B. Two. It rains then.``"""
    sentence, tail = first_sentence(text)
    several = _OTHER_LETTER.search(tail) or _names_another(sentence, tail)
    return "" if several else sentence


def _without_remark(text: str, choices: Sequence[str]) -> str:
    """``B`` of ``B (five cost $75, six would cost $90)``; empty if the remark names an option."""
    match = _REMARK.fullmatch(text)
    remark = match["remark"] if match else ""
    spoken = re.findall(r"[\w.]+", remark.casefold())
    if match is None or VERBS.isdisjoint(spoken) or doubted(remark):
        return ""
    letter = letter_of(match["value"], choices)
    letters = {*re.findall(r"\b[A-J]\b", remark)}
    if _OF_THE_CHOICE.search(remark) or not letters <= {letter} or "?" in remark:
        return ""
    named = {
        option
        for option, choice in zip(LETTERS, choices, strict=False)
        if f" {plain(choice).casefold()} " in f" {' '.join(spoken)} "
    }
    return match["value"] if letter and (not named or letter in named) else ""


def _option_at_end(text: str, choices: Sequence[str], question: str) -> str:
    """``iron`` of ``The metal is iron.`` to "Which is a metal?"; empty where no option ends it."""
    text = plain(text[:_MAX_LENGTH])
    ends = [option for choice in choices if text.endswith(f" {(option := plain(choice))}")]
    option = max(ends, key=len, default="")
    return option if option and leads_to_words(text.removesuffix(option), question) else ""


def listed_options(question: str) -> tuple[str, ...]:
    """The options that a question ends with: ``A. 24 B. 32 C. 36``; empty if fewer than three.

    >>> listed_options("What is 4 times 9? (A) 24 (B) 32 (C) 36")
    ('24', '32', '36')
    """
    question = question[:MAX_QUESTION]
    if _SET_LETTER.search(question):
        question = re.sub(r"\\q?quad|(?<!\\)\$", " ", _SET_LETTER.sub(r" \1 ", question))
    marks = [*_LISTED.finditer(question)]
    first = max((i for i, mark in enumerate(marks) if mark["letter"] in "Aa"), default=len(marks))
    # "B) G. W. F. Hegel"
    marks = [mark for mark in marks[first:] if _around(mark) == _around(marks[first])]
    letters = "".join(mark["letter"] for mark in marks)
    in_order = letters in (LETTERS[: len(marks)], LETTERS[: len(marks)].lower())
    if len(marks) < 3 or not in_order:
        return ()
    ends = [mark.start() for mark in marks[1:]] + [len(question)]
    return tuple(
        question[mark.end() : end].strip(" \n,;") for mark, end in zip(marks, ends, strict=True)
    )


def _around(mark: re.Match[str]) -> str:
    return mark["open"] + mark["close"]


def _bold_option(text: str) -> str:
    """The only bold option of a text, as in ``It is **C) mumps**.``; empty if it is doubted."""
    options: set[str] = set()
    for line in text.split("\n"):
        bold = _BOLD_OPTION.findall(line)
        if bold and _REJECTS.search(_BOLD_OPTION.sub("", line)):
            return ""
        options.update(bold)
    return options.pop() if len(options) == 1 else ""


def choose(
    response: str, choices: Sequence[str], question: str = ""
) -> tuple[str | None, str | None]:
    """(answer as written, letter) of the last stated answer that is an option.

    Both None where nothing is stated; the letter None where what is stated is no option.

    Args:
        question: where it is given, a sentence around an option's text has to answer it.
    """
    stated = candidates(response, options=True)
    last = stated[: -_MOST_CANDIDATES - 1 : -1]
    for candidate in dict.fromkeys((c.text, c.labelled, c.corrects) for c in last):
        whole = Candidate(0, *candidate)
        value = "" if _lists_options(whole.text, whole.value, choices) else whole.value
        said = value_in_sentence(value, question)
        readings = (
            whole.text,
            value,
            _first_option(whole.text),
            said,
            _without_remark(whole.text, choices),
            _option_at_end(whole.text, choices, question),
        )
        for text in dict.fromkeys(readings):
            letter = letter_of(text, choices)
            if letter is not None:
                return text, letter
        if whole.corrects:
            break
    if stated:
        return stated[-1].text or None, None
    text = bare(response)
    if text is None:
        # "C. green" and nothing else
        text = after_thinking(response).strip()
        head, _, tail = text.partition("\n")
        # "D) lizard" and an explanation below
        explained = _EXPLAINS.match(tail) is not None and not _names_another(head, tail)
        first = head.strip() if explained or not tail else ""
        for said in (first, bold_at_end(response) or "", _bold_option(text)):
            if letter := letter_of(said, choices):
                return said, letter
        return None, None
    return text, letter_of(text, choices)
