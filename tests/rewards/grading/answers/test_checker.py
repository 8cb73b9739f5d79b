"""The chain of rules from a response to a verdict, with the short-cuts and without."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from coterie.datatypes import AnswerKind, Problem
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.answers.equality import same
from coterie.rewards.grading.answers.structure import Shape, shape


def problem(gold: str, kind: AnswerKind = "math", *, percent: bool = False) -> Problem:
    return Problem(id="p", question="", gold=gold, kind=kind, percent=percent)


@pytest.fixture(scope="module", params=[True, False], ids=["shortcuts", "algebra"])
def checker(request: pytest.FixtureRequest) -> Iterator[Checker]:
    checker = Checker(shortcuts=request.param, deadline_s=20.0)
    yield checker
    checker.close()


RIGHT: list[tuple[str, str, AnswerKind]] = [
    ("042", "42", "number"),
    ("1,080", "1080", "number"),
    ("18 dollars", "18", "number"),
    (r"\$18.00", "18", "number"),
    (r"1.024 \times 10^3", "1024", "number"),
    (r"\approx 1024", "1024", "number"),
    (r"6 \text{ ways}", "6", "number"),
    ("x = 6 cm", "6", "number"),
    ("6 m", "6", "number"),
    (r"\frac{-14}{6}", r"-\frac73", "math"),
    ("0.75", r"\frac{3}{4}", "math"),
    (r"\cos(60^\circ)", r"\frac12", "math"),
    (r"\cos\frac{\pi}{3}", r"\frac12", "math"),
    (r"0.\overline{3}", r"\frac13", "math"),
    (r"0.1\overline{6}", r"\frac16", "math"),
    (r"2+3\mathrm{i}", "2+3i", "math"),
    (r"0 \le x < 1", "[0,1)", "math"),
    (r"1 > x \ge 0", "[0,1)", "math"),
    (r"x < 2 \text{ or } x > 3", r"(-\infty, 2) \cup (3, \infty)", "math"),
    (r"(3, \infty) \cup (-\infty, 2)", r"(-\infty, 2) \cup (3, \infty)", "math"),
    (r"k \ge 2", r"[2, \infty)", "math"),
    ("1024", "2^{10}", "math"),
    ("4^5", "2^{10}", "math"),
    (r"\pi \cdot 10^{-8}", r"\frac{\pi}{10^8}", "math"),
    (r"\frac{2\pi}{8}", r"\frac{\pi}{4}", "math"),
    (r"2\sqrt{3} \text{ m}", r"2\sqrt3", "math"),
    (r"\frac{\sqrt5-1}{2}", r"\frac{2}{1+\sqrt5}", "math"),
    ("(R-r)(R+r)", "R^2-r^2", "math"),
    (r"\frac{Mm}{r}", r"\frac{mM}{r}", "math"),
    (r"\begin{bmatrix} 0.5 \\ 2 \end{bmatrix}", r"\begin{pmatrix} 1/2 \\ 2 \end{pmatrix}", "math"),
    ("2x - y + 3 = 0", "y = 2x + 3", "math"),
    ("10y - 20x = 30", "y = 2x + 3", "math"),
    (r"864 \text{ square inches}", r"864 \mbox{ inches}^2", "math"),
    (r"204_{\text{five}}", "204_5", "math"),
    ("(x,y) = (1,2)", "(1,2)", "math"),
    (r"n2^{n-1}", r"n \cdot 2^{n-1}", "math"),
    (r"\frac{\sqrt{3}}{2}", r"\frac{3}{2\sqrt{3}}", "math"),
    ("(x+1)^2", "x^2+2x+1", "math"),
    ("x=5", "5", "math"),
    ("5", "x=5", "math"),
    ("(0,1]", r"\left(0, 1\right]", "math"),
    (r"(\frac{1}{2},3)", "(0.5, 3)", "math"),
    ("2, 1", "1,2", "math"),
    (r"\{2,1\}", "1,2", "math"),
    (r"1+\sqrt{19}, 1-\sqrt{19}", r"1 \pm \sqrt{19}", "math"),
    (r"x \in [-2,7]", "[-2,7]", "math"),
    ("[-2,7]", r"x \in [-2,7]", "math"),
    (r"90^\circ", "90", "math"),
    (r"15\mbox{ cm}^2", "15", "math"),
    ("15", r"15\mbox{ cm}^2", "math"),
    ("52_8", "52_{8}", "math"),
    ("52", "52_8", "math"),
    ("East", r"\text{east}", "math"),
    ("C", r"\text{(C)}", "math"),
    (r"50\%", "50", "math"),
    ("[5, 3, 1]", "1,3,5", "list"),
    ("2,400, 1,350, 864", "864, 2400, 1350", "list"),
    ("16,200", "16200", "list"),
    (r"\sqrt{12}, 1", r"1,2\sqrt{3}", "list"),
    ("(3,4), (1,2)", "(1,2),(3,4)", "list"),
    ("-2,-2", "-2,-2", "list"),
    ("they are EQUAL.", "They are equal", "text"),
    (r"\text{East!}", r"\text{east}", "math"),
    (r"\text{they are equal!}", "They are equal", "text"),
    ("n!", "n!", "math"),
    ("(n-1)!", r"(n-1)\,!", "math"),
    (r"m_{\max }=n^{2}-1", r"m_{\max }=n^{2}-1", "math"),  # which no parser reads
    (r"\{x \mid x > 5\}", r"(5,\infty)", "math"),
    (r"\{x \in \mathbb{R} : 0 \le x < 1\}", "[0,1)", "math"),
    (r"x \in \mathbb R", r"(-\infty, \infty)", "math"),
    (r"\{\,\}", r"\varnothing", "math"),
    (r"\text{infinity}", r"\infty", "math"),
    ("{1, 3, 5}", "5, 3, 1", "list"),
    (r"x = 1 \text{ and } y = 2", "(1,2)", "math"),
    (r"(r, \theta) = (1, \pi)", r"(1,\pi)", "math"),
    (r"P(X = 1) = \frac38", r"\frac38", "math"),
    (r"(4343)_6", "4343_6", "math"),
    (r"3\colon 2", "3:2", "math"),
    ("3√13", r"\sqrt{117}", "math"),
    ("⅛", "0.125", "number"),
    ("-3 °C", "-3", "number"),
    ("60º", r"60^\circ", "math"),
    (r"12 \text{ meters}", r"12 \text{ m}", "math"),
    (r"\begin{pmatrix} 2 \\[2mm] 0 \end{pmatrix}", r"\begin{pmatrix} 2 \\ 0 \end{pmatrix}", "math"),
    (r"3{:}30 \text{ PM}", "3:30 p.m.", "math"),
    ("3:30pm", "3:30 p.m.", "text"),
    ("tuesday", "Tuesday", "math"),
    (r"\{x \mid x < 2 \text{ or } x > 3\}", r"(-\infty,2) \cup (3,\infty)", "math"),
    (r"\lvert b-a \rvert", "|a-b|", "math"),
    ("cba", "abc", "math"),  # a product, as its letters are in order
]

WRONG: list[tuple[str, str, AnswerKind]] = [
    ("43", "42", "number"),
    ("5 million", "5", "number"),
    ("5, 6", "5", "number"),
    ("2^{11}", "1024", "number"),
    (r"1024 \pm 1", "1024", "number"),
    (r"\approx 1025", "1024", "number"),
    ("[0,1]", "(0,1)", "math"),
    ("(0,1)", "[0,1]", "math"),
    ("(0,1]", "[0,1)", "math"),
    ("(1,2)", "(2,1)", "math"),
    ("(1,2,3)", "(1,2)", "math"),
    ("1,2", "1,2,3", "math"),
    ("1,2,2", "1,1,2", "list"),
    ("-2", "-2,-2", "list"),
    ("(2,1)", "1,2", "math"),
    ("y=5", "x=5", "math"),
    ("52_9", "52_8", "math"),
    ("42", "52_8", "math"),
    ("teas", r"\text{east}", "math"),
    ("D", r"\text{(C)}", "math"),
    (r"50\%", "0.5", "math"),
    ("0.5", r"50\%", "math"),
    ("x^2", "x^3", "math"),
    (r"\sqrt{12}, 2", r"1,2\sqrt{3}", "list"),
    ("unequal", "They are equal", "text"),
    (r"m_{\max }=n^{2}-2", r"m_{\max }=n^{2}-1", "math"),
    ("n", "n!", "math"),
    ("n-1", "(n-1)!", "math"),
    ("3!", "3", "number"),
    ("3!", "3", "math"),
    ("9^{9^{9^9}}", "4", "math"),
    ("{", "4", "math"),
    ("\x00", "4", "math"),
    ("\ud800", "4", "math"),
    ("<b>4</b>", "5", "math"),
    ("x" * 10**6, "4", "math"),
    (r"\frac{1}{0}", "4", "math"),
    # Letters keep their case.
    ("0", "R^2-r^2", "math"),
    ("r^2-R^2", "R^2-r^2", "math"),
    (r"\frac{mm}{R}", r"\frac{mM}{r}", "math"),
    # Work that is left to do says no value.
    ("2^{10}", "1024", "number"),
    ("4^5", "1024", "number"),
    (r"\sqrt{1048576}", "1024", "number"),
    (r"32 \times 32", "1024", "number"),
    ("(32)(32)", "1024", "number"),
    ("1000+24", "1024", "number"),
    ("1024+0", "1024", "number"),
    ("2048/2", "1024", "number"),
    (r"\frac{1024}{1}", "1024", "math"),
    ("x = 2^{10}", "1024", "number"),
    (r"3! \text{ ways}", "6", "number"),
    ("6-0", "6", "math"),
    ("(1, 1+1)", "(1,2)", "math"),
    ("1, 4/2", "1,2", "list"),
    (r"\frac14+\frac14", r"\frac12", "math"),
    (r"1-\frac12", r"\frac12", "math"),
    (r"3 \cdot \frac16", r"\frac12", "math"),
    (r"\sqrt3+\sqrt3", r"2\sqrt3", "math"),
    (r"3 \cdot 4\pi", r"12\pi", "math"),
    (r"16\pi-4\pi", r"12\pi", "math"),
    # Small numbers are told apart.
    ("0.00000049", r"\frac{\pi}{10^8}", "math"),
    ("0.0000000314", r"\frac{\pi}{10^8}", "math"),
    (r"\frac{\pi}{10^8}+10^{-20}", r"\frac{\pi}{10^8}", "math"),
    ("x", "x+10^{-20}", "math"),
    ("1.41421356237309504880168872420969807856967187537694", r"\sqrt2", "math"),
    # What is not read whole equals nothing.
    (r"\ne \frac13", r"\frac13", "math"),
    (r"\frac12\lor\frac13", r"\frac13", "math"),
    (r"\sqrt2 is wrong", r"\sqrt2", "math"),
    (r"\sqrt2 \text{ is wrong}", r"\sqrt2", "math"),
    ("5...", "5", "number"),
    ("5 5", "55", "number"),
    ("0{,}5", "5", "number"),
    ("5 ?", "5", "number"),
    # Only a variable has a value, and arithmetic that is right.
    ("6=5", "5", "math"),
    ("2+4 = 5", "5", "math"),
    ("x = 2+4 = 5", "5", "math"),
    ("x = 6 = 5", "5", "math"),
    ("x+y = 5", "5", "math"),
    (r"x \ne 5", "5", "math"),
    ("x > 5", "5", "math"),
    ("x^2+2=0", "x^2+1=0", "math"),
    # Words are no units unless they are known to be.
    ("5 quadrillion", "5", "number"),
    ("at most 5", "5", "number"),
    ("5 factorial", "5", "number"),
    ("5 is not the answer", "5", "number"),
    ("5M", "5", "number"),
    ("~5", "5", "number"),
    (r"2\pi h", r"2\pi", "math"),
    (r"15 \text{ cm}", r"15\mbox{ cm}^2", "math"),
    (r"5.4 \text{ dollars}", r"5.4 \text{ cents}", "math"),
    (r"(\infty, 0]", r"(-\infty, 0]", "math"),
    (r"(-\infty,2)\cup(3,4)", r"(-\infty, 2) \cup (3, \infty)", "math"),
    (r"x<2 \text{ and } x>3", r"(-\infty, 2) \cup (3, \infty)", "math"),
    (r"\begin{vmatrix}1&0\\0&1\end{vmatrix}", r"\begin{pmatrix}1&0\\0&1\end{pmatrix}", "math"),
    (r"\frac{n(n+1)}{2}+0.0001n", r"\frac{n(n+1)}{2}", "math"),
    (r"\sqrt{x^2}", "x", "math"),
    # A set of sets is none of their elements.
    (r"\{\{1,2,3\}\}", r"\{1,2,3\}", "math"),
    (r"\{\emptyset\}", r"\emptyset", "math"),
    ("x = 2, y = 1", "(1,2)", "math"),
    ("y = 1, x = 2", "(1,2)", "math"),
    ("-(-5)", "5", "number"),
    ("0.4/2", "0.2", "number"),
    (r"\frac{\pi}{6} \text{ degrees}", r"\frac{\pi}{6}", "math"),
    (r"12 \text{ km}", r"12 \text{ m}", "math"),
    (r"-20^\circ F", r"-20^\circ\text{C}", "math"),
    ("x(x+1) = 5", "5", "math"),
    ("3:30 a.m.", "3:30 p.m.", "math"),
    ("yadseuT", "Tuesday", "math"),
]


@pytest.mark.parametrize(("answer", "gold", "kind"), RIGHT)
def test_equal_answers_are_right(
    answer: str, gold: str, kind: AnswerKind, checker: Checker
) -> None:
    for response in (rf"So \boxed{{{answer}}}.", f"Final answer: {answer}"):
        verdict = checker.check(response, problem(gold, kind))
        assert verdict.correct, verdict
        assert verdict.answer == answer


@pytest.mark.parametrize(("answer", "gold", "kind"), WRONG)
def test_different_answers_are_wrong(
    answer: str, gold: str, kind: AnswerKind, checker: Checker
) -> None:
    verdict = checker.check(f"<answer>{answer}</answer>", problem(gold, kind))
    assert not verdict.correct, verdict


def test_percent_is_a_hundredth_only_where_the_data_set_says_so(checker: Checker) -> None:
    for answer, gold in ((r"50\%", "0.5"), ("0.5", r"50\%"), (r"50\%", "50"), ("50", r"50\%")):
        response = rf"\boxed{{{answer}}}"
        assert checker.check(response, problem(gold, percent=True)).correct
        assert checker.check(response, problem(gold)).correct == ("50" in (answer, gold))


@pytest.mark.parametrize(
    ("answer", "gold", "kind", "tolerance", "right"),
    [
        ("4.15", "4.2", "number", 0.1, True),
        # Both ends count. In floats 4.3 - 4.2 is more than 0.1, and 4.2 - 4.1 too.
        ("4.3", "4.2", "number", 0.1, True),
        ("4.1", "4.2", "number", 0.1, True),
        ("4.30001", "4.2", "number", 0.1, False),
        ("4.15", "4.2", "number", 0.0, False),
        (r"\frac{25}{6}", "4.2", "math", 0.1, True),  # 4.1666...
        ("x = 4.25", "4.2", "math", 0.1, True),
        (r"4.1 \times 10^{-5}", r"4.2\times 10^{-5}", "math", 1e-6, True),
        (r"4.1 \times 10^{-5}", r"4.2\times 10^{-5}", "math", 1e-7, False),
        ("(1.05, 2)", "(1, 2)", "math", 0.1, True),
        ("(1.05, 2.2)", "(1, 2)", "math", 0.1, False),
        ("2.95, 1.05", "1, 3", "list", 0.1, True),
        # Each of both is near the same one.
        ("1.05, 1.1", "1, 3", "list", 0.1, False),
        # What is no number has no distance.
        ("x + 1.05", "x + 1", "math", 0.1, False),
        ("4.15", "about 4.2", "text", 0.1, False),
    ],
)
def test_a_tolerance_is_a_distance_from_the_gold_value(
    answer: str, gold: str, kind: AnswerKind, tolerance: float, right: bool, checker: Checker
) -> None:
    asked = replace(problem(gold, kind), tolerance=tolerance)
    assert checker.check(rf"\boxed{{{answer}}}", asked).correct == right


def test_two_missing_answers_are_not_equal(checker: Checker) -> None:
    assert not checker.check("", problem("")).correct
    assert not checker.check(r"\boxed{ }", problem("")).correct
    assert not checker.check(r"\boxed{\text{ }}", problem(r"\text{ }")).correct


def test_the_rule_that_decided_is_named() -> None:
    checker = Checker()
    expected = {
        ("", "4"): "none",
        (r"\boxed{4}", "4"): "string",
        (r"\boxed{4.0}", "4"): "rational",
        (r"\boxed{5}", "4"): "rational",
        (r"\boxed{2,1}", "1,2"): "list",
        (r"\boxed{9^{9^{9^9}}}", "4"): "refused",
    }
    for (response, gold), method in expected.items():
        assert checker.check(response, problem(gold)).method == method
    # Nothing of this was for algebra.
    assert checker.pool.alive == 0
    assert checker.check(r"\boxed{2x+2}", problem("2(1+x)")).method == "algebra"
    assert checker.pool.alive == 1
    assert checker.methods["rational"] == 2
    checker.close()
    assert checker.pool.alive == 0


def test_prose_and_garbage_against_a_number_start_no_process() -> None:
    checker = Checker()
    garbage = (
        "x",
        "1,2",
        "(1,2)",
        "\x00",
        "text",
        "2 + x",
        "4 = 2 + 2",
        "I think 2^2",
        "8 # 4 @ 9",
    )
    for answer in garbage:
        verdict = checker.check(f"Final answer: {answer}", problem("4", "number"))
        assert not verdict.correct
        assert verdict.method == "rational"
    assert checker.pool.alive == 0


def test_a_monster_is_stopped_and_the_next_answer_is_checked() -> None:
    checker = Checker(deadline_s=1.0)
    monster = r"\cos((10^{9999}+x)^{9999})"
    verdicts = checker.check_many(
        [(rf"\boxed{{{text}}}", problem("2+2x")) for text in (monster, "2(x+1)", "x+2")]
    )
    assert [verdict.method for verdict in verdicts] == ["timeout", "algebra", "algebra"]
    assert [verdict.correct for verdict in verdicts] == [False, True, False]
    assert checker.pool.timeouts == 1
    checker.close()


def test_collections_are_paired_off_in_every_order() -> None:
    # An atom rule that knows equality of numbers, so nothing is open.
    def atom(gold: Shape, answer: Shape) -> bool:
        return float(gold.text) == float(answer.text)

    gold = shape("1, 2, 2, 3")
    for order in itertools.permutations(("1.0", "2.0", "2", "3")):
        assert same(gold, shape(", ".join(order)), atom, unordered=False) is True
    assert same(gold, shape("1, 1, 2, 3"), atom, unordered=False) is False


def test_an_open_pair_leaves_a_collection_open_only_if_it_could_decide() -> None:
    def atom(gold: Shape, answer: Shape) -> bool | None:
        return None if "x" in gold.text + answer.text else gold.text == answer.text

    assert same(shape("1, x"), shape("y, 1"), atom, unordered=False) is None
    assert same(shape("1, x"), shape("2, 3"), atom, unordered=False) is False
    assert same(shape("(1, x)"), shape("(2, 3)"), atom, unordered=False) is False
    assert same(shape("(1, x)"), shape("(1, 3)"), atom, unordered=False) is None
