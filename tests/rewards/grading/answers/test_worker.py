"""What formulas are worth, held to mathematics and to math-verify."""

import itertools
import json
import logging
import re
import warnings

import pytest

from coterie.rewards.grading.answers.grammar import read
from coterie.rewards.grading.answers.normalise import plain
from coterie.rewards.grading.answers.worker import compare


def outcome(gold: str, answer: str) -> str:
    """As the process has it: over JSON, with ``=`` for equations."""
    pair = []
    for text in (gold, answer):
        sides = [read(plain(side)) for side in text.split("=")]
        assert None not in sides, text
        pair.append(sides[0] if len(sides) == 1 else ("equation", *sides))
    return compare(*json.loads(json.dumps(pair, default=str)))


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\sqrt{3+2\sqrt2}", r"1+\sqrt2"), (r"\frac{-1+\sqrt5}{2}", r"2\cos 72^\circ"),
        (r"\frac{\pi}{4}", r"\arctan 1"), (r"\sqrt[3]{-8}", "-2"), (r"(-8)^{2/3}", "4"),
        (r"\log_2 10", r"\frac{\ln 10}{\ln 2}"), (r"\binom{10}{3}", r"\frac{10!}{3! \cdot 7!}"),
        (r"e^{i\pi}", "-1"), (r"|3-5i|", r"\sqrt{34}"), (r"\lfloor -2.5 \rfloor", "-3"),
        (r"\sin 2x", r"2\sin x\cos x"), (r"\cos^2 x", r"1-\sin^2 x"),
        (r"\tan x", r"\frac{\sin x}{\cos x}"), (r"\sqrt{x^2}", "|x|"), (r"x^{1/3}", r"\sqrt[3]{x}"),
        ("2^{n}", r"2 \cdot 2^{n-1}"), (r"\binom{n}{2}", r"\frac{n(n-1)}{2}"),
        ("n!", r"n \cdot (n-1)!"), (r"\log x^3", r"\log (x^3)"), ("a^{b+c}", "a^b a^c"),
        ("y=2x+3", "4x-2y+6=0"), ("x^2+y^2=1", "y^2=1-x^2"),
        # Real in every step of both for some values, and equal there.
        (r"\ln x^2", r"2\ln x"), (r"\frac{u}{\sqrt{uv}}", r"\sqrt{\frac uv}"),
        (r"\log_3(pq)", r"\log_3 q+\log_3 p"), (r"\sqrt{5-t}\sqrt{t-2}", r"\sqrt{7t-t^2-10}"),
        (r"\sqrt{\frac{1}{x-300}}", r"(x-300)^{-1/2}"), (r"t^{5/2}", r"t^2\sqrt t"),
        (r"i\sqrt{\frac{a}{b}}", r"\frac{i\sqrt{ab}}{b}"), (r"\sqrt{-5}", r"i\sqrt5"),
        (r"y=\ln\frac{a}{x}", r"y+\ln x=\ln a"),
    ],
)  # fmt: skip
def test_equal_formulas(gold: str, answer: str) -> None:
    assert outcome(gold, answer) == outcome(answer, gold) == "equal"


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        # Equal for positive numbers only, and real for others too.
        (r"\sqrt{x^2}", "x"), (r"\sqrt{x^2}", "-x"), ("|x|", "x"), (r"\sqrt{p^2q}", r"p\sqrt q"),
        (r"\sqrt{a^2b^2}", "ab"), (r"\sqrt{u^6}", "u^3"), (r"\arcsin(\sin x)", "x"),
        (r"\sqrt{(a-b)^2}", "a-b"), (r"\arctan x+\arctan\frac1x", r"\frac{x\pi}{2x}"),
        (r"\sqrt{x-4}", r"\sqrt{4-x}"), (r"\sqrt{\frac uv}", r"\frac{\sqrt{uv}}{u}"),
        # Close, and not equal.
        (r"\sqrt2", "1." + "4142135623730950488016887242096980785696718753769"),
        (r"\pi", r"\frac{355}{113}"), (r"e^{\pi\sqrt{163}}", "262537412640768744"),
        (r"\frac{\pi}{10^{80}}", r"\frac{e}{10^{80}}"), ("x+10^{-200}", "x"),
        ("10^{100}+1", "10^{100}"),
        # Of no value anywhere, or nowhere together.
        ("0/0", "0/0"), ("1/0", r"\infty"), (r"\infty", r"-\infty"), (r"\infty", "10^{400}"),
        ("0^0", "1"), ("x", "X"), ("x=5", "y=5"), ("x^2+1=0", "x^2+2=0"), ("x=x", "x=x"),
        ("6=5", "6=5"), ("x^2=1", "x^3=x"),
    ],
)  # fmt: skip
def test_different_formulas(gold: str, answer: str) -> None:
    assert outcome(gold, answer) == outcome(answer, gold) == "different"


