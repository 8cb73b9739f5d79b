"""Which answers are one vote."""

import pytest

from coterie.rewards.grading.answers.votes import vote


@pytest.mark.parametrize(
    ("answer", "same", "kind"),
    [
        (r"\frac{1}{2}", "0.5", "math"), ("1,080", "1080", "number"), (r"x^2 + 1", "x^2+1", "math"),
        ("Paris ", r"\text{paris}", "text"), ("(B)", "b.", "choice"), ("1, 2", "1,2", "list"),
        ("1, 2", "2, 1", "list"), ("[1, 2]", "2, 1.0", "list"),
        ("(3,4), (1,2)", "(1,2),(3,4)", "list"), ("1, 2", r"\{2, 1\}", "math"),
        ("(1/2, 3)", "(0.5,3)", "math"), ("x=5", "5", "math"), ("x = 5", "5", "number"),
        ("50%", "50", "number"), (r"50\%", "50", "math"), (r"\text{Yes}", "yes", "math"),
        (r"0 \le x < 1", "[0,1)", "math"), (r"(3,4) \cup (0,1)", r"(0,1)\cup(3,4)", "math"),
        (r"0.\overline{3}", r"\frac13", "math"), ("5 apples", "5", "number"),
        ("Paris", "paris", "qa"), ("the Nile", "Nile.", "qa"),
    ],
)  # fmt: skip
def test_one_vote(answer: str, same: str, kind: str) -> None:
    assert vote(answer, kind, ("red", "blue") if kind == "choice" else ()) == vote(  # type: ignore[arg-type]
        same,
        kind,  # type: ignore[arg-type]
        ("red", "blue") if kind == "choice" else (),
    )


def test_other_votes() -> None:
    assert vote("50%", "math") != vote("0.5", "math")
    assert vote("(1, 2)", "math") != vote("(2, 1)", "math")
    assert vote("[1, 2]", "math") != vote("(1, 2)", "math")
    assert vote("1, 2", "math") != vote("1, 2, 2", "math")
    assert vote("1, 1, 2", "list") != vote("1, 2, 2", "list")
    assert vote("n!", "math") != vote("n", "math")
    assert vote("the Nile", "qa") != vote("the Rhine", "qa")
    assert vote("x", "math") != vote("X", "math")
    assert vote(None, "math") is None
    assert vote("  ", "math") is None
    assert vote("", "text") is None


def test_a_huge_answer_is_one_short_vote() -> None:
    huge = "9" * 1_000_000
    assert vote(huge, "math") == vote(huge, "math") != vote(huge + "1", "math")
    assert len(vote(huge, "text") or "") == 64
