import time

import pytest

from coterie.problems.gold import (
    UnusableRowError,
    after_hashes,
    boxed_answer,
    number_text,
    number_with_unit,
    plain_number,
    read_answer,
    read_gold,
    read_tolerance,
    without_dollars,
)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"first \boxed{1}, then \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{a \boxed{b} c}", r"a \boxed{b} c"),
        (r"\fbox{3} and \mbox{no}", "3"),
        (r"\boxed {4}", "4"),
        (r"\boxed{[0, 1\}}", r"[0, 1\}"),
        (r"\boxed{5} \boxed{6", "5"),
        (r"{{ \boxed{7} }", "7"),
        ("no box", None),
        (r"\boxed{", None),
    ],
)
def test_last_balanced_box(text, content):
    answer = boxed_answer(text)
    assert (answer and answer[0]) == content


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so $x=\boxed{3}$ or $x=\boxed{-3}$.", ("3, -3", "list")),
        (r"$x=\boxed{3}$ and $y=\boxed{4}$", ("x=3, y=4", "math")),
        (r"$\boxed{1}$, $\boxed{2}$, and $\boxed{3}$", ("1, 2, 3", "list")),
        (r"\boxed{1}\text{ and }\boxed{2}", ("1, 2", "list")),
        (r"\boxed{2}. Then we get \boxed{5}", ("5", "number")),
        (r"we get \boxed{7}, so \boxed{7}", ("7", "number")),
        (r"so $x = -\boxed{5}$.", ("-5", "number")),
    ],
)
def test_boxes_that_are_one_answer(text, answer):
    assert boxed_answer(text) == answer


@pytest.mark.parametrize(
    "text", ["\\" * 10**6, r"\boxed{" * 10**5, "{" * 10**6, "}" * 10**6, r"\boxed" + " " * 10**6]
)
def test_boxes_in_garbage_take_linear_time(text):
    started = time.process_time()
    assert boxed_answer(text) is None
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (27.0, "27"), (-3, "-3"), (2.5, "2.5"), (0.1, "0.1"), (-0.0, "0"), (1e-7, "0.0000001"),
        (1e16, "10000000000000000"), (10, "10"), (1e23, "1" + "0" * 23), (10**400, f"{10**400}"),
    ],
)  # fmt: skip
def test_numbers_have_no_exponent_and_no_padding(number, text):
    assert number_text(number) == text


def test_numbers_that_a_column_of_fractions_has_rounded() -> None:
    """Readers of data sets turn whole numbers beside a fraction into floats."""
    assert number_text(float(2**53 - 1)) == "9007199254740991"
    with pytest.raises(UnusableRowError, match="may have lost digits"):
        number_text(float(123456789012345678901))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none(number):
    with pytest.raises(UnusableRowError, match="not a finite number"):
        number_text(number)


@pytest.mark.parametrize(
    ("text", "number"),
    [("025", "25"), ("-2.50", "-2.5"), (" 100 ", "100"), ("−5", "-5"), ("+7", "7"), (".5", "0.5"),
     ("-0", "0"), ("000", "0"), ("1,080", None), ("1/2", None), ("٣", None), ("9" * 101, None),
     ("", None), ("-", None)],
)  # fmt: skip
def test_plain_numbers(text, number):
    assert plain_number(text) == number


def test_answer_after_hashes_loses_its_commas():
    assert after_hashes("3 * 4 = <<3*4=12>>12\n#### 1,080") == "1080"
    assert after_hashes("#### 1 #### 2") == "2"
    assert after_hashes("#### $1,200.50") == "$1200.50"


@pytest.mark.parametrize("several", ["(3,4)", "1,2,3", "1, 2, 3", "[0, 5)", "(3,400)"])
def test_commas_between_values_stay(several):
    assert read_gold(f"So it is.\n#### {several}") == (several, "math")


@pytest.mark.parametrize(
    ("answer", "number"),
    [("9 (apples)", "9"), ("14  (seats)", "14"), ("383", "383"), ("1,200 (miles)", "1200"),
     ("0.50 (dollars)", "0.5"), ("Mrs. Hilt", None), ("3:30 p.m.", None), ("5:6", None),
     ("6th", None), ("11:55 p.m. on 24 December 2014.", None)],
)  # fmt: skip
def test_numbers_with_units(answer, number):
    assert number_with_unit(answer) == number


def test_number_with_unit_takes_linear_time():
    started = time.process_time()
    number_with_unit("1" * 10**6 + "x")
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("value", "gold", "kind"),
    [
        (27.0, "27", "number"), ("042", "42", "number"), (r"p - q", "p - q", "math"),
        ("58,500", "58,500", "math"), ("No", "No", "text"), (True, "Yes", "text"),
        (["2"], "2", "number"), (["1", r"\frac{1}{2}"], r"1, \frac{1}{2}", "list"),
        ("so\n#### 1,000", "1000", "number"), (r"so \boxed{\sqrt{2}}", r"\sqrt{2}", "math"),
        ("The answer is 72.", "72", "number"), ("<answer>Yes</answer>", "Yes", "text"),
        ("8 * 9 = 72, so the answer is $x + 1$", "$x + 1$", "math"),
        (r"<think>\boxed{70}? no.</think> The answer is **72**.", "72", "number"),
        ("The owl", "The owl", "math"), ("A) 72", "A) 72", "math"),
    ],
)  # fmt: skip
def test_gold_and_kind_of_a_cell(value, gold, kind):
    assert read_gold(value) == (gold, kind)


@pytest.mark.parametrize("value", [None, {}, [], [None], r"open \boxed{1", [[]]])
def test_cells_without_a_gold(value):
    with pytest.raises(UnusableRowError):
        read_gold(value)


@pytest.mark.parametrize(
    ("value", "golds", "kind"),
    [
        ([[1, 2], [3, 0.5]],
         (r"\begin{pmatrix}1 & 2 \\ 3 & 0.5\end{pmatrix}", "[[1, 2], [3, 0.5]]"), "math"),
        ([["1"], ["2"]], ("1, 2",), "list"), ([[1, 2], [3]], ("1, 2, 3",), "list"),
        ([["Ada", "Eve"], ["Max", "Tom"]], ("Ada, Eve, Max, Tom",), "list"),
        ("['3', '4']", ("3, 4",), "list"), ("['3' '4']", ("['3' '4']",), "math"),
    ],
)  # fmt: skip
def test_lists_of_a_cell(value, golds, kind):
    gold = read_answer(value)
    assert ((gold.text, *gold.alternatives), gold.kind) == (golds, kind)


def test_dollars_are_removed_but_money_stays():
    assert without_dollars(r"$69$,$84$") == "69,84"
    assert without_dollars(r"$\$5$") == r"\$5"


@pytest.mark.parametrize(
    ("error", "tolerance"),
    [(None, 0), ("", 0), ("None", 0), ("1e-1", 0.1), (" 0.5 ", 0.5), (2, 2), ("0.1,1e-2", 0.01)],
)
def test_a_tolerance(error, tolerance):
    assert read_tolerance(error) == tolerance


@pytest.mark.parametrize(
    "error", ["about", "-0.1", "nan", "1e999", "0.1,", True, [0.1], "9" * 10**5]
)
def test_what_is_no_tolerance_is_named(error):
    with pytest.raises(
        UnusableRowError, match=r"'error' is .*, not a tolerance such as 0\.1"
    ) as caught:
        read_tolerance(error)
    assert len(str(caught.value)) < 100
