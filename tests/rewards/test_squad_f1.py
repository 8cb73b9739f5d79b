import pytest

from rewards.squad_f1 import normalise, squad_f1


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
