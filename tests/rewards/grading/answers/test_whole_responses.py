"""Where whole responses of chat models state their answer, and where they take it back."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker

NUMBER = Problem("w", "How many jars are there in the shop?", "58", "number")
MONEY = Problem("w", "How much money does she earn?", "5800", "number")
TRUTH = Problem("w", "Is it so?", "no", "text")
FUNCTION = Problem("w", "Find all functions $f$ with this property.", "f(x)=3x", "math")
TOWN = Problem("w", "Which town does she mean?", "Graz", "qa")
METAL = Problem("w", "Which metal melts in the hand?", "gallium", "math")
LENGTH = Problem("w", "How long is each shelf, in inches?", "12", "number")
FEET = Problem("w", "How long is each shelf, in feet?", "12", "number")
PART = Problem("w", "What part is left?", r"\frac{7}{12}", "math")
CHOICES = ("a cold front", "warm air", "two storms", "5/8")
CHOICE = Problem("w", "What brings rain?", "A", "choice", choices=CHOICES)
SHARE = Problem("w", "What share is it?", "D", "choice", choices=CHOICES)

RIGHT = [
    ("So she earns **$5,800.00** in one month.", MONEY),
    ("There are **58 jars** in total. 🫙🫙", NUMBER),
    ("We add the shelves. **The answer is 58.**", NUMBER),
    ("jars(shop) = **58**.", NUMBER),
    ("40 + 18 = 58. The shop has **58** jars.", NUMBER),
    ("40 + 18 = 58. **The shop has 58 jars.** I hope this helps!", NUMBER),
    ("The town that she means is **Graz**.", TOWN),
    (r"So it is $\boxed{\text{Graz}}$.", TOWN),
    ("Of the three it is the softest.\n\nSo the metal that melts is **gallium**.", METAL),
    ('96 / 8 = 12\nAnswer: 12"', LENGTH),
    ("96 / 8 = 12\nAnswer: 12''", LENGTH),
    ('Answer: "12"', LENGTH),
    (r"$\boxed{\mathbf{\frac7{12}}}$", PART),
    (r"$\boxed{\boldsymbol{\frac{7}{12}}}$", PART),
    ("It fails for 4.\nSo it is: **No**", TRUTH),
    ("Answer: fifty-eight (58)", NUMBER),
    ("Answer: 58 (fifty-eight)", NUMBER),
    ("**Answer.** $58$", NUMBER),
    ("The claim fails for 4. Final answer: no.", TRUTH),
    ("<think>It fails.</think>\nNo.", TRUTH),
    (r"\boxed{f(x) = 3x \quad \text{for all } x > 0}", FUNCTION),
    (r"\boxed{f(x) = 3x \text{ for every } x \in \mathbb{R}}", FUNCTION),
    (r"\boxed{f(x) = 3x, \ \forall x \in \mathbb{R}^+}", FUNCTION),
    ("The correct answer is **(A) a cold front**. Rain falls where it meets warm air.", CHOICE),
    ("So the best answer is A. a cold front.", CHOICE),
    ("Therefore, the answer is 5/8, option D.", SHARE),
    ("The answer is 5/8 (D).", SHARE),
    ("It is 5 of 8 parts.\nSo: **D. 5/8**", SHARE),
    ("The share is **5/8**.", SHARE),
]
WRONG = [
    ("I doubt that it is **58**.", NUMBER),
    ("Nobody would say that it is **58**.", NUMBER),
    ("None of them is **58**.", NUMBER),
    ("They falsely claim that it is **58**.", NUMBER),
    ("40 + 18 = 58. The shop has **58** jars. It had 40.", NUMBER),
    ("40 + 18 = 58. The shop has **58** of 60 jars.", NUMBER),
    ("It might have 40. The shop has **58** jars.", NUMBER),
    ("The shop has **58** jars. Actually, sixty.", NUMBER),
    ("The shop has **58** jars. Wait, sixty.", NUMBER),
    ("The shop has **58** jars. I made a mistake.", NUMBER),
    ("Answer: D. 5/8. B. warm air", SHARE),
    ("Answer: D. 5/8. (A) a cold front. (B) warm air.", SHARE),
    ("She does not mean **Graz**.", TOWN),
    (r"\boxed{\text{Linz}}", TOWN),
    ("It is **Graz** or **Linz**.", TOWN),
    ("It is **Graz**, I think.", TOWN),
    ("So the metal that melts is **sodium**.", METAL),
    ('Answer: 12"', FEET),
    ("The metal is hardly **gallium**.", METAL),
    ("So the metal that melts is **gallium** or **sodium**.", METAL),
    ("Answer: fifty-eight (59)", NUMBER),
    ("Answer: 58 (59)", NUMBER),
    ("**Answer.** $58$ or $59$", NUMBER),
    ("Answer: no, yes", TRUTH),
    ("Answer: No. Yes.", TRUTH),
    ("Answer: no; true", TRUTH),
    ("The claim holds. Final answer: yes.", TRUTH),
    ("Yes and no.", TRUTH),
    (r"\boxed{f(x) = 3x \quad \text{for all } x > 0, \text{ or } f(x) = 0}", FUNCTION),
    (r"\boxed{f(x) = cx \text{ for all } x}", FUNCTION),
    (r"\boxed{f(x) = 3x \text{ for } x < 1}", FUNCTION),
    ("The answer is A. a cold front. B. warm air", CHOICE),
    ("The answer is A. a cold front. Wait, it is warm air.", CHOICE),
    ("The answer is A. a cold front? Then B.", CHOICE),
    ("The answer is A. a cold front. Option B is as good.", CHOICE),
    ("The answer is A, not B? Then B.", CHOICE),
    ("Therefore, the answer is 5/8, option A.", SHARE),
    ("The answer is 5/8 (A).", SHARE),
    ("I would exclude **A**.", CHOICE),
    ("The wrong one is **A. a cold front**", CHOICE),
    ("**A. a cold front** or **B. warm air**", CHOICE),
    ("It is neither of these: **A. a cold front**", CHOICE),
]


@pytest.mark.parametrize(("response", "problem"), RIGHT)
def test_a_stated_answer_is_found(checker: Checker, response: str, problem: Problem) -> None:
    assert checker.check(response, problem).correct


@pytest.mark.parametrize(("response", "problem"), WRONG)
def test_what_is_doubted_or_one_of_two_is_not_paid(
    checker: Checker, response: str, problem: Problem
) -> None:
    assert not checker.check(response, problem).correct


@pytest.mark.parametrize(
    ("correction", "paid"),
    [
        ("Correction: 57", False), ("**Correction:** the answer is 57", False),
        ("Actually, it is 57.", False), ("Wait, that is wrong.", False),
        ("Oops, I made a mistake. It should be 57.", False), ("Hmm, wait, it's 57.", False),
        ("Sorry, I meant 57 jars.", False), ("Updated answer: 57", False), ("No, it is 57.", False),
        ("Actually, there are 57 jars.", False), ("That is wrong. It is 57.", False),
        ("Based on this, the correct answer is 57.", False), ("The true answer is 57.", False),
        ("So the correct answer should be 57.", False), ("I apologize, the answer is 57.", False),
        ("After correcting this, the answer is 57.", False), ("No wait, 57.", False),
        ("Hence the answer would be 57.", False), ("Final corrected answer: 57", False),
        ("### Revised Answer\n57", False), ("Based on this, the answer is 58.", True),
        ("Had it one more, the answer would be 59.", True), ("Actually, this is all.", True),
        ("Wait, 40 + 18 = 58. Yes.", True), ("Wait, there are 2 shelves to add up first.", True),
        ("Correction: I forgot a shelf.", False), ("Correction: 58", True),
        ("The count is done. Actually, the total is 57.", False),
        ("Actually, it is 58, as I said.", True), ("Actually, it is a nice shop.", True),
        ("We can check that 57 is too few.", True), ("I made no mistake.", True),
    ],
)  # fmt: skip
def test_a_correction_takes_the_place_of_a_stated_answer(
    checker: Checker, correction: str, paid: bool
) -> None:
    for stated in ("Answer: 58", r"So it is $\boxed{58}$."):
        response = f"{stated}\n\nLet me look again.\n{correction}"
        assert checker.check(response, NUMBER).correct == paid, response
    assert not checker.check("Correction: 58 of them are full", NUMBER).correct
    assert checker.check("Answer: 57\nCorrection: the answer is 58", NUMBER).correct
    assert checker.check("Answer: B\nCorrection: A", CHOICE).correct
    assert not checker.check("Answer: A\nCorrection: I was wrong.", CHOICE).correct
    for taken_back in (
        "Actually, B.", "Wait, (B).", "No, B.", "Sorry, B.", "On second thought, B.",
        "Actually, it's warm air.", "Wait, warm air.", "Actually, not a cold front.",
    ):  # fmt: skip
        assert not checker.check(f"Answer: A\n\n{taken_back}", CHOICE).correct, taken_back
    for kept in ("Actually, A.", "Actually, it rains often.", "Wait, let me see."):
        assert checker.check(f"Answer: A\n\n{kept}", CHOICE).correct, kept


@pytest.mark.parametrize(
    ("response", "paid"),
    [
        ("Answer: D. 5/8. So is C.", False), ("Answer: D. 5/8. B is as good.", False),
        ("The answer is D. 5/8. B is correct, too.", False), ("Answer: D. 5/8. Also C.", False),
        ("Answer: D. 5/8. C works.", False), ("The answer is D. 5/8, and so is B.", False),
        ("Answer: D. 5/8. A would also be right.", False), ("Answer: D. 5/8. As is A.", False),
        ("Answer: D. 5/8. Same for A.", False), ("The answer is D. B is also right.", False),
        ("Answer: D. 5/8. D is right as 5 of 8 are full.", True),
        ("The answer is D. Note that A is too small.", True),
        ("The answer is D. 5/8. Three parts are empty.", True),
        ("The answer is (D) 5/8. Warm air is used instead elsewhere.", True),
        ("The answer is (D) 5/8. It is B instead.", False),
        ("The answer is (D) 5/8. Choose B instead.", False),
        ("The answer is (D) 5/8. Instead, B fits.", False),
        ("We count the parts. The answer is five eighths or 5/8 (D).", False),
        ("We count the parts. The answer is $5/8$ (D).", True),
        ("We count the parts. The correct answer is 5/8, option D.", True),
        ("We count the parts. The answer is warm air (B).", False),
        ("We count. The answer is a cold front (D).", False),
    ],
)  # fmt: skip
def test_only_the_one_option_that_is_chosen_counts(
    checker: Checker, response: str, paid: bool
) -> None:
    assert checker.check(response, SHARE).correct == paid


def test_an_option_in_words_with_its_letter_is_stated_within_a_line(checker: Checker) -> None:
    for response in (
        "It rains often. The answer is a cold front (A).",
        "It rains often. So the best answer is a cold front, option A. Air cools there.",
    ):
        assert checker.check(response, CHOICE).correct, response
    assert not checker.check("It rains. The answer is warm air (A).", CHOICE).correct


@pytest.mark.parametrize(
    ("question", "paid", "unpaid"),
    [
        (
            "Ben had 60 plums and ate some. How many plums has he left?",
            ["He has **24** plums left.", "So it is **24**.", "**24** plums.", "= **24**",
             "So Ben keeps **24** plums."],
            ["It is **24** fewer.", "**24** plums. That is too few.", "He ate **24** plums.",
             "He bought **24** plums.", "That is **24** more.", "He is **24** short.",
             "He sold **24** plums.", "There are only **24**.",
             "**24** plums were eaten.", "Originally there were **24**."],
        ),
        (
            "How many plums did Ben eat?",
            ["He ate **24** plums.", "Ben eats **24** plums.", "It is **24**."],
            ["He has **24** plums.", "He sold **24** plums."],
        ),
        (
            "How many more plums than pears does he buy?",
            ["He buys **24** more plums.", "He bought **24** more."],
            ["He buys **24** fewer plums.", "He ate **24** more plums."],
        ),
        ("How much money does she make?", ["She earns **$24**."], ["She spent **$24**."]),
    ],
)  # fmt: skip
def test_a_bold_value_in_prose_is_what_the_question_asks_for(
    checker: Checker, question: str, paid: list[str], unpaid: list[str]
) -> None:
    problem = Problem("w", question, "24", "number")
    found = [each for each in paid + unpaid if checker.check(each, problem).correct]
    assert found == paid


@pytest.mark.parametrize(
    "mark", ["<|im_end|>", "<|endoftext|>", "</s>", "<end_of_turn>", "<|eot_id|>", "<|end|>"]
)
def test_a_spelled_out_end_mark_ends_the_response(checker: Checker, mark: str) -> None:
    for stated in (
        "Answer: 58", "#### 58", r"So \boxed{58}.", "58", "The answer is **58**.",
        "There are **58 jars**.", "<think>57?</think>58", "40 + 18 = 58. The shop has 58 jars.",
    ):  # fmt: skip
        assert checker.check(f"{stated}{mark}", NUMBER).correct, stated
    assert not checker.check(f"{mark}Answer: 57{mark}", NUMBER).correct
    assert checker.check(f"Answer: 58{mark}\n<|im_start|>user\nAnswer: 57", NUMBER).correct
    assert checker.check(f"Answer: A{mark}", CHOICE).correct
    assert checker.check(f"It is Graz.\nAnswer: Graz{mark}", TOWN).correct
