import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.answers import Checker
from rewards.partial_credit import partial_credit
from rewards.squad_f1 import exact_match, normalise, squad_f1
from vocabulary import Problem


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


def test_verdicts_match_themselves_only() -> None:
    assert squad_f1("Yes.", ["yes"]) == 1.0
    assert squad_f1("yes indeed", ["yes"]) == 0.0
    assert squad_f1("no", ["no way"]) == 0.0
    assert squad_f1("noanswer", ["none"]) == 0.0


def test_normalised() -> None:
    assert normalise("  The  Cat, an ANT\nand a-b ") == "cat ant and ab"


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
    assert exact_match(answer, gold) == exact
    assert squad_f1(answer, [gold]) == pytest.approx(f1)
    assert partial_credit(answer, gold, "qa") == pytest.approx(f1)


def test_kind_qa_is_right_by_exact_match() -> None:
    problem = Problem("q", "Which river?", "the Aare", "qa")
    checker = Checker()
    found = [checker.check(text, problem) for text in ("Answer: Aare.", "Answer: Aare river", "?")]
    assert [(verdict.correct, verdict.method) for verdict in found] == [
        (True, "exact-match"),
        (False, "exact-match"),
        (False, "none"),
    ]
