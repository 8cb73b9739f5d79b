"""Exact match and F1 as SQuAD computes them; partial credit by shared tokens."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.datatypes import Problem
from coterie.rewards.exploitation import exploitation
from coterie.rewards.grading.answers import Checker
from coterie.rewards.overlap import exact_match, normalise, squad_f1
from coterie.rewards.partial_credit import partial_credit


@pytest.mark.parametrize(
    ("answer", "gold", "f1"),
    [
        # Signs, bars, points and commas are punctuation: what is left is one equal word.
        ("-3", "3", 1.0),
        ("1/2", "12", 1.0),
        ("3.14", "314", 1.0),
        ("1,234", "1234", 1.0),
        ("204", "204", 1.0),
        # 2 * 1 / (2 + 1): the equals sign goes, "n" stays.
        ("n = 204", "204", 2 / 3),
        ("204 degrees", "204", 2 / 3),
        # "the" goes, "answer is 204" stays: 2 * 1 / (3 + 1)
        ("the answer is 204", "204", 0.5),
        # One word, "boxed204".
        (r"\boxed{204}", "204", 0.0),
        # 2 * 1 / (40 + 1)
        (" ".join(f"w{i}" for i in range(39)) + " 204", "204", 2 / 41),
        # An article alone is nothing.
        ("a", "a", 0.0),
        ("", "204", 0.0),
        # Multisets: min(2, 1) + 1 = 2 shared of 3 + 2.
        ("x x y", "y x", 0.8),
    ],
)
def test_by_hand(answer: str, gold: str, f1: float) -> None:
    assert squad_f1(answer, [gold]) == pytest.approx(f1)


def test_the_best_of_several_gold_answers() -> None:
    assert squad_f1("red car", ["blue", "red", "red car"]) == 1.0
    assert squad_f1("red car", []) == 0.0


def published(answer: str, gold: str) -> tuple[bool, float]:
    """Exact match and F1 as HotpotQA's paper and SQuAD's define them, step by step: lower case,
    punctuation away, articles away, blanks mended; precision and recall over shared words."""

    def words(text: str) -> list[str]:
        kept = "".join(sign for sign in text.lower() if sign not in set(string.punctuation))
        return re.sub(r"\b(a|an|the)\b", " ", kept).split()

    got, wanted = words(answer), words(gold)
    if got != wanted and {" ".join(got), " ".join(wanted)} & {"yes", "no", "noanswer"}:
        return False, 0.0
    left, shared = list(wanted), 0
    for word in got:
        if word in left:
            left.remove(word)
            shared += 1
    if not shared:
        return False, 0.0
    precision, recall = shared / len(got), shared / len(wanted)
    return got == wanted, 2 * precision * recall / (precision + recall)


_WORDS = st.sampled_from(
    ["yes", "no", "The", "an", "river", "Aare,", "aare", "3.5", "-", "noanswer"]
)
_TEXTS = st.lists(_WORDS, max_size=5).map(" ".join)


@given(_TEXTS, _TEXTS)
def test_against_the_published_definition(answer: str, gold: str) -> None:
    exact, f1 = published(answer, gold)
    # Texts of articles alone are compared as they are.
    assert exact_match(answer, gold) == exact or not normalise(gold)
    assert squad_f1(answer, [gold]) == pytest.approx(f1)
    assert partial_credit(answer, gold, "qa") == pytest.approx(f1)


def test_kind_qa_is_right_by_exact_match() -> None:
    problem = Problem("q", "Which river?", "the Aare", "qa")
    checker = Checker()
    verdicts = [
        checker.check(text, problem) for text in ("Answer: Aare.", "Answer: Aare river", "?")
    ]
    assert [(verdict.correct, verdict.method) for verdict in verdicts] == [
        (True, "exact-match"),
        (False, "exact-match"),
        (False, "none"),
    ]


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
        # So are numbers in any other form.
        ("45^\\circ", "90^\\circ", "math", 0.0),
        ("40\\%", "50\\%", "math", 0.0),
        ("\\frac13", "\\frac12", "math", 0.0),
        ("2\\frac{1}{2}", "1\\frac{1}{2}", "math", 0.0),
        ("3\\times10^3", "2\\times10^3", "math", 0.0),
        ("2\\sqrt{5}", "2\\sqrt{3}", "math", 0.0),
        ("2 \\sqrt 3", "2\\sqrt{3}", "math", 1.0),
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
def test_hostile_answers_earn_nothing_at_once(answer):
    assert partial_credit(answer, "x+1", "math") == 0.0


def test_a_correct_answer_is_complete():
    # Wrong and half close; right though worded otherwise.
    assert exploitation([0, 1], [0.5, 0.2], 0.3).tolist() == [0.15, 1.3]
    paid_once = exploitation([0, 1], [0.5, 0.2], 0.3, partial_only_if_wrong=True)
    assert paid_once.tolist() == [0.15, 1.0]
    # Of an answer that a checker calls half right the partial credit counts: .5 + .3 * .2.
    assert exploitation([0.5], [0.2], 0.3) == pytest.approx(0.56)
    with pytest.raises(ValueError, match="correct against"):
        exploitation([1, 0], [1.0], 0.3)


def test_a_verdict_is_no_part_of_an_answer():
    assert squad_f1("yes", ["yes it is"]) == 0.0
    assert squad_f1("yes it is", ["yes"]) == 0.0
    assert squad_f1("Yes.", ["yes"]) == 1.0


def test_what_partial_credit_compares_depends_on_the_kind():
    assert partial_credit("5", "5 km", "number") == 1.0  # the unit may be left out
    assert partial_credit("5 m", "5 km", "number") == 0.0
    # A number in words is judged by its words: 2 * 1 / (2 + 1).
    assert partial_credit("5 apples", "5", "judged") == pytest.approx(2 / 3)
    assert partial_credit("print(1)", "print(1)", "code") == 0.0


def test_answers_beyond_two_thousand_characters_earn_nothing():
    # One word of 400 and of one is shared: 2 / 401.
    longest = "word " * 400
    for answer, gold in ((longest, "word"), ("word", longest)):
        assert partial_credit(answer, gold, "text") == pytest.approx(2 / 401)
    assert partial_credit(longest + ".", "word", "text") == 0.0
    assert partial_credit("word", longest + ".", "text") == 0.0


@pytest.mark.parametrize(
    ("answer", "gold", "equal"),
    [
        ("271", "2.71", False),
        ("(2.71).", "2.71", True),
        ("8", "-8", False),
        ("a loss of -8", "a loss of 8", False),
        ("\u22128", "-8", True),
        ("34", "3/4", False),
        ("62", "6-2", False),
        ("1914–1918", "1914-1918", True),
        ("5,000 men", "5000 men", True),
        ("$2.71", "2.71", True),
        ("U.S. Navy", "us navy", True),
        ("9 March 1950.", "9 March 1950", True),
        # Articles are dropped, unless they are all that is said.
        ("A", "A", True),
        ("the", "A", False),
        ("an", "the", False),
        ("the moon", "Moon", True),
        ("...", "...", False),
        # Punctuation beyond ASCII.
        ("Harry’s Bar", "Harry's Bar", True),
        ("“Hey Jude”", "Hey Jude", True),
        ("《活着》。", "活着", True),
        ("3、4", "34", False),
        ("5‰", "5", False),
    ],
)
def test_exact_match_keeps_numbers_apart(answer: str, gold: str, equal: bool) -> None:
    assert exact_match(answer, gold) is equal
