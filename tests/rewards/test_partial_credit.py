import pytest

from rewards.exploitation import exploitation
from rewards.partial_credit import partial_credit


@pytest.mark.parametrize(
    ("answer", "gold", "kind", "credit"),
    [
        # Tokens x ^ 2 + 1 against x ^ 2 - 1: four of five shared.
        ("x^2+1", "x^2-1", "math", 0.8),
        # ( 0 , 1 ) against [ 0 , 1 ]: three of five.
        ("(0,1)", "[0,1]", "math", 0.6),
        # 1 , 2 , 3 against 1 , 2: multiset {1 , 2} of 5 and 3 tokens: 2 * 3 / 8.
        ("1, 2, 3", "1, 2", "list", 0.75),
        # The multiset counts: a a against a b shares one a only.
        ("a a", "a b", "text", 0.5),
        ("New  YORK.", "new york", "text", 1.0),
        ("$\\text{red}$", "Red", "math", 1.0),
        ("B", "C", "choice", 0.0),
        (" b. ", "B", "choice", 1.0),
        # Numbers: equal in value or worth nothing, however many digits they share.
        ("1,234", "1234", "number", 1.0),
        ("12.0", "12", "math", 1.0),
        ("\\frac{1}{2}", "0.5", "math", 1.0),
        ("-\\frac{1}{2}", "−1/2", "math", 1.0),
        ("204 degrees", "204", "number", 0.0),
        ("1234", "1235", "number", 0.0),
        ("1/0", "1/0", "text", 1.0),
        # A factorial is another number: 6, not 3.
        ("3!", "3", "number", 0.0),
        ("New York!", "New York", "text", 1.0),
        # A gold answer in words is no number even where its text looks like one.
        ("12 monkeys", "12", "text", 2 / 3),
        (None, "7", "number", 0.0),
        ("", "7", "number", 0.0),
        ("$ . $", "x", "math", 0.0),
        ("x", "", "math", 0.0),
    ],
)
def test_credit(answer, gold, kind, credit):
    assert partial_credit(answer, gold, kind) == pytest.approx(credit, abs=1e-12)


def test_overlap_of_numbers_on_request():
    # 204 and degrees against 204: 2 * 1 / 3.
    literal = partial_credit("204 degrees", "204", "number", numeric_overlap=True)
    assert literal == pytest.approx(2 / 3, abs=1e-12)


@pytest.mark.parametrize(
    "answer",
    ["\\" * 10**6, "9^{9^{9^9}}", "9" * 1999, "\\text{" * 10**5, "{" * 1999, "1e999999999", "٣"],
)
@pytest.mark.parametrize("gold", ["7", "x+1"])
def test_hostile_answers_earn_nothing_at_once(answer, gold):
    assert partial_credit(answer, gold, "math") == 0.0


def test_a_correct_answer_is_complete():
    # Wrong and half close; right though worded otherwise.
    assert exploitation([0, 1], [0.5, 0.2], 0.3).tolist() == [0.15, 1.3]
    paid_once = exploitation([0, 1], [0.5, 0.2], 0.3, partial_only_if_wrong=True)
    assert paid_once.tolist() == [0.15, 1.0]
    with pytest.raises(ValueError, match="correct against"):
        exploitation([1, 0], [1.0], 0.3)
