"""Normal forms, exact values and shapes of answers."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.answers import exact, plain
from rewards.answers.caps import refuses, tower
from rewards.answers.rational import drop_units
from rewards.answers.structure import Shape, readings, shape


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", "42"),
        ("042", "42"),
        ("+7", "7"),
        ("−7", "-7"),
        ("-3.50", "-7/2"),
        (".5", "1/2"),
        ("5.", "5"),
        ("1,080", "1080"),
        ("1,234,567.5", "2469135/2"),
        (r"11,\! 111,\! 100", "11111100"),
        ("10{,}080", "10080"),
        (r"10\,080", "10080"),
        ("7/2", "7/2"),
        ("-(1/3)", "-1/3"),
        (r"\frac43", "4/3"),
        (r"\frac 59", "5/9"),
        (r"\frac9{19}", "9/19"),
        (r"\dfrac{-1}{1997}", "-1/1997"),
        (r"-\tfrac{3}{4}", "-3/4"),
        (r"1\frac{4}{5}", "9/5"),
        (r"137 \frac{1}{2}", "275/2"),
        ("-1 1/2", "-3/2"),
        (r"6.72\times10^{-5}", "42/625000"),
        ("1.5e3", "1500"),
        ("10^{4}", "10000"),
        (r"\$18.90", "189/10"),
        ("$18$", "18"),
        ("18 dollars", "18"),
        (r"\frac{270}7\text{ degrees}", "270/7"),
        (r"15\mbox{ cm}^2", "15"),
        (r"90^{\circ}", "90"),
        (r"\text{42}", "42"),
        (r"\left(42\right)", "42"),
        ("**42**.", "42"),
    ],
)
def test_numbers_have_their_exact_value(text: str, value: str) -> None:
    found = exact(plain(text))
    assert found is not None
    assert found.value == Fraction(value)
    assert not found.percent


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1/0",
        r"\frac{1}{0}",
        "1,2",
        "10,80",
        "1,0800",
        "3:30",
        "5 million",
        "5 or 6",
        "5 or more",
        "3 x",
        "2 pi",
        r"2\pi",
        "(1,080, 2)",
        "52_8",
        "1e99999",
        "1.2.3",
        "--",
        "٣",
        "²",
        "9" * 513,
    ],
)
def test_other_texts_are_no_numbers(text: str) -> None:
    assert exact(plain(text)) is None


def test_a_percent_sign_is_marked_and_not_converted() -> None:
    found = exact(plain(r"8 \%"))
    assert found is not None
    assert (found.value, found.percent) == (8, True)


@given(st.fractions(max_denominator=10**6), st.sampled_from(["frac", "dfrac", "tfrac"]))
def test_fractions_keep_their_value_in_every_spelling(value: Fraction, command: str) -> None:
    top, bottom = value.numerator, value.denominator
    for text in (f"{top}/{bottom}", rf"\{command}{{{top}}}{{{bottom}}}", rf"$ {top} / {bottom} $"):
        found = exact(plain(text))
        assert found is not None
        assert found.value == value


@given(st.integers(), st.integers(0, 5))
def test_integers_keep_their_value_in_every_spelling(value: int, zeros: int) -> None:
    spelled = f"{value:,}" + ("." + "0" * zeros if zeros else "")
    found = exact(plain(spelled))
    assert found is not None
    assert found.value == value


@given(st.text(alphabet="0123456789.,/\\{}()[]$%^_+-eE frac\ud800\x00", max_size=40))
def test_nothing_raises(text: str) -> None:
    exact(plain(text))
    shape(text)
    readings(text)
    refuses(text)


def test_typesetting_goes_and_meaning_stays() -> None:
    assert plain(r"\left( \dfrac{1}{2},\, 3 \right)") == r"( \frac{1}{2}, 3 )"
    assert plain(r"\(x\)") == "x"
    assert plain(r"\[x\]") == "x"
    assert plain(r"\{1\}") == r"\{1\}"
    assert plain("X") == "X"
    assert plain(r"a \\ b") == r"a \\ b"


def test_units_go_and_words_that_change_the_value_stay() -> None:
    assert drop_units("5 km/h") == "5"
    assert drop_units("5 million") == "5 million"
    assert drop_units("5 m") == "5 m"


def test_shapes_keep_brackets_and_order() -> None:
    half_open = shape(r"\left(\frac{3}{5},\frac{8}{3}\right]")
    assert half_open.ends == "(]"
    assert [item.text for item in half_open.items] == [r"\frac{3}{5}", r"\frac{8}{3}"]
    assert shape("1, 2").ends == ","
    assert shape(r"\{1, 2\}").ends == ","
    assert shape("(1,2),(3,4)").items == (shape("(1,2)"), shape("(3,4)"))
    assert shape("x=1 or x=2").ends == ","


def test_one_value_in_brackets_is_that_value() -> None:
    assert shape("[42]") == shape("(42)") == shape(r"\{42\}") == Shape("42")


def test_brackets_that_do_not_balance_stay_one_value() -> None:
    for text in ("(1,2", "1,2)", "]0,1["):
        assert shape(text).is_value
    # Two brackets are not one pair around everything.
    assert shape(r"(0,9) \cup (9,36)").is_value


def test_both_signs_are_two_values() -> None:
    assert [item.text for item in shape(r"1 \pm \sqrt{19}").items] == [
        r"1 + \sqrt{19}",
        r"1 - \sqrt{19}",
    ]


def test_thousands_are_told_from_separators() -> None:
    assert shape("1,080").is_value
    assert len(shape("(1,080)").items) == 2
    assert [item.text for item in shape("(1,2), (100,200)").items] == ["(1,2)", "(100,200)"]
    # Loose separators make tight commas thousands; else a list is read as a list first.
    assert [item.text for item in readings("2,400, 1,350, 864")[0].items] == ["2400", "1350", "864"]
    assert [len(reading.items) for reading in readings("100,200")] == [2, 0]
    assert [len(reading.items) for reading in readings("27,54,108,135")] == [4]


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("x", 0),
        ("x^2", 1),
        ("e^{x^2}", 2),
        ("9^{9^{9^9}}", 3),
        ("x^{2} + y^{2}", 1),
        ("9^(9^9)", 2),
    ],
)
def test_towers_are_measured(text: str, depth: int) -> None:
    assert tower(text) == depth


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x" * 513,
        "9^{9^{9^9}}",
        "9^{9^9}",
        "2^{99999}",
        "9**99999",
        "10^{10^{10}}",
        "x^{x^{x^{x}}}",
        "99999!",
        "(9!)!",
        "1!" * 10,
        "x^" * 40 + "x",
        "x^y^z^w",
        "x^{y}^{z}^{w}",
        r"2**\pi**2**2",
        "(" * 200,
        "(" * 9 + "x" + ")" * 9,
        r"\{" * 9 + "x" + r"\}" * 9,
        r"\frac{1}{1+" * 9 + "x" + "}" * 9,
        "{",
        "}{",
        "\x00",
        "\ud800",
    ],
)
def test_what_would_blow_up_is_refused(text: str) -> None:
    assert refuses(text)


@pytest.mark.parametrize(
    "text",
    [
        r"2^{1009}",
        r"10^{100}",
        r"\frac{100!}{2^{50}}",
        r"e^{x^{2}}",
        r"2^{2^{4}}",
        "x^2^2",
        "x^2y^2z^2w^2",
        r"2^{10}3^{5}5^{2}7",
        "(x+1)^2(x+2)^2(x+3)^2(x+4)^2",
        r"\frac{1}{1+" * 8 + "x" + "}" * 8,
        "(1,2), " * 20,
        "]0,1[",
        r"\frac{8!}{3!\,2!\,2!}",
        r"\{1\}",
        "x\ty",
    ],
)
def test_what_golds_contain_is_not_refused(text: str) -> None:
    assert not refuses(text)
