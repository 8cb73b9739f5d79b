r"""Reading ``\confidence{}``, and the format around it."""

import time

import pytest

from coterie.rewards.confidence import confidence_format, format_parts
from coterie.rewards.grading.answers.confidence import parse_confidence, stated


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"so \boxed{\frac{1}{2}} \confidence{0.8}", 0.8),
        (r"\confidence{.8}", 0.8),
        (r"\confidence{1}", 1.0),
        (r"\confidence{ 0 }", 0.0),
        (r"\confidence{80%}", 0.8),
        (r"\confidence{80\%}", 0.8),
        (r"\confidence{$0.8$}", 0.8),
        (r"\confidence{100 %}", 1.0),
        (r"\confidence{}", None),
        (r"\confidence{high}", None),
        (r"\confidence{1.2}", None),
        (r"\confidence{٠.٨}", None),
        (r"\confidence{0.2} and \confidence{0.7}", 0.7),
        (r"\confidence{0.2} and \confidence{high}", None),
        (r"\confidence{0.9} \confidence{\text{high}}", None),
        (r"\confidence{0.9} \confidence{0.{8}}", None),
        # One that is never closed is none.
        (r"\confidence{0.9} \confidence{0.8", 0.9),
        (r"{ \confidence{0.9} }", 0.9),
        (r"\boxed{7}", None),
        ("", None),
        (r"\confidence{0.8", None),
    ],
)
def test_the_last_one_counts(text, value):
    assert parse_confidence(text) == value


def test_places():
    assert stated(r"a\confidence{1}b\confidence{x}") == [(1, 1.0), (16, None)]


@pytest.mark.parametrize(
    ("response", "parts"),
    [
        (r"7 \boxed{7} \confidence{0.5}", (True, True, True)),
        (r"7 \confidence{0.5} \boxed{7}", (True, False, True)),
        (r"\boxed{6} or \boxed{7} \confidence{0.5}", (False, True, True)),
        (r"\boxed{} \confidence{0.5}", (False, False, True)),
        (r"<think>\boxed{6}</think> \boxed{7} \confidence{0.5}", (True, True, True)),
        (r"\boxed{7} \confidence{2}", (True, False, True)),
        (r"答案 \boxed{7} \confidence{0.5}", (True, True, False)),
        # The last confidence counts, and it stands behind the last answer.
        (r"\confidence{0.5} \boxed{7} \confidence{0.9}", (True, True, True)),
        (r"\boxed{6} \confidence{0.5} \boxed{7}", (False, False, True)),
        ("", (False, False, True)),
    ],
)
def test_format(response, parts):
    assert format_parts(response, "What is 3 + 4?") == parts
    assert confidence_format(response, "What is 3 + 4?") == pytest.approx(sum(parts) / 3)


def test_the_language_of_a_chinese_question_is_left_alone():
    assert format_parts(r"答案 \boxed{7} \confidence{0.5}", "三加四?")[2]


def test_one_foreign_character_in_two_hundred_is_no_other_language():
    assert format_parts("x" * 199 + "答", "What?")[2]
    assert not format_parts("x" * 98 + "答", "What?")[2]


@pytest.mark.parametrize(
    "garbage", ["\\" * 10**6, r"\confidence{" * 10**5, r"\boxed{" * 10**5, "{" * 10**6, "}" * 10**6]
)
def test_garbage_takes_linear_time(garbage):
    start = time.process_time()
    parse_confidence(garbage)
    confidence_format(garbage, "What?")
    assert time.process_time() - start < 5
