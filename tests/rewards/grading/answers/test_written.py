"""Answers as models write them, and what only looks like them."""

import pytest

from coterie.datatypes import AnswerKind, Problem
from coterie.rewards.grading.answers import Checker, extract, letter_of
from coterie.rewards.grading.answers.asked import asked_units, contradicts
from coterie.rewards.grading.answers.dates import read_date


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("So the answer is 7.", "7."),
        ("Therefore, the answer is 7", "7"),
        ("Thus, the final answer is: 7", "7"),
        ("The correct answer is 7.", "7."),
        ("The correct option is B) 14", "B) 14"),
        ("The answer to this problem is 7.", "7."),
        ("The answer is therefore 7.", "7."),
        ("5 + 2 = 7. So the answer is 7.", "7."),
        ("3. So, the answer is 7.", "7."),
        ("It is 7 - 7, so the final answer is 0.", "0."),
        ("### Final Answer\n7", "7"),
        ("### Answer\n\n**7**", "**7**"),
        ("**Final Answer**\n\\[\n7\n\\]", "7"),
        ("#### Final Answer\n7", "7"),
        ("- Answer: 7", "7"),
        ("* Answer: 7", "7"),
        ("2. **Answer:** 7", "7"),
        ("Answer: `7`", "`7`"),
        (r"\boxed 7", "7"),
        (r"$\boxed7$.", "7"),
        (r"\boxed B", "B"),
        ("Answer：7", "7"),
        ("### ✅ Final Answer:\n\n**7**", "**7**"),
        ("✅ **Answer: 7**", "7"),
        ("**Answer: 7 rolls** 🎉", "7 rolls"),
        ("Answer: 7 ❌", "7 ❌"),
        # No statement, or none that can be read without a guess.
        ("The answer is 7. It is clear.", "7. It is clear."),
        (r"\boxed{7}. The answer is clearly right.", "7"),
        (r"\boxed 7^2", None),
        (r"\boxed 7x", None),
        ("Final Answer\n7", None),
        ("An answer is near.", None),
        ("Is the answer 7?", None),
    ],
)  # fmt: skip
def test_an_answer_is_met_where_models_state_it(response: str, answer: str | None) -> None:
    assert extract(response) == answer


EQUAL: tuple[tuple[AnswerKind, str, str], ...] = (
    ("number", "7", "`7`"),
    ("number", "7", "7 (pens)"),
    ("number", "7", '"7"'),
    ("number", "7", r"\ 7\ "),
    ("number", "1250000", "1.25 million"),
    ("number", "1250000", r"\$1.25 million"),
    ("number", "2500", "2.5 thousand people"),
    ("number", "3.75", "3{,}75"),
    ("number", "18", "18,00 €"),
    ("number", "18.5", "€18,50"),
    ("number", "7", "“7”."),
    ("number", "12", r"\textbf{(C)}\ 12"),
    ("number", "12", r"\text{(C) } 12"),
    ("math", r"\frac12", r"{1 \over 2}"),
    ("number", r"6.02\times10^{23}", "6.02·10²³"),
    ("number", r"6.02\times10^{23}", "6.02 x 10^23"),
    ("math", r"4.5\times10^{-4}", "4.5 × 10⁻⁴"),
    ("number", "1", r"0.\overline{9}"),
    ("math", "x^2", "x²"),
    ("math", "2", "1.(9)"),
    ("list", r"2+\sqrt3, 2-\sqrt3", r"2\mp\sqrt3"),
    ("number", "-17", "‑17"),
    ("number", "-17", "minus 17"),
    ("number", "-17", "negative 17"),
    ("number", "1750", "１７５０"),
    ("number", "1969", "1969 AD"),
    ("number", "1969", "In 1969"),
    ("number", "1969", "in the year 1969."),
    ("number", "1234567", "1'234'567"),
    ("number", "1234567.89", "1.234.567,89"),
    ("number", "1234567", "1.234.567"),
    ("number", "45678.9", "45.678,90"),
    ("list", "1234567, 8", "1'234'567, 8"),
    ("math", "10^{100}", "100^{50}"),
    ("math", "2^{10}", "4^5"),
    ("math", "x=4", "4 = x"),
    ("math", "y=Ce^{3x}", "y(x) = Ce^{3x}"),
    ("math", "f^{-1}(x)=x-1", "f^{-1} = x-1"),
    ("math", r"-\frac{x}{y}", r"\frac{dy}{dx} = -\frac{x}{y}"),
    ("number", "3", r"\frac{dV}{dt}=3"),
    ("text", "March 14, 2024", "14 March 2024"),
    ("text", "July 4", "4th of July"),
    ("math", r"\text{March 14, 2024}", "2024-03-14"),
)
DIFFERENT: tuple[tuple[AnswerKind, str, str], ...] = (
    ("number", "12", "(C) 13"),
    ("number", "17", "minus 17"),
    ("number", "1.25", "1.25 million"),
    ("number", "1250000", "1.25 million or more"),
    ("number", "1250000", "1.25 quadrillion"),
    ("number", "375", "3{,}75"),
    ("number", "18", "18,00"),
    ("list", "18", "18,00 €"),
    ("number", "1969", "1969 BC"),
    ("number", "1969", "before 1969"),
    ("number", "1969", "in 1970"),
    ("number", "1234", "1.234"),
    ("number", "1234567", "1.234.56"),
    ("number", "123456", "1'234'56"),
    ("math", "45678.9", "45.678,90"),
    ("list", "1234567, 8", "1'234'567,8,9"),
    ("number", r"6.02\times10^{23}", "6.02 x 10 23"),
    ("math", "10^{100}", "100^{100}"),
    ("math", "f(x)=x-1", "f(y)=x-1"),
    ("math", "y=Ce^{3x}", "f(x) = Ce^{3x}"),
    ("math", "1000", "10^2 * 10"),
    ("number", "0.9", r"0.\overline{9}"),
    ("list", r"2+\sqrt3, 2-\sqrt3", r"3\mp\sqrt2"),
    ("text", "March 14, 2024", "14 April 2024"),
    ("text", "March 14, 2024", "March 14"),
    ("text", "March 4, 2024", "3/4/2024"),
    ("text", "March 14, 2024", "Friday, March 14, 2024"),
    ("number", "7", "7 (or 8)"),
    ("number", "7", "7 (million)"),
)


