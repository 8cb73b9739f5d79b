"""A marked answer that is a sentence, an equation, or a value with a remark."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker

CAKES = (
    "Nora had 30 muffins and baked 24 more. Her brother Tim ate 6. "
    "How many muffins does Nora have in total?"
)
PAY = "Omar gets $14 for 2 hours of tutoring. How much would he earn for 9 hours of tutoring?"
MORE = (
    "Ida read 21 pages on Monday and 13 on Sunday. "
    "How many more pages did Ida read on Monday than on Sunday?"
)
LESS = "A pear costs 3 dollars and a melon 11. How much less does the pear cost than the melon?"
QUIZ = (
    "A quiz has 30 questions; Lee skipped none. He scored 84. "
    "How many questions did Lee answer correctly?"
)
PARTS = "A bag holds pens and rulers. Each ruler costs $2. How many pens and rulers are in the bag?"
COST = "Jo has 3 bags for $120 each. How much do all the bags cost?"

RIGHT = [
    (CAKES, "48", "Answer: Nora has a total of 48 muffins."),
    (CAKES, "48", "Answer: Nora will have **48** muffins in total"),
    (CAKES, "48", "**Answer:** In total, Nora has **48 muffins**."),
    (PAY, "63", "**Answer:** Omar would earn **$63** for 9 hours of tutoring."),
    (PAY, "63", "Final answer: He would earn $63."),
    (MORE, "8", "Answer: **8 pages** more on Monday than on Sunday"),
    (MORE, "8", "Answer: Ida read **8** more pages on Monday than on Sunday."),
    (MORE, "8", "The answer is 8 more pages on Monday than on Sunday."),
    (LESS, "8", "Answer: **$8** less for the pear than for the melon"),
    (QUIZ, "22", r"The answer is \(22\) questions answered correctly (and 8 incorrectly)."),
    (PARTS, "9", "Answer: 9 (5 pens and 4 rulers)"),
    (PARTS, "9", "Answer: **9** (2 pens, 3 pencils and 4 rulers)"),
    (COST, "360", "Answer: $360.00 (three hundred sixty dollars)"),
    (COST, "360", "Answer: $360 (three hundred and sixty)"),
]
WRONG = [
    (CAKES, "48", "Answer: Nora does not have a total of 48 muffins."),
    (CAKES, "48", "Answer: Tim has a total of 48 muffins."),
    (CAKES, "48", "Answer: Nora has about 48 muffins in total."),
    (CAKES, "48", "Answer: Nora has at least 48 muffins in total."),
    (CAKES, "48", "Answer: Nora has between **48** and 50 muffins."),
    (CAKES, "48", "Answer: Nora has a total of 48 boxes of muffins."),
    (CAKES, "48", "Answer: Nora has a total of 48 or more muffins."),
    (CAKES, "48", "Answer: Nora ate a total of 48 muffins, not counting hers."),
    (CAKES, "48", "Answer: Nora has a total of 48 dozen muffins."),
    (CAKES, "48", "Answer: Nora has **48** muffins or **54**."),
    (CAKES, "48", "Answer: A total of **48** muffins is wrong."),
    (CAKES, "48", "Answer: Nora has a total of 48 muffins? No."),
    (CAKES, "48", "Answer: Nora has twice 48 muffins in total"),
    (CAKES, "48", "Answer: Nora has 48 more muffins than Tim"),
    (PAY, "63", "Answer: Omar would earn **$63** per hour of tutoring."),
    (PAY, "63", "Answer: Omar would not earn **$63** for 9 hours."),
    (PAY, "63", "Answer: Omar would earn **63 euros** for 9 hours of tutoring."),
    (PAY, "63", "Answer: Omar would earn $63 for 8 hours of tutoring."),
    (PAY, "63", "Answer: Omar would earn less than **$63** for 9 hours."),
    (PAY, "63", "Answer: Omar would owe **$63** for 9 hours of tutoring."),
    (PAY, "9", "Answer: Omar would earn **$63** for 9 hours of tutoring."),
    (MORE, "8", "Answer: **8 pages** fewer on Monday than on Sunday"),
    (MORE, "8", "Answer: **8 pages** more on Sunday than on Monday"),
    (MORE, "8", "Answer: **8 hours** more on Monday than on Sunday"),
    (MORE, "8", "Answer: **8 times** more on Monday than on Sunday"),
    (MORE, "8", "Answer: more than **8** pages on Monday"),
    (MORE, "8", "Answer: 8 more on Sunday"),
    (MORE, "8", "Answer: Ida read 8 more pages on Sunday."),
    (MORE, "8", "Answer: **8** or **9** more on Monday than on Sunday"),
    (MORE, "8", "Answer: **8%** more on Monday than on Sunday"),
    (LESS, "8", "Answer: **$8** more for the pear than for the melon"),
    (LESS, "8", "Answer: **$8** less for the melon than for the pear"),
    (QUIZ, "22", r"The answer is \(22\) questions answered incorrectly."),
    (QUIZ, "22", r"The answer is \(22\) questions answered incorrectly (and 8 correctly)."),
    (QUIZ, "22", "Answer: 22 (and 8)"),
    (QUIZ, "22", "Answer: 22 questions (and 8 more questions)"),
    (QUIZ, "22", "Answer: 22 (or 23)"),
    (QUIZ, "22", "Answer: 22 (maybe 23)"),
    (QUIZ, "22", "Answer: 22 (wrong)"),
    (QUIZ, "22", "Answer: 22 (23 questions)"),
    (QUIZ, "22", "Answer: 22 (not)"),
    (QUIZ, "22", "Answer: 22 (thousands)"),
    (QUIZ, "22", "Answer: 22 (twenty-three)"),
    (QUIZ, "22", "Answer: 22 (approximately)"),
    (PARTS, "9", "Answer: 9 (5 pens and 5 rulers)"),
    (PARTS, "9", "Answer: 9 (5 pens or 4 rulers)"),
    (PARTS, "9", "Answer: 9 pens (and 4 rulers)"),
    (PARTS, "9", "Answer: 9 (5 and 4)"),
    (COST, "360", "Answer: $360.00 (three hundred seventy dollars)"),
    (COST, "360", "Answer: $360.00 (three hundred sixty euros)"),
    (COST, "360", "Answer: $360 (three hundred sixty thousand dollars)"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "gold", "response"), RIGHT)
def test_a_sentence_states_the_one_value_that_the_question_asks_for(
    question: str, gold: str, response: str, checker: Checker
) -> None:
    assert checker.check(response, Problem("p", question, gold, "number")).correct


@pytest.mark.parametrize(("question", "gold", "response"), WRONG)
def test_a_sentence_that_says_something_else_states_no_value(
    question: str, gold: str, response: str, checker: Checker
) -> None:
    for kind in ("number", "math"):
        assert not checker.check(response, Problem("p", question, gold, kind)).correct


@pytest.mark.parametrize(
    ("question", "gold", "response", "right"),
    [
        ("Let $p/q$ be it in lowest terms. Find $p+q$.", "17", "Answer: $p+q=17$", True),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $p + q = 8 + 9 = 17$", True),
        (r"What is $\tan 60^\circ$?", r"\sqrt3", r"Final answer: $\tan 60^\circ = \sqrt{3}$", True),
        (r"Find $\sin 30^\circ$.", r"\frac12", r"\boxed{\sin 30^\circ = \frac12}", True),
        ("Given $x+y=5$ and $x=4$, find $x-y$.", "3", "Answer: $x-y=3$", True),
        ("Given $x+y=5$ and $x=4$, find $x-y$.", "5", "Answer: $x+y=5$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $2p+q=17$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $p-q=17$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $pq=17$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $p+q=8+8=17$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $p+q=17$ or $18$", False),
        ("Let $p/q$ be it. Find $p+q$.", "17", "Answer: $p+q=8+9$", False),
        (r"What is $\tan 60^\circ$?", r"\sqrt{3}", r"Answer: $\tan 30^\circ = \sqrt{3}$", False),
        (r"What is $\tan 60^\circ$?", r"\sqrt{3}", r"Answer: $2\tan 60^\circ = \sqrt{3}$", False),
        ("Find $x$ if $2x+1=9$.", "9", "Answer: $2x+1=9$", False),
        ("Find $p+q$.", "17", "Answer: $p+q=-17$", False),
        ("Let $pq=9$ and $p>q$. What is $pq$?", "9", "Answer: $pq=9$", False),
    ],
)  # fmt: skip
def test_an_equation_for_what_is_asked_states_its_right_side(
    question: str, gold: str, response: str, right: bool, checker: Checker
) -> None:
    assert checker.check(response, Problem("p", question, gold, "math")).correct == right


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("Answer: Door 2 is green.", True), ("The answer is green", True),
        ("Answer: Door 1 is green.", False), ("Answer: Door 2 is not green.", False),
        ("Answer: Door 2 is red.", False), ("Answer: Door 2 was green.", False),
        ("Answer: Door 2 is green or red.", False), ("Answer: If door 2 is green.", False),
        ("Answer: Door 2 is green? No.", False),
    ],
)  # fmt: skip
def test_a_word_may_be_said_of_what_the_question_asks_about(
    response: str, right: bool, checker: Checker
) -> None:
    problem = Problem("p", "Doors are red or green. What colour is door 2?", "green", "text")
    assert checker.check(response, problem).correct == right


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("Answer: Ben is the second tallest.", True),
        ("Answer: Ben", True),
        ("Answer: Eve is the second tallest.", False),
        ("Answer: Ben is the tallest.", False),
        ("Answer: Ben is not the second tallest.", False),
    ],
)
def test_a_name_may_stand_in_the_sentence_that_answers_who(
    response: str, right: bool, checker: Checker
) -> None:
    problem = Problem("p", "Eve > Ben > Cara in height. Who is the second tallest?", "Ben", "math")
    assert checker.check(response, problem).correct == right


def test_words_in_a_box_may_be_set_as_text(checker: Checker) -> None:
    problem = Problem("p", "Yuki is 4 years older than Mia. How old is Yuki?", "30", "number")
    for box, right in (
        ("Yuki is } 30 \\text{ years old}", True),
        ("Mia is } 30 \\text{ years}", False),
    ):
        assert checker.check(f"\\boxed{{\\text{{{box}}}", problem).correct == right


SCONES = (
    "Mia baked 95 scones. She sold 70 of them at $2 each and her brother Leo ate 5. "
    "How many scones are left?"
)
CARDS = "Ben has 12 cards and Eva has 5. How many more cards does Ben have than Eva?"
COAT = "A coat costs $60. It is sold at a discount of 25%. What is the sale price of the coat?"
FENCE = (
    "Lena wants to paint her fence. Paint costs $30 a can and she needs 8 cans of it. "
    "How much will the paint cost her?"
)
PENS = "A box holds 12 red and 15 blue pens. What fraction of the pens are blue?"
CRATES = "A crate holds 12 jars. What is the least number of crates for 80 jars?"
SLOPE = "Find the slope of the line $3x+4y=8$."
HOURS = "Max writes 3 letters a day for an hour. How many hours does he spend writing a week?"
SNAIL = "A snail crawls 8 inches in 4 hours. How many inches will it crawl in 13 hours?"
SHARED = "Ivo and Pia put 9 and 12 coins in a jar. If they share them, how many does each get?"
JARS = "Rita fills 5 jars with 24 plums each. If Udo eats 30 plums, how many plums can Rita sell?"
HEIGHT = "A fir is twice as high as a birch of 17 feet. How tall is the fir?"
SAME_SUBJECT = [
    (SCONES, "20", [
        "She has 20 scones left.", "There are **20** scones left", "20 scones left",
        "The number of scones left is 20", "20 scones remain", "Mia is left with 20 scones.",
        "In the end, 20 scones are left.", "So 20 scones are left",
    ]),
    (CARDS, "7", [
        "Ben has 7 more cards", "Ben has **7** more cards than Eva.", "The difference is 7 cards",
        "It is 7", "7 more",
    ]),
    (COAT, "45", [
        "The sale price is **$45**.", "The sale price of the coat is $45", "The price is $45",
        "The final price is $45",
    ]),
    (FENCE, "240", [
        "It will cost Lena **$240** to paint the fence.", "The paint will cost **$240**",
        "The total cost of the paint is **$240.00**.", "Lena will pay $240 for the paint",
    ]),
    (PENS, r"\frac{5}{9}", [
        r"$\frac59$ of the pens are blue.", "5/9 of the pens are blue",
        r"The fraction of blue pens is $\frac59$.", "The fraction is **5/9**",
    ]),
    (CRATES, "7", [
        "7 crates (six crates would not be enough)", "7 crates (6 crates hold only 72 jars)",
        "7 (six would be too few)", "The least number of crates is 7.", "7 crates are needed",
    ]),
    (SLOPE, r"-\frac{3}{4}", [
        r"The slope is $-0.75 = -\frac34$", r"The slope of the line is $-\frac{3}{4}$.",
        r"The slope is $m = -\frac34$",
    ]),
    (HEIGHT, "34", ["The height of the fir is 34 feet.", "The fir is 34 feet tall"]),
    (JARS, "90", ["Rita can sell 90 plums."]),
    (SHARED, "10.5", ["Each gets 10.5 coins"]),
    (HOURS, "7", ["Max spends **7 hours** a week writing letters."]),
    ("The numbers have sum 16 and product 60. Find the two numbers.", "6, 10",
     ["The two numbers are 10 and 6."]),
]  # fmt: skip
OTHER_SUBJECT = [
    (SCONES, "90", ["Mia has a total of 90 scones"]),
    (SNAIL, "2", ["It crawls 2 inches an hour", "2 inches per hour"]),
    (SHARED, "21", ["They have a total of 21 coins", "The total number of coins is 21"]),
    (SHARED, "12", ["Pia put 12 coins in a jar"]),
    (JARS, "30", ["Udo eats 30 plums", "30 plums eaten", "Udo can sell 30 plums"]),
    (JARS, "24", ["24 plums per jar", "Each jar holds 24 plums"]),
    (HEIGHT, "17", ["The height of the birch is 17 feet"]),
    (SCONES, "20", [
        "Leo has 20 scones left", "Her brother has 20 scones left", "20 scones unsold",
        "She needs 20", "Half of the scones, 20, are left", "20 scones or so are left",
    ]),
    (SCONES, "70", [
        "She sold 70 scones", "Mia sold **70** scones.", "The number of scones sold is 70",
        "70 scones were sold", "70 scones sold", "70 scones eaten", "70 scones gone",
    ]),
    (SCONES, "95", [
        "She baked 95", "She had 95 scones", "There were 95 scones", "95 scones baked",
        "Mia started with 95 scones",
    ]),
    (SCONES, "140", ["She earned $140"]),
    (CARDS, "5", ["Eva has 5 cards"]),
    (CARDS, "7", [
        "Ben has 7 cards", "Eva has 7 more cards than Ben", "Ben has 7 fewer cards",
        "Eva has 7 more cards", "7 more for Eva",
    ]),
    (COAT, "15", [
        "The discount is **$15**", "The discount is $15.", "The savings are $15", "You save $15",
        "$15 off",
    ]),
    (COAT, "60", ["The original price is $60", "The coat costs $60"]),
    (FENCE, "240", [
        "Lena will earn $240", "It will cost $240 to paint the house", "The fence costs $240",
        "The brush will cost her $240", "The cost is less than $240",
    ]),
    (FENCE, "30", ["Paint costs $30 a can", "Each can costs $30"]),
    (PENS, r"\frac{5}{9}", [
        r"$\frac59$ of the pens are red", r"The fraction of red pens is $\frac59$.",
        r"Not $\frac59$ of the pens are blue", r"$\frac59$ of the pens are not blue",
        r"less than $\frac59$ of the pens are blue",
    ]),
    (CRATES, "7", [
        "7 crates (7 crates would not be enough)", "7 crates (8 would be needed)",
        "7 crates (8 crates are enough)", "She needs at least 7 crates", "7 crates (or 8)",
        "7 crates would not be enough",
    ]),
    (SLOPE, r"-\frac{3}{4}", [
        r"The slope is $-0.75 = -\frac32$.", r"The intercept is $-\frac34$",
        r"The slope of the perpendicular line is $-\frac34$", r"The $y$-intercept is $-\frac34$",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("question", "gold", "answers"), SAME_SUBJECT)
def test_a_sentence_speaks_of_what_is_asked(
    question: str, gold: str, answers: list[str], checker: Checker
) -> None:
    problem = Problem("p", question, gold, "list" if "," in gold else "math")
    for answer in answers:
        assert checker.check(f"Answer: {answer}", problem).correct, answer


@pytest.mark.parametrize(("question", "gold", "answers"), OTHER_SUBJECT)
def test_a_sentence_about_another_thing_is_no_answer(
    question: str, gold: str, answers: list[str], checker: Checker
) -> None:
    for kind in ("number", "math"):
        for answer in answers:
            verdict = checker.check(f"Answer: {answer}", Problem("p", question, gold, kind))
            assert not verdict.correct, answer


def test_a_last_line_in_bold_about_another_thing_is_no_answer(checker: Checker) -> None:
    problem = Problem("p", SCONES, "70", "number")
    for line in ("So she sold **70** scones.", "Therefore, Mia sold **70** in total."):
        assert not checker.check(f"95 - 20 - 5 = 70\n{line}", problem).correct, line
