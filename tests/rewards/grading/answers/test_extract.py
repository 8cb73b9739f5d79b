"""Where an answer is found, and that no text can make the search slow."""

import time

import pytest

from coterie.rewards.grading.answers import boxes, candidates, extract


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"So $\boxed{\frac{1}{2}}$.", r"\frac{1}{2}"), (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed{a \boxed{b} c}", r"a \boxed{b} c"),  # outermost only
        (r"\boxed{\left\{1, 2\right\}}", r"\left\{1, 2\right\}"),  # escaped braces do not count
        (r"\boxed{\{1, 2}", r"\{1, 2"), (r"{ \boxed{3}", "3"), ("work\n#### 1,080", "1,080"),
        ("#### Answer: 7", "7"), ("Final answer: 5", "5"), ("**Final answer:** 5", "5"),
        ("**Final Answer**: **5**", "5"), ("Answer = 5", "5"),
        ("Final Answer: The final answer is $5$. I hope it is correct.", "$5$."),
        ("<answer>The answer is 5.</answer>", "5."), ("answer is 5", "5"),
        # An exclamation mark ends a sentence, or it is a factorial.
        ("Answer: 5!", "5"), ("Final answer:\n5 apples!", "5 apples"), ("#### 5!!", "5"),
        ("The answer is $5$!", "$5$"), (r"The answer is \(5\)!", r"\(5\)"),
        ("The answer is $5!$", "$5!$"), ("Answer: n!", "n!"), ("Answer: 2 n!", "2 n!"),
        ("Answer: (n-1)!", "(n-1)!"), (r"\boxed{5!}", "5!"), ("The answer is 5", "5"),
        ("Final answer:\n\n42", "42"), ("<final_answer> 7 </final_answer>", "7"),
        ("<final-answer>7</final-answer>", "7"), ("<ANSWER>7</ANSWER>", "7"),
        ("<strategy_2_outcome>7</strategy_2_outcome>", "7"),
        ("<result>6</result>\n<final_answer>7</final_answer>", "7"),
        # The candidate that starts last wins, whatever its kind.
        (r"<final_answer>7</final_answer> \boxed{8}", "8"),
        (r"\boxed{8} <final_answer>7</final_answer>", "7"), ("#### 9\nFinal answer: 8", "8"),
        (r"Final answer: \boxed{5}", "5"),
        # Read after the thinking.
        (r"<think>\boxed{1}</think> \boxed{2}", "2"), (r"[THINK]\boxed{1}[/THINK] \boxed{2}", "2"),
        (r"\boxed{2}</think>", None), (r"<think>\boxed{1}", None),
        # As models write it.
        ("So the answer is 7.", "7."), ("Therefore, the answer is 7", "7"),
        ("Thus, the final answer is: 7", "7"), ("The correct answer is 7.", "7."),
        ("The correct option is B) 14", "B) 14"), ("The answer to this problem is 7.", "7."),
        ("The answer is therefore 7.", "7."), ("5 + 2 = 7. So the answer is 7.", "7."),
        ("3. So, the answer is 7.", "7."), ("It is 7 - 7, so the final answer is 0.", "0."),
        ("### Final Answer\n7", "7"), ("### Answer\n\n**7**", "**7**"),
        ("**Final Answer**\n\\[\n7\n\\]", "7"), ("#### Final Answer\n7", "7"), ("- Answer: 7", "7"),
        ("* Answer: 7", "7"), ("2. **Answer:** 7", "7"), ("Answer: `7`", "`7`"), (r"\boxed 7", "7"),
        (r"$\boxed7$.", "7"), (r"\boxed B", "B"), ("Answer：7", "7"),
        ("### ✅ Final Answer:\n\n**7**", "**7**"), ("✅ **Answer: 7**", "7"),
        ("**Answer: 7 rolls** 🎉", "7 rolls"), ("Answer: 7 ❌", "7 ❌"),
        # Bold ends where it began.
        ("Answer: **14** pens", "14 pens"), ("The answer is **14** pens.", "14 pens."),
        ("**Answer: 14** pens", "14 pens"), ("Answer: __14__ pens", "14 pens"),
        ("Answer: *14* pens", "14 pens"), ("* Answer: 2**14", "2**14"), ("Answer: 2**14", "2**14"),
        ("* Answer: 2 * 7", "2 * 7"), ("So it is. The answer is **14** pens.", "14 pens."),
        # Other words for it, and other places.
        ("My answer is 14.", "14."), ("Hence, our final answer is 14", "14"), ("Ans: 14", "14"),
        ("Ans. = 14", "14"), ("Final Answer\n\n14", "14"), ("Final answer\n14", "14"),
        ("Answer:\n```text\n14\n```", "14"), ("I had 13 first. Final answer: 14", "14"),
        ("答案是14", "14"), ("正确答案：14", "14"), ("Respuesta final: 14", "14"),
        ("La réponse est 14.", "14."), ("Antwort: 14", "14"), ("Ответ: 14", "14"),
        # After a clause, and in other words; a condition leads to the answer of another question.
        ("Based on the above, the answer is 14.", "14."), ("Overall, the answer is 14.", "14."),
        ("Since 4.5 + 9.5 = 14, the final answer is $14$.", "$14$."),
        ("But one broke, so the answer is 14.", "14."), ("Step 3: The answer is 14.", "14."),
        ("We add. As a result, the answer is **14**.", "14."), ("Final result: 14", "14"),
        ("This means that the answer is 14.", "14."), ("We find that the answer is 14.", "14."),
        ("The answer should be 14.", "14."), ("So the correct answer must be 14.", "14."),
        ("The solution is (1, 4).", "(1, 4)."), ("Answer → 14", "14"), ("Answer -> 14", "14"),
        ("The required answer is 14.", "14."), ("The true answer is 14.", "14."),
        ("### Revised Answer\n14", "14"), ("The answer to the first problem is 14.", "14."),
        ("\\boxed{14}\n\nIf he sold one, the answer would be 13.", "14"),
        ("\\boxed{14}\n\nFor n = 1, the answer is 3.", "14"),
        ("\\boxed{14}\n\nWithout it, the answer is 13.", "14"),
        ("\\boxed{14}\nHe sells one. Then the answer would be 13.", "14"),
        ("\\boxed{14}\n\nThe answer should be whole.", "14"),
        ("\\boxed{14}\n\nAs we see, the answer is positive.", "14"),
        ("答案是：14", "14"), ("因此，答案是14。", "14。"), ("所以答案为 14", "14"),
        ("Donc, la réponse est 14.", "14."), ("Die Antwort lautet 14.", "14."),
        ('{"steps": [1, 2], "answer": 14}', "14"), (r'{"final_answer": "\\frac12"}', r"\frac12"),
        (r"\boxed{\text{Answer: 14}}", r"\text{14}"), ("A: 14", "14"), ("7 + 7\nA: 14", "14"),
        ("A: 14\nB: 15", None),
        # Another question is not this one's.
        ("#### 14\n\nQuestion: What is 3 + 4?\n#### 7", "14"), ("14\nQ: 3 + 4?\nA: 7", "14"),
        ("Question: 7 + 7?\nAnswer: 14", "14"), ("\\boxed{14}\n### Problem 2\n\\boxed{7}", "14"),
        # Boxes side by side are one answer.
        (r"\boxed{4} and \boxed{9}", "4, 9"), (r"$\boxed{4}$, $\boxed{9}$.", "4, 9"),
        (r"\boxed{4} \quad \text{or} \quad \boxed{9}", "4, 9"), (r"\boxed{4}, so \boxed{9}", "9"),
        (r"x = \boxed{4}, y = \boxed{9}", "x =4, y =9"), (r"\boxed{4}\n\n\boxed{9}", "9"),
        (r"\boxed{9} or \boxed{9}", "9"), (r"\boxed{4}, \boxed{6}, and \boxed{9}", "4, 6, 9"),
        # A box whose value is denied, and one that is a part of a value.
        (r"$x \neq \boxed{14}$", None), (r"It cannot be \boxed{14}.", None),
        (r"\boxed{14} is wrong.", None), (r"Not 13 but \boxed{14}", "14"),
        (r"$x=-\boxed{14}$", "-14"), ("- \\boxed{14}", "14"), (r"20 - \boxed{14}", "14"),
        (r"$2\boxed{14}$", r"2 \times (14)"), (r"\boxed{14}\times 10^3", r"14\times 10^3"),
        (r"\boxed{x+1}^2", "(x+1)^2"), (r"\boxed{14}/5", "14/5"), (r"\boxed{14}^\circ", "14"),
        (r"7 + 7 = \boxed{14} dollars", "14"), (r"Step 2: \boxed{14}", "14"),
        (r"\boxed{14} or 15", "14 or 15"), (r"$\boxed{14}$ (or about $15$)", "14 or about $15"),
        (r"\boxed{14} \text{ or } 15", "14 or 15"), (r"\boxed{14}? No, 15.", None),
        (r"$\boxed{14}$ million people", "14 million"), (r"\boxed{14} dozen eggs", "14 dozen"),
        (r"\boxed{14}\%", r"14\%"), (r"\boxed{14} percent of it", "14 percent"),
        (r"\boxed{14} or so they say", "14"), ("\\boxed{14}\n\nMillion is a word.", "14"),
        (r"\fbox{14}", "14"), (r"$\fbox{$14$}$", "$14$"), (r"\boxed{14,}", "14"),
        ("Answer: 14,", "14,"),
        (r"\boxed{14}. It is within \boxed{}.", "14"), ("Answer: 14\n\\boxed{}", "14"),
        # Bold in the last line, where nothing else states an answer.
        ("2 * 7 = 14\nSo he sells **14** pens a day.", "14 pens a day"),
        ("He has **$14** left.", "$14 left"),
        ("**He has 14 pens.**", "14 pens"), ("He has **14** of 20 pens.", None),
        ("He has **14** pens.\nThat is all.", None), ("It is not **14**.", None),
        ("Is it **14**?", None), ("Step **14**", None), ("**14**: add.", None),
        ("The answer is Clara. She was first.", "Clara"),
        ("So it is. The answer is twenty-six pens.", "twenty-six pens."),
        ("So it is. The answer is ２.", "２."),
        (r"\boxed{14}. The answer is two of them.", "14"),
        ("**14** or **15**", None), ("About **14** pens", None),
        # Set as text within a formula.
        ("**Final Answer:**\n\n$$\n\\text{ANSWER: } 36\n$$", "36"),
        (r"\text{Answer: }36", "36"), (r"$\textbf{Answer: 36}$", "36 $"),
        ("So\n" + r"\[ \text{The final answer is } 36", "36"),
        (r"\text{Answer: 36 or 37}", "36 or 37"), (r"so \text{Answer: 36} it is", None),
        (r"\text{Answer: } 36" + "\n" + r"\boxed{37}", "37"),
        # No statement, or none that can be read without a guess.
        (r"\boxed{7}. The answer is clearly right.", "7"), (r"\boxed 7^2", None),
        (r"\boxed 7x", None), ("Is this final?\n7", None), ("An answer is near.", None),
        ("Is the answer 7?", None),
        # Nothing stated: only a bare answer counts.
        ("42", "42"), ("  -3.5 ", "-3.5"), ("$18", "$18"), (r"$\frac{1}{2}$", r"$\frac{1}{2}$"),
        ("B", "B"), ("(B).", "(B)."), ("[1, 2]", "[1, 2]"), ("b", None), ("so 3 and then 4", None),
        ("The total is 42", None), ("3 4 5 hello", None), ("A force acts", None), ("[1][2]", None),
        ("", None),
        ("<answer>7", None),  # never closed
        ("<answer>7</result>", None), (r"\boxed{7", None), (r"\boxed{}", None), ("####", None),
        ("##### 5 headings", None),
        ("No answer: 5 here", None),  # not at the start of the line
    ],
)  # fmt: skip
def test_answer_is_read_where_it_is_stated(response: str, answer: str | None) -> None:
    assert extract(response) == answer


