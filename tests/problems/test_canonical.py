import time

import pytest

from coterie.datatypes import Problem
from coterie.problems.canonical import canonical, problem_key


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("What is  7 + 8?", "what is 7+8 ?"),
        ("Pay $1,234.50 now", "pay 1234.5 now"),
        (r"Pay \$10,\!080", "Pay 10080"),
        ("a 10{,}080 b", "a 10,080 b"),
        (r"$\left( \dfrac{1}{2} \right)$", r"(\frac{1}{2})"),
        (r"\(x\,+\;y\)", "$x + y$"),
        ("ﬁnd x²", "find x^2"),
        ("3 − 2 × 4", r"3 - 2 \times 4"),
        ("Ann’s “pen”", 'Ann\'s "pen"'),
        ("zero\u200bwidth", "zerowidth"),
        ("e\u0301t\u00e9", "\u00e9t\u00e9"),
        ("size 2.0", "size 2"),
        ("line\none", "line one"),
    ],
)
def test_one_question_in_two_spellings(first, second):
    assert canonical(first) == canonical(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("7 + 8 =", "7 - 8 ="), ("7 @ 8 =", "7 # 8 ="), ("1 2", "12"),
        ("the list 1, 2", "the list 12"), ("x^2", "x2"), ("x²", "x2"), ("10", "100"),
        ("2.05", "2.5"), ("1.10", "1.01"), ("a 20", "a 2"), ("version 1.2.0", "version 1.2"),
        (r"\leftarrow", "arrow"),
    ],
)  # fmt: skip
def test_two_questions(first, second):
    assert canonical(first) != canonical(second)


def test_canonical_form_is_a_fixed_point():
    for text in ("Pay $1,234.50 now!", r"\left(x\right) ~ y?", "7 + 8 - 3 =", "a . ? b"):
        assert canonical(canonical(text)) == canonical(text)


@pytest.mark.parametrize(
    "text", ["\\" * 10**5, "1," * 5 * 10**4, "1,111" * 2 * 10**4, "1.0" * 3 * 10**4, " " * 10**5,
             "9" * 10**5 + ".", "{" * 10**5, "$" * 10**5, "\ufdfa" * 10**4, "- " * 5 * 10**4]
)  # fmt: skip
def test_garbage_takes_linear_time(text):
    started = time.process_time()
    canonical(text)
    assert time.process_time() - started < 1


def choice(question, choices, gold="A"):
    return Problem("", question, gold, "choice", choices)


def test_the_order_of_options_does_not_make_a_new_problem():
    first = choice("Which is odd?\nA. 2\nB. 3", ("2", "3"), "B")
    second = choice("Which is odd?\nA. 3\nB. 2", ("3", "2"), "A")
    assert problem_key(first) == problem_key(second)
    assert problem_key(first) != problem_key(choice("Which is odd?\nA. 2\nB. 5", ("2", "5")))
    assert problem_key(first) != problem_key(choice("Which is prime?\nA. 2\nB. 3", ("2", "3")))
