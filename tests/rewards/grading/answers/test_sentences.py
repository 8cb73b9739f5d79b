"""A marked answer that is a sentence, an equation, or a value with a remark."""

from dataclasses import replace

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker
from tests.rewards.grading.answers.tables import cases

SENTENCES = r"""
Nora had 30 muffins and baked 24 more. Her brother Tim ate 6. How many muffins does Nora have in
total? => 48
+ Nora has a total of 48 muffins. | Nora will have **48** muffins in total
+ In total, Nora has **48 muffins**.
- Nora does not have a total of 48 muffins. | Tim has a total of 48 muffins.
- Nora has about 48 muffins in total. | Nora has at least 48 muffins in total.
- Nora has between **48** and 50 muffins. | Nora has a total of 48 boxes of muffins.
- Nora has a total of 48 or more muffins. | Nora ate a total of 48 muffins, not counting hers.
- Nora has a total of 48 dozen muffins. | Nora has **48** muffins or **54**.
- A total of **48** muffins is wrong. | Nora has a total of 48 muffins? No.
- Nora has twice 48 muffins in total | Nora has 48 more muffins than Tim
Omar gets $14 for 2 hours of tutoring. How much would he earn for 9 hours of tutoring? => 63
+ Omar would earn **$63** for 9 hours of tutoring. | He would earn $63.
- Omar would earn **$63** per hour of tutoring. | Omar would not earn **$63** for 9 hours.
- Omar would earn **63 euros** for 9 hours of tutoring.
- Omar would earn $63 for 8 hours of tutoring. | Omar would earn less than **$63** for 9 hours.
- Omar would owe **$63** for 9 hours of tutoring.
Ida read 21 pages on Monday and 13 on Sunday. How many more pages did Ida read on Monday than on
Sunday? => 8
+ **8 pages** more on Monday than on Sunday | Ida read **8** more pages on Monday than on Sunday.
+ The answer is 8 more pages on Monday than on Sunday.
- **8 pages** fewer on Monday than on Sunday | **8 pages** more on Sunday than on Monday
- **8 hours** more on Monday than on Sunday | **8 times** more on Monday than on Sunday
- more than **8** pages on Monday | 8 more on Sunday | Ida read 8 more pages on Sunday.
- **8** or **9** more on Monday than on Sunday | **8%** more on Monday than on Sunday
A pear costs 3 dollars and a melon 11. How much less does the pear cost than the melon? => 8
+ **$8** less for the pear than for the melon
- **$8** more for the pear than for the melon | **$8** less for the melon than for the pear
A quiz has 30 questions; Lee skipped none. He scored 84. How many questions did Lee answer
correctly? => 22
+ The answer is \(22\) questions answered correctly (and 8 incorrectly).
- The answer is \(22\) questions answered incorrectly.
- The answer is \(22\) questions answered incorrectly (and 8 correctly). | 22 (and 8)
- 22 questions (and 8 more questions) | 22 (or 23) | 22 (maybe 23) | 22 (wrong) | 22 (23 questions)
- 22 (not) | 22 (thousands) | 22 (twenty-three) | 22 (approximately)
A bag holds pens and rulers. Each ruler costs $2. How many pens and rulers are in the bag? => 9
+ 9 (5 pens and 4 rulers) | **9** (2 pens, 3 pencils and 4 rulers)
- 9 (5 pens and 5 rulers) | 9 (5 pens or 4 rulers) | 9 pens (and 4 rulers) | 9 (5 and 4)
Jo has 3 bags for $120 each. How much do all the bags cost? => 360
+ $360.00 (three hundred sixty dollars) | $360 (three hundred and sixty)
- $360.00 (three hundred seventy dollars) | $360.00 (three hundred sixty euros)
- $360 (three hundred sixty thousand dollars)
Omar gets $14 for 2 hours of tutoring. How much would he earn for 9 hours of tutoring? => 9
- Omar would earn **$63** for 9 hours of tutoring.
Mia baked 95 scones. She sold 70 of them at $2 each and her brother Leo ate 5. How many scones are
left? => 20
+ She has 20 scones left. | There are **20** scones left | 20 scones left
+ The number of scones left is 20 | 20 scones remain | Mia is left with 20 scones.
+ In the end, 20 scones are left. | So 20 scones are left
- Leo has 20 scones left | Her brother has 20 scones left | 20 scones unsold | She needs 20
- Half of the scones, 20, are left | 20 scones or so are left
Ben has 12 cards and Eva has 5. How many more cards does Ben have than Eva? => 7
+ Ben has 7 more cards | Ben has **7** more cards than Eva. | The difference is 7 cards | It is 7
+ 7 more
- Ben has 7 cards | Eva has 7 more cards than Ben | Ben has 7 fewer cards | Eva has 7 more cards
- 7 more for Eva
A coat costs $60. It is sold at a discount of 25%. What is the sale price of the coat? => 45
+ The sale price is **$45**. | The sale price of the coat is $45 | The price is $45
+ The final price is $45
Lena wants to paint her fence. Paint costs $30 a can and she needs 8 cans of it. How much will the
paint cost her? => 240
+ It will cost Lena **$240** to paint the fence. | The paint will cost **$240**
+ The total cost of the paint is **$240.00**. | Lena will pay $240 for the paint
- Lena will earn $240 | It will cost $240 to paint the house | The fence costs $240
- The brush will cost her $240 | The cost is less than $240
A box holds 12 red and 15 blue pens. What fraction of the pens are blue? => \frac{5}{9}
+ $\frac59$ of the pens are blue. | 5/9 of the pens are blue
+ The fraction of blue pens is $\frac59$. | The fraction is **5/9**
- $\frac59$ of the pens are red | The fraction of red pens is $\frac59$.
- Not $\frac59$ of the pens are blue | $\frac59$ of the pens are not blue
- less than $\frac59$ of the pens are blue
A crate holds 12 jars. What is the least number of crates for 80 jars? => 7
+ 7 crates (six crates would not be enough) | 7 crates (6 crates hold only 72 jars)
+ 7 (six would be too few) | The least number of crates is 7. | 7 crates are needed
- 7 crates (7 crates would not be enough) | 7 crates (8 would be needed)
- 7 crates (8 crates are enough) | She needs at least 7 crates | 7 crates (or 8)
- 7 crates would not be enough
Find the slope of the line $3x+4y=8$. => -\frac{3}{4}
+ The slope is $-0.75 = -\frac34$ | The slope of the line is $-\frac{3}{4}$.
+ The slope is $m = -\frac34$
- The slope is $-0.75 = -\frac32$. | The intercept is $-\frac34$
- The slope of the perpendicular line is $-\frac34$ | The $y$-intercept is $-\frac34$
A fir is twice as high as a birch of 17 feet. How tall is the fir? => 34
+ The height of the fir is 34 feet. | The fir is 34 feet tall
Rita fills 5 jars with 24 plums each. If Udo eats 30 plums, how many plums can Rita sell? => 90
+ Rita can sell 90 plums.
Ivo and Pia put 9 and 12 coins in a jar. If they share them, how many does each get? => 10.5
+ Each gets 10.5 coins
Max writes 3 letters a day for an hour. How many hours does he spend writing a week? => 7
+ Max spends **7 hours** a week writing letters.
list: The numbers have sum 16 and product 60. Find the two numbers. => 6, 10
+ The two numbers are 10 and 6.
Mia baked 95 scones. She sold 70 of them at $2 each and her brother Leo ate 5. How many scones are
left? => 90
- Mia has a total of 90 scones
A snail crawls 8 inches in 4 hours. How many inches will it crawl in 13 hours? => 2
- It crawls 2 inches an hour | 2 inches per hour
Ivo and Pia put 9 and 12 coins in a jar. If they share them, how many does each get? => 21
- They have a total of 21 coins | The total number of coins is 21
Ivo and Pia put 9 and 12 coins in a jar. If they share them, how many does each get? => 12
- Pia put 12 coins in a jar
Rita fills 5 jars with 24 plums each. If Udo eats 30 plums, how many plums can Rita sell? => 30
- Udo eats 30 plums | 30 plums eaten | Udo can sell 30 plums
Rita fills 5 jars with 24 plums each. If Udo eats 30 plums, how many plums can Rita sell? => 24
- 24 plums per jar | Each jar holds 24 plums
A fir is twice as high as a birch of 17 feet. How tall is the fir? => 17
- The height of the birch is 17 feet
Mia baked 95 scones. She sold 70 of them at $2 each and her brother Leo ate 5. How many scones are
left? => 70
- She sold 70 scones | Mia sold **70** scones. | The number of scones sold is 70
- 70 scones were sold | 70 scones sold | 70 scones eaten | 70 scones gone
Mia baked 95 scones. She sold 70 of them at $2 each and her brother Leo ate 5. How many scones are
left? => 95
- She baked 95 | She had 95 scones | There were 95 scones | 95 scones baked
- Mia started with 95 scones
Mia baked 95 scones. She sold 70 of them at $2 each and her brother Leo ate 5. How many scones are
left? => 140
- She earned $140
Ben has 12 cards and Eva has 5. How many more cards does Ben have than Eva? => 5
- Eva has 5 cards
A coat costs $60. It is sold at a discount of 25%. What is the sale price of the coat? => 15
- The discount is **$15** | The discount is $15. | The savings are $15 | You save $15 | $15 off
A coat costs $60. It is sold at a discount of 25%. What is the sale price of the coat? => 60
- The original price is $60 | The coat costs $60
Lena wants to paint her fence. Paint costs $30 a can and she needs 8 cans of it. How much will the
paint cost her? => 30
- Paint costs $30 a can | Each can costs $30
math: Let $p/q$ be it in lowest terms. Find $p+q$. => 17
+ $p+q=17$
math: Let $p/q$ be it. Find $p+q$. => 17
+ $p + q = 8 + 9 = 17$
- $2p+q=17$ | $p-q=17$ | $pq=17$ | $p+q=8+8=17$ | $p+q=17$ or $18$ | $p+q=8+9$
What is $\tan 60^\circ$? => \sqrt3
+ $\tan 60^\circ = \sqrt{3}$
Find $\sin 30^\circ$. => \frac12
+ \boxed{\sin 30^\circ = \frac12}
math: Given $x+y=5$ and $x=4$, find $x-y$. => 3
+ $x-y=3$
math: Given $x+y=5$ and $x=4$, find $x-y$. => 5
- $x+y=5$
What is $\tan 60^\circ$? => \sqrt{3}
- $\tan 30^\circ = \sqrt{3}$ | $2\tan 60^\circ = \sqrt{3}$
math: Find $x$ if $2x+1=9$. => 9
- $2x+1=9$
math: Find $p+q$. => 17
- $p+q=-17$
math: Let $pq=9$ and $p>q$. What is $pq$? => 9
- $pq=9$
text: Doors are red or green. What colour is door 2? => green
+ Door 2 is green. | The answer is green
- Door 1 is green. | Door 2 is not green. | Door 2 is red. | Door 2 was green.
- Door 2 is green or red. | If door 2 is green. | Door 2 is green? No.
Eve > Ben > Cara in height. Who is the second tallest? => Ben
+ Ben is the second tallest. | Ben
- Eve is the second tallest. | Ben is the tallest. | Ben is not the second tallest.
Yuki is 4 years older than Mia. How old is Yuki? => 30
+ \boxed{\text{Yuki is } 30 \text{ years old}}
- \boxed{\text{Mia is } 30 \text{ years}}
Lea has 5 plums. If she buys another 4, how many cakes can she bake? => 3
+ 3 cakes | She can bake 3 cakes.
- 3 and 4 | 3, 4 | 3 to 4 | 3; 4 | 3, that is, 4 | 3 to 4 cakes
"""


@pytest.mark.parametrize(("problem", "answer", "right"), cases(SENTENCES))
def test_a_sentence_states_what_the_question_asks_for(
    problem: Problem, answer: str, right: bool, checker: Checker
) -> None:
    for kind in ("number", "math") if problem.kind == "number" else (problem.kind,):
        asked = replace(problem, kind=kind)
        assert checker.check(f"Answer: {answer}", asked).correct == right, kind
