"""Answers of responses that mark none."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers.checker import Checker
from coterie.rewards.grading.answers.extract import last_stated
from coterie.rewards.grading.answers.unmarked import name_unmarked, value_unmarked

SOCKS = "She has 50 socks. She washes 35. How many socks has she missed?"


@pytest.mark.parametrize(
    ("line", "question", "value"),
    [
        ("She has missed 15 socks.", SOCKS, "15 socks"),
        ("35 are clean. 50 - 35 = 15, so she has missed 15 socks.", SOCKS, "15 socks"),
        ("So she has missed 50 - 35 = 15 socks.", SOCKS, "15 socks"),
        ("The speed is 120 / 2 = 60 km/h.", "What is its speed in km/h?", "60 km/h"),
        ("The teacher must buy 9 packs.", "A teacher needs 100. How many packs must she buy?", "9"),
        ("The discount is $15 / $60 = 25%.", "What percent is the discount?", "25%"),
        ("Mrs. Lee gets $26 in change.", "Mrs. Lee pays $50. How much change does she get?", "$26"),
        ("So, it takes 6 hours to make 960 toys.", "How long does it take to make 960 toys?", "6"),
        ("So, the solution is x = 9.", "Solve $3x - 7 = 20$.", "x = 9"),
        ("Therefore, the median is 10.", "What is the median of 3, 7, 10, 12 and 19?", "10"),
        ("So the simplified expression is $5x - 8$.", "Simplify: $4(2x-5)-3(x-4)$.", "$5x - 8$"),
        ("So it is 15.", SOCKS, None),
        ("Therefore, the discount is $15.", "What is the sale price?", None),
        ("Thus, the median is not 10.", "What is the median of 3, 7, 10, 12 and 19?", None),
        (
            "So, Jo has 95 trading cards now.",
            "Jo had 75 trading cards. How many cards does Jo have now?",
            "95",
        ),
        ("The Wall fell on **November 9, 1989**.", "In which year did the Wall fall?", "1989"),
        ("It was built in 1961 and fell in 1989.", "In which year did the Wall fall?", None),
        # Nothing is said of the number, or the sentence may have been cut off.
        ("50 - 35 = 15.", SOCKS, None),
        ("First 3, and then 4.", SOCKS, None),
        ("She has missed 15 socks", SOCKS, None),
        ("So, the solution is x = 9.", "Solve $3x - y = 20$.", None),
        ("So the speed is x = 9.", "Solve $3x - 7 = 20$.", None),
        # Wrong sums, conditions, denials, and sentences about something else.
        ("So she has missed 50 - 35 = 16 socks.", SOCKS, None),
        ("She would have missed 15 socks if she washed 35.", SOCKS, None),
        ("She has not missed 15 socks.", SOCKS, None),
        ("So she has washed 35 socks.", SOCKS, None),
        ("She has missed 15 shirts.", SOCKS, None),
        ("She has 15 clean socks in 3 drawers.", SOCKS, None),
        ("The discount is 15 dollars.", "What percent is the discount?", None),
        ("She has missed 15 socks. Or is it 16?", SOCKS, None),
    ],
)
def test_a_complete_last_sentence_says_what_is_asked(
    line: str, question: str, value: str | None
) -> None:
    response = f"Let me see.\n{line}"
    assert last_stated(response, question) is None
    stated = value_unmarked(response, question)
    assert (stated and stated.startswith(value or "-")) is (True if value else None)
    assert value_unmarked(response, "") is None


WHALES = "Do whales breathe air?"
FIRST = "Which university was founded first, Harvard or Yale?"
NOVEL = "Who wrote the novel?"


@pytest.mark.parametrize(
    ("response", "question", "name"),
    [
        ("Yes, whales are mammals and breathe air.", WHALES, "Yes"),
        ("No. They are fish.", WHALES, "No"),
        ("Ann Lee", NOVEL, "Ann Lee"),
        ("Ann Lee or Bo Day", NOVEL, None),
        ("It was written by Ann Lee. It was written in 1818.", NOVEL, "Ann Lee"),
        ("It was written by Ann Lee. It was written by Bo Day.", NOVEL, None),
        ("Yes, some do. So no.", WHALES, None),
        ("No, they are fish. Wait, that is wrong, they are mammals.", WHALES, None),
        ("Whales are mammals, yes, they are.", WHALES, None),
        ("Yes, it was.", NOVEL, None),
        ("The novel was written by Ann Lee.", NOVEL, "Ann Lee"),
        ("Ann Lee, who was born in **Cork**, Ireland.", "Where was she born?", "Cork"),
        ("The novel was praised by Ann Lee.", NOVEL, None),
        ("It was not written by Ann Lee.", NOVEL, None),
        ("The novel was written by Ann", NOVEL, None),
        ("Harvard was founded first. Yale was founded in 1701.", FIRST, "Harvard"),
        ("Yale was founded in 1701.", FIRST, None),
        ("Oxford was founded first.", FIRST, None),
        ("Harvard was not founded first.", FIRST, None),
    ],
)  # fmt: skip
def test_a_last_sentence_names_what_is_asked(
    response: str, question: str, name: str | None
) -> None:
    assert name_unmarked(response, question) == name


@pytest.mark.parametrize(
    ("response", "gold", "right"),
    [
        ("The planet is **Neptune**.", "Neptune", True),
        ("The neighbour of Uranus is **Neptune**.", "Neptune", False),
        ("Triton is a moon of Neptune. The answer is Neptune.", "Neptune", True),
        ("Triton is a moon of Neptune. The answer is Saturn.", "Neptune", False),
        ("Neptune has it. The answer is Saturn or Neptune.", "Neptune", False),
        ("D) lizard\n\nExplanation: Lizards are reptiles.", "D", True),
        ("It is **D) lizard**.\n\nBats (C) are mammals.", "D", True),
        ("It is not **D) lizard**.\n\nBats (C) are mammals.", "D", False),
        ("It is **D) lizard** or **C) bat**.\n\nI cannot say.", "D", False),
        ("Answer: D) lizard. Note that C) would be right too.", "D", False),
        ("D) lizard\n\nExplanation: C) is as good, as bats are.", "D", False),
        ("D) lizard\n\nThese are animals.", "D", False),
        ("C) bat\n\nExplanation: D) lizard is no mammal.", "D", False),
    ],
)
def test_a_response_is_read_whole(response: str, gold: str, right: bool, checker: Checker) -> None:
    question = "Which is it?" + "\nA) cow\nB) eagle\nC) bat\nD) lizard" * (gold == "D")
    problem = Problem("p", question, gold, "math")
    assert checker.check(response, problem).correct == right


@pytest.mark.parametrize(
    ("response", "right"),
    [
        (r"The solutions are \(\boxed{3}\) and \(\boxed{-2}\).", True),
        (r"The solutions are \(\boxed{3}\) and \(\boxed{2}\).", False),
        (r"The solution is \(\boxed{3}\).", False),
    ],
)
def test_boxes_in_round_brackets_are_one_list(response: str, right: bool, checker: Checker) -> None:
    problem = Problem("p", "Find all solutions of $x^2 - x - 6 = 0$.", "3, -2", "math")
    assert checker.check(response, problem).correct == right


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("Jo had **65** cards at first (46 + 19 = 65).", True),
        ("Jo had **65** cards at first (46 + 19 = 66).", False),
        ("So Jo had **65** cards at first.", True),
        ("So Jo would have had **65** cards at first.", False),
        ("With 19 more, that takes 46 + 19 = **65 cards**.", True),
        ("With 19 more, that takes 46 + 19 = **65 boxes**.", False),
    ],
)
def test_a_sum_beside_a_value_in_bold_has_to_come_to_it(
    line: str, right: bool, checker: Checker
) -> None:
    question = "Jo gave 19 cards away and has 46. How many cards did Jo have at first?"
    problem = Problem("p", question, "65", "number")
    assert checker.check(f"Let me see.\n{line}", problem).correct == right


def test_would_is_no_doubt_where_the_question_says_it(checker: Checker) -> None:
    for question, right in (
        ("Jo has 22 sweets, 11 in a bag. How many bags would Jo have?", True),
        ("Jo has 22 sweets, 11 in a bag. How many bags does Jo have?", False),
    ):
        problem = Problem("p", question, "2", "number")
        assert checker.check("Let me see.\nSo Jo would have **2** bags.", problem).correct == right