@pytest.fixture(scope="module")
def checker():
    checker = Checker(deadline_s=20.0)
    yield checker
    checker.close()


@pytest.mark.parametrize(
    ("kind", "gold", "answer", "equal"),
    [(*pair, True) for pair in EQUAL] + [(*pair, False) for pair in DIFFERENT],
)
def test_a_spelling_changes_no_answer(
    kind: AnswerKind, gold: str, answer: str, equal: bool, checker: Checker
) -> None:
    asked = Problem("p", "?", gold, kind)
    assert checker.check(rf"So \boxed{{{answer}}}.", asked).correct == equal


@pytest.mark.parametrize(
    ("question", "gold", "right", "wrong"),
    [
        (
            "How many minutes does it take?",
            "30",
            ("30", "30 minutes", "30 min", "30 (minutes)"),
            ("30 hours", "30%", "$30", r"\$30", "30 seconds", "30 km", "30°"),
        ),
        (
            "How many dollars is it?",
            "30",
            ("$30", r"\$30.00"),
            ("€30", "30 cents", "30%"),
        ),
        ("How many apples are left?", "9", ("9 apples", "9"), ("9 kg", "9%", "$9", "9 hours")),
        ("How much does it cost?", "5", ("$5", "5 euros", "5"), ("5%", "5 hours")),
        ("How far is it, in kilometers?", "5", ("5 km", "5"), ("5 miles", "5 meters", "$5")),
        ("How many square feet is it?", "5", ("5 square feet", "5 ft^2"), ("5 feet", "5 m^2")),
        ("How many miles per hour?", "60", ("60 mph", "60 miles", "60 miles per hour"), ("60 km",)),
        ("What percent of them is red?", "20", ("20%", "20", "20 percent"), ("$20", "20 cm")),
        ("How fast is it, in m/s?", "12", ("12 m/s", "12"), ("12 km/h", "12 m", "12 s")),
        ("How long is it, in metres?", "36", ("36 metres",), ("36 metres per second", "36 m^2")),
        (
            "How many minutes does she run daily?",
            "9",
            ("9 minutes per day",),
            ("9 minutes a week",),
        ),
        ("What does it cost in euros?", "18", ("18 euros", "€18"), ("18 cents", "£18", "$18")),
        ("How much does it cost in euros?", "18", ("18 €",), ("18 cents", "£18", "$18")),
        (
            "What is the density in g/cm^3?",
            "2.7",
            ("2.7 g/cm^3",),
            ("2.7 kg", "2.7 g/m^3", "2.7 g"),
        ),
        ("What is its area in cm²?", "5", ("5 cm^2",), ("5 cm", "5 m^2", "5 cm^3")),
        ("What percent of the class is absent?", "15", ("15%",), ("15 students", "15 pupils left")),
        ("How many minutes are left?", "30", ("30 left", "30 in total"), ("30 apples", "30 laps")),
        ("How many pages does he read each day?", "9", ("9 pages per day", "9 pages"), ("9 days",)),
        ("How many five dollar toys can he buy?", "9", ("9 toys",), ("9 dollars", "$9")),
        ("How many pages does he read?", "9", ("9 pages",), ("9 pages per day",)),
        ("How many cows are left?", "9", ("9 cows are left", "9 are left"), ("9 are gone",)),
        ("How many cents is it?", "85", ("85¢", "85 cents"), ("85€",)),
        (
            "How much money does he save a week?",
            "9",
            ("$9 per week", "$9"),
            ("$9 per day", "9 a day"),
        ),
        ("How much rent is it a month?", "9", ("$9 a month", "$9"), ("$9 per year",)),
        ("What percentage of apples is red?", "9", ("9% of the apples",), ("9 apples",)),
        ("How many more hours a day?", "3", ("3 hours", "3 hrs", "3 hours a day"), ("3 days",)),
        ("How many more apples?", "8", ("8 more", "8 more apples"), ("8 less",)),
        ("How much money has he?", "8", ("$8 left", "8 dollars remaining"), ("8 hours left",)),
        ("How many does she need?", "8", ("$8", "8"), ()),
        ("What is it in km per hour?", "5", ("5 km/h",), ("5 km", "5 miles", "5%")),
        ("What is the area in cm^2?", "5", ("5 cm^2", "5"), ()),
        ("How long is it?", "5", ("5 m", "5 cm", "5 hours"), ("5 million",)),
        ("What is the angle?", "30", (r"30^\circ", "30 degrees"), ()),
    ],
)
def test_a_unit_that_contradicts_the_question_is_wrong(
    question: str, gold: str, right: tuple[str, ...], wrong: tuple[str, ...], checker: Checker
) -> None:
    asked = Problem("p", question, gold, "number")
    paid = [a for a in (*right, *wrong) if checker.check(rf"\boxed{{{a}}}", asked).correct]
    assert paid == list(right)


