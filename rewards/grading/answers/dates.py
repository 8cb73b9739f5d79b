"""Dates, compared in any order of day, month and year, and times of day."""

import re
from datetime import date

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[0-9]{4})"
_WEEKDAY = r"(?:(?P<weekday>mon|tues|wednes|thurs|fri|satur|sun)day,? )?"
_WEEKDAYS = ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")
_DATES = tuple(
    re.compile(rf"{_WEEKDAY}(?:on )?(?:the )?{pattern}", re.IGNORECASE)
    for pattern in (
        rf"{_MONTH} {_DAY}(?:,? {_YEAR})?",
        rf"{_DAY} (?:of )?{_MONTH}(?:,? {_YEAR})?",
        rf"{_YEAR}-(?P<month>[0-9]{{2}})-(?P<day>[0-9]{{2}})",
        rf"(?P<month>[0-9]{{1,2}})/(?P<day>[0-9]{{1,2}})/{_YEAR}",
        rf"(?P<day>[0-9]{{1,2}})[/.](?P<month>[0-9]{{1,2}})[/.]{_YEAR}",
    )
)

_TIME = re.compile(
    r"(?:at )?0?(?P<hour>[0-9]{1,2})(?:\s?:\s?(?P<minute>[0-5][0-9]))?"
    r"(?:\s?(?P<half>[ap])\.?\s?m\.?|\s?o['’]clock)?",
    re.IGNORECASE,
)
_ASKS_TIME = re.compile(r"\b(?:what|which|latest|earliest)\s+(?:time|hour)\b", re.IGNORECASE)

Day = tuple[int | None, int, int]
"""(year, month, day); no year where none is given."""


def read_date(text: str) -> Day | None:
    """The day that all of ``text`` names; None for other texts and for no day of the calendar, and
    where ``3/4/2024`` may be two.

    >>> read_date("14th of March, 2024"), read_date("2024-03-14"), read_date("3/4/2024")
    ((2024, 3, 14), (2024, 3, 14), None)
    """
    text = " ".join(text[:64].split()).rstrip(".")
    days = {day for pattern in _DATES if (match := pattern.fullmatch(text)) if (day := _day(match))}
    return days.pop() if len(days) == 1 else None


def same_date(gold: str, answer: str, question: str) -> bool:
    """Whether two texts are one day, or one time of day: ``10 a.m.`` and ``10:00 AM``, and to
    "What time?" ``9 p.m.`` and 9.

    >>> same_date("10:00 AM", "10 a.m.", ""), same_date("9", "9:00 pm", "At what time?")
    (True, True)
    """
    if (day := read_date(gold)) is not None:
        return day == read_date(answer)
    time, other = _read_time(gold), _read_time(answer)
    if len(gold) < 3 and gold.isdecimal() and other:
        return other[:2] == (int(gold), "00") and _ASKS_TIME.search(question) is not None
    return bool(time and other) and time == other


def _read_time(text: str) -> tuple[int, str, str] | None:
    """Hour, minute and half of the day of a text; None for any other, such as a number."""
    match = _TIME.fullmatch(text) if len(text) < 32 else None
    if match is None or match[0].isdecimal():
        return None
    return int(match["hour"]), match["minute"] or "00", (match["half"] or "").casefold()


def _day(match: re.Match[str]) -> Day | None:
    month = match["month"].casefold()
    number = int(month) if month.isdigit() else 1 + _MONTHS.index(month[:3])
    year = int(match["year"]) if match["year"] else None
    try:
        # Without a year, take a leap year: any day of the calendar is in it.
        day = date(2000 if year is None else year, number, int(match["day"]))
    except ValueError:
        return None
    named = match["weekday"]
    if named and (year is None or _WEEKDAYS[day.weekday()] != named.casefold()):
        return None
    return year, day.month, day.day
