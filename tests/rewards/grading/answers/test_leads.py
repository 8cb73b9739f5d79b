"""Values and names in bold in the last line, and whether what leads to them says what is asked."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker

SHARE = ("What is $\\frac{7}{9} - \\frac{1}{3}$?", r"\frac{4}{9}", "math")
WALK = ("She leaves at 8:10 and is back at 10:20. How many minutes is the walk?", "130", "number")
GARDEN = ("A garden is 9 m by 4 m. What is its perimeter, in meters?", "26", "number")
LAKE = ("On which continent is Lake Titicaca?", "South America", "math")
PAINTER = ('Who painted the picture "The Night Watch"?', "Rembrandt", "math")
TEACHER = ("Whom did Plato teach?", "Aristotle", "math")
POWER = ("Solve $5^{y} = \\frac{1}{125}$.", "-3", "number")
TWICE = ("If $2y + 3 = 11$, what is $2y$?", "4", "number")
ROOTS = ("Find the sum of all roots of $y^2 - 5y + 6 = 0$.", "3", "number")
SQUARE = ("What is the next square number after 49?", "64", "number")
TREE = (
    "A pole is 13 feet long and stands 5 feet from a tree. How high up the tree does it reach,"
    " in feet?",
    "12",
    "number",
)
DOG = (
    "A dog eats 2/5 of a bag of feed a day. How many bags does it eat in 30 days?",
    "12",
    "number",
)
SHELVES = ("Alf has 3 shelves of 8 pots and Bea has 9 pots. How many pots has Alf?", "24", "number")
RIVER = ("Which river flows through Linz?", "Danube", "math")
BIRTH = ("In which country was the teacher of Chopin born?", "France", "math")
SIEGE = ("In what year did the siege that began in 1565 end?", "1566", "number")
LEFT = ("Sue has 40 eggs and breaks 12. How many eggs are left?", "28", "number")
SOLVE = ("Solve for x: $3x + 1 = 19$.", "6", "number")
KITE = (
    "Sue's kite hangs on a string of 25 m, 24 m from a mast. How far up the mast does it rise?",
    "7",
    "number",
)
ODD = ("Can the sum of two odd numbers be odd? Answer yes or no.", "no", "text")
EVEN = ("Can the sum of two odd numbers be even? Answer yes or no.", "yes", "text")
TEN = ("Convert $1101_2$ to base 10.", "13", "number")
SIX = ("Write 15 in base 6.", "23", "math")
PLAIN = ("What is $9 + 4$?", "13", "number")
BINARY = ("What is $11_2 + 10_2$?", "101", "number")

RIGHT = [
    (SHARE, "7/9 − 3/9 = **4/9**"),
    (SHARE, r"$\frac{7}{9} - \frac{3}{9} =$ **4/9**"),
    (SHARE, "So 7/9 - 3/9 = **4/9**."),
    (WALK, "Total = 110 + 20 = **130 minutes** (that is, 2 hours 10 minutes)."),
    (WALK, "50 + 60 + 20 = **130** minutes"),
    (WALK, "50 min + 60 min + 20 min = **130 min**"),
    (WALK, "The walk is **130 minutes** (or 2 hours and 10 minutes)."),
    (GARDEN, "P = 2 × (9 + 4) = **26 m**"),
    (GARDEN, "Perimeter = 2(9 + 4) = 2 × 13 = **26 m**"),
    (GARDEN, "The perimeter is 9 + 4 + 9 + 4 = **26 meters** (2600 cm). 🌷"),
    (LAKE, "Both of its shores lie there.\nIt lies on the continent of **South America**."),
    (LAKE, "So Lake Titicaca is located in **South America**. 🌎"),
    (LAKE, "**Answer:** It is in **South America**."),
    (PAINTER, "It was painted by **Rembrandt**."),
    (PAINTER, "**Answer:** The picture was painted by **Rembrandt**."),
    (PAINTER, "Answer: It was painted by **Rembrandt** 🎨"),
    (POWER, "So $5^y = 5^{-3}$, and thus **y = −3**."),
    (POWER, "$5^{y} = 5^{-3}$, so **$y = -3$**"),
    (SQUARE, "So the next square number after 49 is **64**."),
    (TREE, "The pole reaches **12 ft** up the tree."),
    (TREE, "So it reaches **12** feet up the tree."),
    (DOG, "So the dog eats **12 bags** of feed in 30 days. 🐶"),
    (DOG, "Answer: 12 bags 🐕🦴"),
    (SHELVES, "So Alf has 3 shelves × 8 pots = **24 pots**."),
    (RIVER, "The river that flows through Linz is the **Danube**."),
    (BIRTH, "He was born in **France**."),
    (SIEGE, "The siege that began in 1565 ended in **1566**."),
    (LEFT, "Therefore, Sue has 40 - 12 = **28 eggs** left. 🥚"),
    (LEFT, "Eggs left = 40 − 12 = **28**"),
    (LEFT, "40 - 12 = **28** eggs"),
    (SOLVE, "Dividing by 3 gives **x = 6**."),
    (SOLVE, "So 3x = 18, which gives **$x = 6$**. ✅"),
    (KITE, "The kite rises **7 m** up the mast."),
    (ODD, "Answer: No. It is not possible."),
    (ODD, "Answer: No — it is not possible."),
    (SHELVES, "Alf has 3 × 8 = **24** pots"),
    (ODD, "**Final Answer:** No, it is not possible."),
    (ODD, "Answer: No, it is impossible."),
    (ODD, "Answer: No, it's not possible, because 1 + 1 is even."),
    (EVEN, "Answer: Yes, it is possible."),
    (EVEN, "Answer: Yes, 1 + 3 is not odd."),
    (TEN, r"\boxed{13_{10}}"),
    (TEN, "Answer: 13₁₀"),
    (TEN, r"\boxed{13_{\text{ten}}}"),
    (PLAIN, r"\boxed{13_{10}}"),
    (SIX, r"\boxed{23_6}"),
    (SIX, r"\boxed{23_{\text{six}}}"),
]
WRONG = [
    # Sums that are wrong, not at their end, or of something else.
    (SHARE, "7/9 − 2/9 = **4/9**"),
    (SHARE, "x − 2/9 = **4/9**"),
    (SHARE, "7/9 − 3/9 = **4/9** − 0"),
    (SHARE, "7/9 − 3/9 = **4/9** + 1/9"),
    (SHARE, "7/9 − 3/9 = **4/9** or 5/9"),
    (SHARE, "7/9 − 3/9 = **4/9**? No."),
    (SHARE, "- 7/9 − 3/9 = **4/9**"),
    (SHARE, "2. 7/9 − 3/9 = **4/9**"),
    (SHARE, "7/9 − 3/9 = **4/9** ❌"),
    (SHARE, "Perhaps 7/9 − 3/9 = **4/9** 🤔"),
    (SHARE, "7/9 − 3/9 = **4/9** 🤔"),
    (WALK, "Total = 110 + 20 = **130 minutes** (that is, 2 hours 20 minutes)."),
    (WALK, "Total = 110 + 20 = **130 minutes** (maybe 140)."),
    (WALK, "Total = 110 + 20 = **130 minutes** (without the 10 minutes of rest)."),
    (WALK, "Total = 110 + 20 = **130 minutes** (I think)."),
    (WALK, "Total = 110 + 20 = **130 hours**"),
    (WALK, "Rest = 110 + 20 = **130 minutes**"),
    (WALK, "110 + 20 = **130** minutes, and 20 more for the way back"),
    (GARDEN, "Area = 13 + 13 = **26**"),
    (GARDEN, "d = 13 + 13 = **26**"),
    (GARDEN, "P = 2 × (9 + 5) = **26**"),
    (GARDEN, "2P = 13 + 13 = **26**"),
    (SHELVES, "Bea has 3 × 8 = **24** pots"),
    (SHELVES, "Bea = 3 × 8 = **24**"),
    (LEFT, "Eggs broken = 40 − 12 = **28**"),
    (LEFT, "She breaks 40 − 12 = **28** eggs"),
    (LEFT, "40 − 12 = **28** eggs broken"),
    (LEFT, "First, 40 − 12 = **28**"),
    (LEFT, "Check: 40 − 12 = **28**"),
    (SOLVE, "If we divide by 3, **x = 6**."),
    (SOLVE, "So 3x = 18, but **x = 6** is extraneous."),
    (SOLVE, "3 + **x = 6**"),
    (SOLVE, "x + 6 = **6**"),
    (POWER, "y − 3 = **−3**"),
    (ROOTS, "y = 2 + 1 = **3**"),
    (KITE, "The mast rises **7 m** up the kite? No."),
    (KITE, "The kite falls **7 m** down the mast."),
    # Names that are led to by other words.
    (LAKE, "It lies far from **South America**."),
    (LAKE, "It lies in the north of **South America**? No, in Asia."),
    (LAKE, "It does not lie on the continent of **South America**."),
    (LAKE, "It lies to the east of **South America**."),
    (LAKE, "The Nile lies on the continent of **South America**."),
    (LAKE, "Answer: It was discovered before **South America**."),
    (LAKE, "Answer: It is not in **South America**."),
    (LAKE, "It probably lies on the continent of **South America**."),
    (LAKE, "It lies on the continent of **Africa**."),
    (LAKE, "It lies on the continent of **South America**, they say. I doubt it."),
    (PAINTER, "It was sold by **Rembrandt**."),
    (PAINTER, "It was painted for **Rembrandt**."),
    (PAINTER, "It was painted by a pupil of **Rembrandt**."),
    (PAINTER, "**Answer:** It was not painted by **Rembrandt**."),
    (PAINTER, "**Answer:** It was painted by **Rembrandt** or **Hals**."),
    (PAINTER, "**Answer:** It was painted by **Hals**."),
    (RIVER, "It is a river on the **Danube**."),
    (RIVER, "It flows into the **Danube**."),
    (BIRTH, "Chopin is buried in **France**."),
    (BIRTH, "The teacher of Chopin is in **France**."),
    (SIEGE, "The siege that began in 1565 began in **1566**."),
    (SIEGE, "The siege that began in 1564 ended in **1566**."),
    (TEACHER, "Plato was taught by **Aristotle**."),
    # Equations that are conditional, or of something else.
    (POWER, "If $5^y = 5^{-3}$, then **y = −3**."),
    (POWER, "We try whether it holds: **y = −3**"),
    (POWER, "Suppose that **y = −3**."),
    (POWER, "For $k = 1$ we get **y = −3**."),
    (POWER, "So **y = −3** + 1."),
    (POWER, "So **k = −3**."),
    (POWER, "So **y ≠ −3**."),
    (TWICE, "So $2y = 8$, and thus **y = 4**."),
    (ROOTS, "So $(y - 2)(y - 3) = 0$, and thus **y = 3**."),
    # Sentences of something else.
    (SQUARE, "The next square number after 50 is **64**."),
    (SQUARE, "The next cube after 49 is **64**."),
    (SQUARE, "The next square number after 49 is not **64**."),
    (SQUARE, "The next square number after 49 is about **64**."),
    (SQUARE, "So **64** comes after 49, and 81 is next."),
    (TREE, "The pole reaches **12 ft** down the tree."),
    (TREE, "The pole reaches up to **12 ft** up the tree."),
    (TREE, "The pole reaches **12 m** up the tree."),
    (TREE, "The tree reaches **12 ft** up the pole in 5 minutes."),
    (DOG, "So the dog eats **12 bags** of bones in 30 days."),
    (DOG, "So the dog eats **12 bags** of feed in 31 days."),
    (DOG, "So the cat eats **12 bags** of feed in 30 days."),
    (DOG, "So the dog eats **12 bags** of feed each day in 30 days."),
    (DOG, "Answer: 12 bags ❌"),
    # A clause that says the opposite, or takes it back.
    (EVEN, "Answer: Yes, it is not possible."),
    (EVEN, "Answer: Yes, it cannot be even."),
    (EVEN, "Answer: No, it is not possible."),
    (ODD, "Answer: No, it is not possible. Yes, it is."),
    (ODD, "Answer: No, that is not right, it is possible."),
    (ODD, "Answer: No, it is not impossible."),
    (ODD, "Answer: No, it is not certain. I made a mistake."),
    (ODD, "Answer: No, I am not sure."),
    (ODD, "Answer: Yes, it is possible."),
    # Numerals of another base.
    (TEN, r"\boxed{13_5}"),
    (TEN, r"\boxed{13_{2}}"),
    (TEN, r"\boxed{14_{10}}"),
    (PLAIN, r"\boxed{13_{8}}"),
    (SIX, r"\boxed{23_{10}}"),
    (SIX, r"\boxed{15_{10}}"),
    (BINARY, r"\boxed{101_{10}}"),
]


@pytest.mark.parametrize(("asked", "response"), RIGHT)
def test_what_is_led_to_is_the_answer(
    checker: Checker, asked: tuple[str, str, str], response: str
) -> None:
    assert checker.check(f"We work it out.\n\n{response}", Problem("b", *asked)).correct


@pytest.mark.parametrize(("asked", "response"), WRONG)
def test_what_may_be_another_value_or_name_is_no_answer(
    checker: Checker, asked: tuple[str, str, str], response: str
) -> None:
    assert not checker.check(f"We work it out.\n\n{response}", Problem("b", *asked)).correct