def test_the_unit_of_a_question_is_the_one_after_how_many() -> None:
    assert asked_units("How many full minutes of the 3 hours?") == {"minute"}
    assert asked_units("How many pieces of 5 cm?") == {""}
    assert asked_units("He ran for 5 hours. How far, in meters?") == {"meter"}
    assert asked_units("What is left?") == frozenset()
    assert not contradicts("", "How many minutes?")


OPTIONS = ("red", "blue or green", "1/4", r"\frac{4}{5}", "$x^2+1$", "32 cm")


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B: blue or green", "B"),
        (r"\textbf{(B)}\ \text{blue or green}", "B"),
        ("B – blue or green", "B"),
        ("C: 0.25", "C"),
        (r"C. \frac{2}{8}", "C"),
        ("0.25", "C"),
        ("4/5", "D"),
        (r"(D) $\dfrac45$", "D"),
        ("1 + x^2", "E"),
        ("F: 32", "F"),
        ("32 cm", "F"),
        ("32 kg", None),
        ("B: not blue", None),
        ("B: no, C", None),
        ("B: purple", None),
        ("B: green", None),
        ("B: red", None),
        ("(B, 32)", None),
        ("B: 1/4", None),
        ("D: 1/4", None),
        ("B, because it is", None),
        ("B and C", None),
        ("E: x^2+2", None),
    ],
)
def test_a_letter_counts_alone_or_with_its_own_option(text: str, letter: str | None) -> None:
    assert letter_of(text, OPTIONS) == letter


def test_a_typeset_option_answers_by_letter_or_value(checker: Checker) -> None:
    asked = Problem("p", "?", "C", "choice", choices=("8", "10", "12", "14"))
    for answer in (r"\textbf{(C)}\ 12", r"\text{(C) } 12", "12", "(C)"):
        assert checker.check(rf"\boxed{{{answer}}}", asked).correct, answer
    assert not checker.check(r"\boxed{\textbf{(C)}\ 10}", asked).correct


def test_an_option_alone_is_an_answer(checker: Checker) -> None:
    asked = Problem("p", "?", "C", "choice", choices=("red", "blue", "green"))
    for answer, right in (
        ("C. green", True),
        ("green", True),
        ("C. blue", False),
        ("blue", False),
        ("C. green or blue", False),
        ("C. green\nA. red", False),
    ):
        assert checker.check(answer, asked).correct == right


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("March 14, 2024", (2024, 3, 14)),
        ("Thursday, March 14, 2024", (2024, 3, 14)),
        ("14.03.2024", (2024, 3, 14)),
        ("3/14/2024", (2024, 3, 14)),
        ("3/3/2024", (2024, 3, 3)),
        ("Feb. 29", (None, 2, 29)),
        ("Feb 29, 2023", None),
        ("3/4/2024", None),
        ("Marching 14", None),
        ("14", None),
        ("9" * 5000, None),
    ],
)
def test_a_date_is_one_in_any_order(text: str, day: tuple[int | None, int, int] | None) -> None:
    assert read_date(text) == day
