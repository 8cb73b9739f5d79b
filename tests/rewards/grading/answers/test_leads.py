"""Values and names in bold in the last line, and whether what leads to them says what is asked."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker
from tests.rewards.grading.answers.tables import cases

LAST_LINES = r"""
What is $\frac{7}{9} - \frac{1}{3}$? => \frac{4}{9}
+ 7/9 − 3/9 = **4/9** | $\frac{7}{9} - \frac{3}{9} =$ **4/9** | So 7/9 - 3/9 = **4/9**.
- 7/9 − 2/9 = **4/9** | x − 2/9 = **4/9** | 7/9 − 3/9 = **4/9** − 0 | 7/9 − 3/9 = **4/9** + 1/9
- 7/9 − 3/9 = **4/9** or 5/9 | 7/9 − 3/9 = **4/9**? No. | - 7/9 − 3/9 = **4/9**
- 2. 7/9 − 3/9 = **4/9** | 7/9 − 3/9 = **4/9** ❌ | Perhaps 7/9 − 3/9 = **4/9** 🤔
- 7/9 − 3/9 = **4/9** 🤔
She leaves at 8:10 and is back at 10:20. How many minutes is the walk? => 130
+ Total = 110 + 20 = **130 minutes** (that is, 2 hours 10 minutes). | 50 + 60 + 20 = **130** minutes
+ 50 min + 60 min + 20 min = **130 min** | The walk is **130 minutes** (or 2 hours and 10 minutes).
- Total = 110 + 20 = **130 minutes** (that is, 2 hours 20 minutes).
- Total = 110 + 20 = **130 minutes** (maybe 140).
- Total = 110 + 20 = **130 minutes** (without the 10 minutes of rest).
- Total = 110 + 20 = **130 minutes** (I think). | Total = 110 + 20 = **130 hours**
- Rest = 110 + 20 = **130 minutes** | 110 + 20 = **130** minutes, and 20 more for the way back
A garden is 9 m by 4 m. What is its perimeter, in meters? => 26
+ P = 2 × (9 + 4) = **26 m** | Perimeter = 2(9 + 4) = 2 × 13 = **26 m**
+ The perimeter is 9 + 4 + 9 + 4 = **26 meters** (2600 cm). 🌷
- Area = 13 + 13 = **26** | d = 13 + 13 = **26** | P = 2 × (9 + 5) = **26** | 2P = 13 + 13 = **26**
On which continent is Lake Titicaca? => South America
+ It lies on the continent of **South America**.
+ So Lake Titicaca is located in **South America**. 🌎 | **Answer:** It is in **South America**.
- It lies far from **South America**. | It lies in the north of **South America**? No, in Asia.
- It does not lie on the continent of **South America**. | It lies to the east of **South America**.
- The Nile lies on the continent of **South America**.
- Answer: It was discovered before **South America**. | Answer: It is not in **South America**.
- **South America**, Africa | The continent: **South America**, Africa
- It probably lies on the continent of **South America**. | It lies on the continent of **Africa**.
- It lies on the continent of **South America**, they say. I doubt it.
Who painted the picture "The Night Watch"? => Rembrandt
+ It was painted by **Rembrandt**. | **Answer:** The picture was painted by **Rembrandt**.
+ Answer: It was painted by **Rembrandt** 🎨
- It was sold by **Rembrandt**. | It was painted for **Rembrandt**.
- It was painted by a pupil of **Rembrandt**. | **Answer:** It was not painted by **Rembrandt**.
- **Answer:** It was painted by **Rembrandt** or **Hals**. | **Answer:** It was painted by **Hals**.
Solve $5^{y} = \frac{1}{125}$. => -3
+ So $5^y = 5^{-3}$, and thus **y = −3**. | $5^{y} = 5^{-3}$, so **$y = -3$**
- y − 3 = **−3** | If $5^y = 5^{-3}$, then **y = −3**. | We try whether it holds: **y = −3**
- Suppose that **y = −3**. | For $k = 1$ we get **y = −3**. | So **y = −3** + 1. | So **k = −3**.
- So **y ≠ −3**.
What is the next square number after 49? => 64
+ So the next square number after 49 is **64**.
- The next square number after 50 is **64**. | The next cube after 49 is **64**.
- The next square number after 49 is not **64**. | The next square number after 49 is about **64**.
- So **64** comes after 49, and 81 is next.
A pole is 13 feet long and stands 5 feet from a tree. How high up the tree does it reach, in feet?
=> 12
+ The pole reaches **12 ft** up the tree. | So it reaches **12** feet up the tree.
- The pole reaches **12 ft** down the tree. | The pole reaches up to **12 ft** up the tree.
- The pole reaches **12 m** up the tree. | The tree reaches **12 ft** up the pole in 5 minutes.
A dog eats 2/5 of a bag of feed a day. How many bags does it eat in 30 days? => 12
+ So the dog eats **12 bags** of feed in 30 days. 🐶 | Answer: 12 bags 🐕🦴
- So the dog eats **12 bags** of bones in 30 days. | So the dog eats **12 bags** of feed in 31 days.
- So the cat eats **12 bags** of feed in 30 days.
- So the dog eats **12 bags** of feed each day in 30 days. | Answer: 12 bags ❌
Alf has 3 shelves of 8 pots and Bea has 9 pots. How many pots has Alf? => 24
+ So Alf has 3 shelves × 8 pots = **24 pots**. | Alf has 3 × 8 = **24** pots
- Bea has 3 × 8 = **24** pots | Bea = 3 × 8 = **24**
Which river flows through Linz? => Danube
+ The river that flows through Linz is the **Danube**.
- It is a river on the **Danube**. | It flows into the **Danube**.
In which country was the teacher of Chopin born? => France
+ He was born in **France**.
- Chopin is buried in **France**. | The teacher of Chopin is in **France**.
In what year did the siege that began in 1565 end? => 1566
+ The siege that began in 1565 ended in **1566**.
- The siege that began in 1565 began in **1566**. | The siege that began in 1564 ended in **1566**.
Sue has 40 eggs and breaks 12. How many eggs are left? => 28
+ Therefore, Sue has 40 - 12 = **28 eggs** left. 🥚 | Eggs left = 40 − 12 = **28**
+ 40 - 12 = **28** eggs
- Eggs broken = 40 − 12 = **28** | She breaks 40 − 12 = **28** eggs | 40 − 12 = **28** eggs broken
- First, 40 − 12 = **28** | Check: 40 − 12 = **28**
Solve for x: $3x + 1 = 19$. => 6
+ Dividing by 3 gives **x = 6**. | So 3x = 18, which gives **$x = 6$**. ✅
- If we divide by 3, **x = 6**. | So 3x = 18, but **x = 6** is extraneous. | 3 + **x = 6**
- x + 6 = **6**
Sue's kite hangs on a string of 25 m, 24 m from a mast. How far up the mast does it rise? => 7
+ The kite rises **7 m** up the mast.
- The mast rises **7 m** up the kite? No. | The kite falls **7 m** down the mast.
text: Can the sum of two odd numbers be odd? Answer yes or no. => no
+ Answer: No. It is not possible. | Answer: No — it is not possible.
+ **Final Answer:** No, it is not possible. | Answer: No, it is impossible.
+ Answer: No, it's not possible, because 1 + 1 is even.
- Answer: No, it is not possible. Yes, it is. | Answer: No, that is not right, it is possible.
- Answer: No, it is not impossible. | Answer: No, it is not certain. I made a mistake.
- Answer: No, I am not sure. | Answer: Yes, it is possible.
text: Can the sum of two odd numbers be even? Answer yes or no. => yes
+ Answer: Yes, it is possible. | Answer: Yes, 1 + 3 is not odd.
- Answer: Yes, it is not possible. | Answer: Yes, it cannot be even.
- Answer: No, it is not possible.
Convert $1101_2$ to base 10. => 13
+ \boxed{13_{10}} | Answer: 13₁₀ | \boxed{13_{\text{ten}}}
- \boxed{13_5} | \boxed{13_{2}} | \boxed{14_{10}}
What is $9 + 4$? => 13
+ \boxed{13_{10}}
- \boxed{13_{8}}
math: Write 15 in base 6. => 23
+ \boxed{23_6} | \boxed{23_{\text{six}}}
- \boxed{23_{10}} | \boxed{15_{10}}
Find the sum of all roots of $y^2 - 5y + 6 = 0$. => 3
- y = 2 + 1 = **3** | So $(y - 2)(y - 3) = 0$, and thus **y = 3**.
Whom did Plato teach? => Aristotle
- Plato was taught by **Aristotle**.
If $2y + 3 = 11$, what is $2y$? => 4
- So $2y = 8$, and thus **y = 4**.
What is $11_2 + 10_2$? => 101
- \boxed{101_{10}}
Mia baked 95 scones. She sold 70 of them at $2 each and her brother Leo ate 5. How many scones are
left? => 70
- So she sold **70** scones. | Therefore, Mia sold **70** in total.
"""


@pytest.mark.parametrize(("problem", "line", "right"), cases(LAST_LINES))
def test_what_is_led_to_is_the_answer(
    checker: Checker, problem: Problem, line: str, right: bool
) -> None:
    assert checker.check(f"We work it out.\n\n{line}", problem).correct == right