PAIRS = [
    (r"\sqrt{\frac{1}{k}}\sqrt m", r"\frac{\sqrt{mk}}{k}", "equal"),
    (r"\ln\frac{k}{m}", r"\ln k-\ln m", "equal"),
    (r"\sqrt{\frac{2hm}{k}}", r"\frac{\sqrt{2m}\sqrt h}{\sqrt k}", "equal"),
    (r"\sqrt{m^2-k^2}", r"\sqrt{m-k}\sqrt{m+k}", "equal"),
    (r"\sqrt{h^2k}", r"h\sqrt k", "different"),
    (r"\frac{hm}{\sqrt{k^2}}", r"\frac{hm}{k}", "different"),
    (r"\sqrt{\frac{m}{k}}", r"\sqrt{\frac{k}{m}}", "different"),
    ("|hk|", r"\sqrt{h^2}k", "different"),
]


def renamed(text: str, names: dict[str, str]) -> str:
    text = re.sub(r"\\[a-z]+|[hkm]", lambda match: names.get(match[0], match[0]), text)
    # A name of one letter may touch the command before it.
    return re.sub(r"(\\(?:sqrt|ln))(?=[A-Za-z])", r"\1 ", text)


@pytest.mark.parametrize(("gold", "answer", "verdict"), PAIRS)
def test_names_of_variables_decide_nothing(gold: str, answer: str, verdict: str) -> None:
    for names in [*itertools.permutations("hkm"), ("z", "Q", "a"), ("b", "x_1", "A")]:
        left, right = (
            renamed(text, dict(zip("hkm", names, strict=True))) for text in (gold, answer)
        )
        assert outcome(left, right) == outcome(right, left) == verdict, (left, right)


FORMS = [
    *("0", "1", "-1", "2", r"\frac{1}{2}", "0.25", r"\sqrt{2}", r"\frac{2}{\sqrt{2}}"),
    *(r"2\sqrt{3}", r"\sqrt{12}", r"\frac{6}{\sqrt{3}}", r"\frac{\sqrt{3}}{2}", r"\pi"),
    *(r"\frac{2\pi}{8}", r"\frac{\pi}{4}", "2^{10}", "1024", "4^{5}", "5!", "120", r"\sqrt[3]{8}"),
    *(r"\frac{\sqrt{5}-1}{2}", r"\frac{2}{1+\sqrt{5}}", r"\log_{2}{8}", r"\ln{2}", r"-\ln{0.5}"),
    *("x+1", "1+x", "2x+2", "2(x+1)", "(x+1)^{2}", "x^{2}+2x+1", "x^{2}-1", "(x-1)(x+1)"),
    *(r"\frac{x^{2}-1}{x-1}", r"\frac{1}{x}", "x^{-1}", "xy", "yx", "x^{y}", "y^{x}"),
    *(r"\sin{x}", r"\sin{2x}", r"2\sin{x}\cos{x}", r"\frac{n(n+1)}{2}", r"\binom{n+1}{2}"),
]


def test_math_verify_agrees_about_pairs_of_many_forms() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        math_verify = pytest.importorskip("math_verify")
        logging.getLogger("math_verify").disabled = True
        parsed = [math_verify.parse(f"${form}$", parsing_timeout=None) for form in FORMS]
        assert all(parsed)
        pairs = itertools.combinations(zip(FORMS, parsed), 2)
        for (first, left), (second, right) in itertools.islice(pairs, 0, None, 3):
            if bool(left[0].free_symbols) != bool(right[0].free_symbols):
                continue
            same = math_verify.verify(left, right, timeout_seconds=None)
            assert (outcome(first, second) == "equal") == same, (first, second)
