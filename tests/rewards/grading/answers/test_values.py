"""Normal forms, exact values and shapes of answers."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.rewards.grading.answers import exact, plain
from coterie.rewards.grading.answers.caps import refuses
from coterie.rewards.grading.answers.dates import read_date
from coterie.rewards.grading.answers.grammar import read
from coterie.rewards.grading.answers.structure import readings, shape
from coterie.rewards.grading.answers.units import split_unit


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", "42"), ("042", "42"), ("+7", "7"), ("−7", "-7"), ("-3.50", "-7/2"), (".5", "1/2"),
        ("5.", "5"), ("1,080", "1080"), ("1,234,567.5", "2469135/2"),
        (r"11,\! 111,\! 100", "11111100"), ("10{,}080", "10080"), (r"10\,080", "10080"),
        ("7/2", "7/2"), ("-(1/3)", "-1/3"), (r"\frac43", "4/3"), (r"\frac 59", "5/9"),
        (r"\frac9{19}", "9/19"), (r"\dfrac{-1}{1997}", "-1/1997"), (r"-\tfrac{3}{4}", "-3/4"),
        (r"1\frac{4}{5}", "9/5"), (r"137 \frac{1}{2}", "275/2"), ("-1 1/2", "-3/2"),
        (r"6.72\times10^{-5}", "42/625000"), ("1.5e3", "1500"), ("10^{4}", "10000"),
        (r"\$18.90", "189/10"), ("$18$", "18"), ("18 dollars", "18"),
        (r"\frac{270}7\text{ degrees}", "270/7"), (r"15\mbox{ cm}^2", "15"), (r"90^{\circ}", "90"),
        (r"\text{42}", "42"), (r"\left(42\right)", "42"), ("**42**.", "42"),
        ("٤٢", "42"), ("४२", "42"),
    ],
)  # fmt: skip
def test_numbers_have_their_exact_value(text: str, value: str) -> None:
    read = exact(plain(text))
    assert read is not None
    assert read.literal == Fraction(value)
    assert not read.percent


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "1/0", r"\frac{1}{0}", "1,2", "10,80", "1,0800", "3:30", "5 quadrillion", "5 or 6",
        "5 or more", "3 x", "2 pi", r"2\pi", "(1,080, 2)", "52_8", "1e99999", "1.2.3", "--", "໓",
        "²", "9" * 513,
    ],
)  # fmt: skip
def test_other_texts_are_no_numbers(text: str) -> None:
    assert exact(plain(text)) is None


def test_a_percent_sign_is_marked_and_not_converted() -> None:
    read = exact(plain(r"8 \%"))
    assert read is not None
    assert (read.literal, read.percent) == (8, True)


@given(st.text(alphabet="0123456789.,/\\{}()[]$%^_+-eE frac\ud800\x00", max_size=40))
def test_nothing_raises(text: str) -> None:
    exact(plain(text))
    shape(text)
    readings(text)
    refuses(text)


def test_an_index_may_stand_behind_an_exponent() -> None:
    assert plain("v^2_0") == plain("v_0^2") != plain("v^2")
    assert plain(r"\mu^{3}_{AB}") == r"\mu_{AB}^{3}"
    assert plain(r"\log^2_3 x") == r"\log_3^2 x"
    assert plain("v_1^2") != plain("v_2^2")


def test_typesetting_goes_and_meaning_stays() -> None:
    assert plain(r"\left( \dfrac{1}{2},\, 3 \right)") == r"( \frac{1}{2}, 3 )"
    assert plain(r"\(x\)") == "x"
    assert plain(r"\[x\]") == "x"
    assert plain(r"\{1\}") == r"\{1\}"
    assert plain("X") == "X"
    assert plain(r"a \\ b") == r"a \\ b"
    assert plain("**14** pens") == plain("*14* pens") == plain("__14__ pens") == "14 pens"
    assert plain(r"**\$14** a day") == plain("**$14** a day") == "＄14 a day"
    assert plain("2**14 + 3**5") == "2**14 + 3**5"
    assert plain("2 * 3 * 4") == "2 * 3 * 4"
    assert plain("**14** or **15**") == "14 or 15"


@pytest.mark.parametrize(
    ("text", "body", "unit"),
    [
        ("5 km/h", "5", "kilometer/hour"), ("5 cm", "5", "centimeter"),
        ("15 cm ^2", "15", "centimeter^2"), ("15 square centimeters", "15", "centimeter^2"),
        ("5 feet", "5", "foot"), (r"12\pi cm", r"12\pi", "centimeter"),
        ("5 pieces of candy", "5", ""), ("5 years old", "5", "year"), ("5 in total", "5", ""),
        ("5 million", None, ""), ("5 thousand dollars", None, ""), ("5 zebras", None, ""),
        ("5 of the", None, ""), ("5 distinct arrangements", "5", ""), ("5 distinct", None, ""),
        ("at most 5 cm", "at most 5", "centimeter"), ("cm", None, ""),
        # Letters may be variables where no number is asked for.
        ("5 m", None, ""), ("2cm", None, ""), ("x", None, ""),
    ],
)  # fmt: skip
def test_known_units_go_and_other_words_stay(text: str, body: str | None, unit: str) -> None:
    assert split_unit(text) == (text if body is None else body, unit)


def test_where_a_number_is_asked_for_the_question_tells_units() -> None:
    assert split_unit("5 m", "") == ("5", "meter")
    assert split_unit("2cm", "") == ("2", "centimeter")
    assert split_unit("5 x", "") == ("5 x", "")
    assert split_unit("5 red zebras", "How many zebras are red?") == ("5", "")
    # A word that changes the value does so in a question too, and a formula holds no words.
    assert split_unit("5 thirds", "How many thirds?") == ("5 thirds", "")
    assert split_unit("5 xyz", "Find $xyz$.") == ("5 xyz", "")


@pytest.mark.parametrize(
    "text",
    [
        "", "3 4", "x2", "a/2b", "--3", "2 - -3", "2--3", "n!!", "x^y^z", "x^" * 40 + "x",
        r"\sqrt12", r"\frac12\lor\frac13", r"\ne 3", r"x \ldots", r"\int_0^1 x dx", "3:4", "5 ?",
        "(1", "1)", "1,2", "x = 2", "1e99999", "|x", r"\frac{1}{2", r"\lfloor 2 \rceil",
    ],
)  # fmt: skip
def test_what_the_grammar_does_not_know_is_not_read(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("2x", r"2 \cdot x"), ("1/2 n", r"\frac12 n"), (r"\frac\pi2", r"\pi/2"), ("2^10", "2^{10}"),
        ("x^{-1}", "x^-1"), (r"\sin^{-1} x", r"\arcsin(x)"), (r"\cos 60^\circ", r"\cos(60^\circ)"),
        (r"\sin 2x \cos x", r"\sin(2x) \cdot \cos(x)"), ("sqrt(3)", r"\sqrt3"),
        (r"{n \choose 2}", r"\binom n2"), ("(n-2) 2^{n}", r"(n-2) \cdot 2^n"),
        (r"1\frac45", r"\frac95"), (r"3 \times 10^{-2}", "0.03"), ("x_{1}'", "x_1'"),
        ("4 + -3i", "4 - 3i"),
    ],
)  # fmt: skip
def test_two_ways_to_write_one_formula(text: str, other: str) -> None:
    left, right = read(text), read(other)
    assert left is not None
    assert right is not None
    # The form of a literal is how it is written.
    assert str(left).replace("fraction", "plain") == str(right).replace("fraction", "plain")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("March 14, 2024", (2024, 3, 14)), ("Thursday, March 14, 2024", (2024, 3, 14)),
        ("14.03.2024", (2024, 3, 14)), ("3/14/2024", (2024, 3, 14)), ("3/3/2024", (2024, 3, 3)),
        ("Feb. 29", (None, 2, 29)), ("Feb 29, 2023", None), ("3/4/2024", None),
        ("Marching 14", None), ("14", None), ("9" * 5000, None),
    ],
)  # fmt: skip
def test_a_date_is_one_in_any_order(text: str, day: tuple[int | None, int, int] | None) -> None:
    assert read_date(text) == day


def test_brackets_that_do_not_balance_stay_one_value() -> None:
    for text in ("(1,2", "1,2)", "]0,1["):
        assert shape(text).is_value
    # Two brackets are not one pair around everything.
    assert shape("(0,9)(9,36)").is_value
    both = shape(r"(0,9) \cup (9,36)")
    assert (both.ends, both.items) == (r"\cup", (shape("(0,9)"), shape("(9,36)")))


def test_bounds_of_a_variable_are_an_interval() -> None:
    for text in (r"0 \le x < 1", "1 > x >= 0", r"x \in [0,1)"):
        interval = shape(text)
        assert (interval.ends, interval.items, interval.name) == ("[)", shape("[0,1)").items, "x")
    assert shape("x > 3").items == shape(r"(3, \infty)").items
    assert shape(r"x \le 3").ends == "(]"
    # Of no variable, of no interval, of two kinds.
    for text in ("0 < 1", "x + y < 1", "0 < x > 1", r"x \ne 1", r"x \notin [0,1)"):
        assert shape(text).is_value


def test_thousands_are_told_from_separators() -> None:
    assert shape("1,080").is_value
    assert len(shape("(1,080)").items) == 2
    assert [item.text for item in shape("(1,2), (100,200)").items] == ["(1,2)", "(100,200)"]
    # Loose separators make tight commas thousands; else a list is read as a list first.
    assert [item.text for item in readings("2,400, 1,350, 864")[0].items] == ["2400", "1350", "864"]
    assert [len(reading.items) for reading in readings("100,200")] == [2, 0]
    assert [len(reading.items) for reading in readings("27,54,108,135")] == [4]


@pytest.mark.parametrize(
    "text",
    [
        "", "x" * 513, "9^{9^{9^9}}", "9^{9^9}", "2^{99999}", "9**99999", "10^{10^{10}}",
        "x^{x^{x^{x}}}", "99999!", "(9!)!", "(" * 200, "(" * 9 + "x" + ")" * 9,
        r"\{" * 9 + "x" + r"\}" * 9,
        r"\frac{1}{1+" * 9 + "x" + "}" * 9, "{", "}{", "\x00", "\ud800",
    ],
)  # fmt: skip
def test_what_would_blow_up_is_refused(text: str) -> None:
    assert refuses(text)


@pytest.mark.parametrize(
    "text",
    [
        r"2^{1009}", r"10^{100}", r"\frac{100!}{2^{50}}", r"e^{x^{2}}", r"2^{2^{4}}", "x^2^2",
        "x^2y^2z^2w^2", r"2^{10}3^{5}5^{2}7", "(x+1)^2(x+2)^2(x+3)^2(x+4)^2",
        r"\frac{1}{1+" * 8 + "x" + "}" * 8, "(1,2), " * 20, "]0,1[", r"\frac{8!}{3!\,2!\,2!}",
        r"\{1\}", "x\ty",
    ],
)  # fmt: skip
def test_what_golds_contain_is_not_refused(text: str) -> None:
    assert not refuses(text)