def test_boxes_are_given_by_their_places() -> None:
    text = r"a \boxed{1} b \boxed{\boxed{2}}"
    assert [text[start:end] for _, start, end in boxes(text)] == ["1", r"\boxed{2}"]
    assert [start for start, _, _ in boxes(text)] == [2, 14]


def test_candidates_come_in_the_order_of_their_markers() -> None:
    text = "<answer>1</answer>\n#### 2\n" + r"\boxed{3}"
    assert [candidate.text for candidate in candidates(text)] == ["1", "2", "3"]


MILLION = 10**6
MANY = 10**5
HOSTILE = {
    "backslashes": "\\" * MILLION, "braces": "{" * MANY, "closing braces": "}" * MANY,
    "boxes": r"\boxed{" * MANY, "closed boxes": r"\boxed{" * MANY + "}" * MANY,
    "many boxes": r"\boxed{1}" * MANY, "tags": "<answer>" * MANY,
    "closed tags": "<answer>1</answer>" * MANY, "closing tags": "</answer>" * MANY,
    "thoughts": "<think>" * MANY, "answers": "answer: " * MANY, "answer lines": "answer:\n" * MANY,
    "hashes": "#" * MILLION, "hash lines": "####\n" * MANY, "spaces": " " * MILLION,
    "lines": "\n" * MILLION, "stars": "*" * MILLION, "the": "the " * MANY, "dots": "." * MILLION,
    "digits": "9" * MILLION, "digits with commas": "9,999" * MANY, "text": r"\text{" * MANY,
    "html": "<div class='x'><b>1</b></div>" * MANY, "tag that never ends": "<answer " * MANY,
    "nulls": "\x00" * MILLION, "surrogates": "\ud800" * MANY, "carets": "9^{" * MANY,
    "brackets": "(" * MANY + "[" * MANY, "set answers": r"\text{answer: " * MANY,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_garbage_is_read_in_linear_time(name: str) -> None:
    text = HOSTILE[name]
    for response in (text, f"Final answer: {text}", rf"\boxed{{{text}}}"):
        start = time.process_time()
        extract(response)
        # Quadratic would be minutes; this is some fifty times what linear takes.
        assert time.process_time() - start < 5.0
