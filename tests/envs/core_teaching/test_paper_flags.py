"""Every flag that separates CoRe's reading from ours changes what a trace earns, by hand.

The scorer of these tests puts traces at distance .6 where their first letters differ, else at 0.
"""

from dataclasses import replace
from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import Problem
from coterie.envs import settings_of
from coterie.envs.core_teaching.settings import CoreTeachingSettings, weighted

from .scripted import RESCUE, RIGHT, WRONG, Played, trace

CITY = Problem(id="c", question="?", gold="new york city", kind="text")
MINUS = Problem(id="m", question="3 - 6 =", gold="-3", kind="number")


@pytest.mark.parametrize(("eta", "paid"), [(0.1, 0.1 * 0.45), (0.2, 0.0)])
def test_eta_is_what_a_partners_best_trace_must_earn(make: Any, eta: float, paid: float) -> None:
    # Nobody of bob's is right. His best names one word of three: F1 .5, of which alpha .3 is .15.
    answers = {**dict.fromkeys(RESCUE, trace("paris")), "bob_0": trace("york")}
    answers["alice_0"] = "9" + trace("new york city")
    env = make(lambda_cm=(0.1,), eta=eta)
    assert Played(env, answers, problem=CITY).terms("cross_model")["alice_0"] == pytest.approx(paid)


@pytest.mark.parametrize(("margin", "paid"), [(0.15, 0.045), (0.5, 0.01), (0.6, 0.0)])
def test_delta_cm_is_the_margin_to_a_partner(make: Any, margin: float, paid: float) -> None:
    answers = {**RESCUE, "alice_0": "9" + RIGHT}
    terms = Played(make(lambda_cm=(0.1,), delta_cm=margin), answers).terms("cross_model")
    assert terms["alice_0"] == pytest.approx(paid)


@pytest.mark.parametrize(("correct_only", "paid"), [(True, 0.0), (False, 0.1 * 0.45)])
def test_equation_6_pays_wrong_traces(make: Any, correct_only: bool, paid: float) -> None:
    answers = {**RESCUE, "alice_0": "9" + WRONG}
    env = make(lambda_cm=(0.1,), cross_requires_correct=correct_only)
    assert Played(env, answers).terms("cross_model")["alice_0"] == pytest.approx(paid)


@pytest.mark.parametrize(("on_numbers", "paid"), [(True, 0.3 * 2 / 3), (False, 0.0)])
def test_equation_2_gives_partial_credit_on_numbers(
    make: Any, on_numbers: bool, paid: float
) -> None:
    # 3 for -3: one of the tokens "-" and "3" is shared, F1 = 2 * 1 / (1 + 2).
    answers = dict.fromkeys(RESCUE, trace(3))
    env = make(partial_on_numbers=on_numbers)
    terms = Played(env, answers, problem=MINUS).terms("exploitation")
    assert terms["alice_0"] == pytest.approx(paid)


@pytest.mark.parametrize(("version", "paid"), [("v1", 0.25), ("v2", 0.75)])
def test_both_versions_of_equation_5(make: Any, version: str, paid: float) -> None:
    # bob_1 is the one right trace of four in the first round: c rho and c (1 - rho).
    terms = Played(make(lambda_ta=1.0, trace_accuracy=version), RESCUE).terms("trace_accuracy")
    assert terms["bob_1"] == pytest.approx(paid)
    assert terms["alice_0"] == 0


@pytest.mark.parametrize(("pool", "paid"), [("question", 0.0), ("model", 0.45)])
def test_who_a_trace_is_compared_with(make: Any, pool: str, paid: float) -> None:
    # bob_0 begins as alice_0 does; among her own traces she is alone.
    answers = {**RESCUE, "alice_0": "9" + WRONG, "bob_0": "9" + WRONG}
    env = make(w_explore=(1.0,), explore_pool=pool, explore_correct_only=False)
    assert Played(env, answers).terms("exploration")["alice_0"] == pytest.approx(paid)


def test_which_terms_have_a_weight() -> None:
    assert weighted(CoreTeachingSettings()) == ["exploitation"]
    # The cross-model term begins in the second epoch.
    assert weighted(settings_of("core-teaching", preset="core-tiny")) == [
        *("exploitation", "exploration", "cross_model", "trace_accuracy", "rescue")
    ]


@pytest.mark.parametrize(("margin", "paid"), [(None, True), (0.15, False)])
def test_margins_of_the_miniature_are_on_the_scale_of_tiny_traces(
    margin: float | None, paid: bool
) -> None:
    """Two traces of one chain that differ in a step are nearer than the paper's .15: core-tiny's
    margins pay them for distance, from others and, in the second epoch, from the partner."""
    settings = settings_of("core-teaching", preset="core-tiny")
    if margin is not None:
        settings = replace(settings, delta=margin, delta_cm=margin)
    env: Any = envs.make("core-teaching", settings=settings, view="text")
    right = "7 + 8 = 5\n5 - 3 = 2\nAnswer: 2"
    near, far = right.replace("= 5\n5", "= 6\n6"), right.replace("- 3 = 2", "- 3 = 1")
    answers = dict.fromkeys(RESCUE, right) | {"alice_0": near, "bob_1": far.replace(": 2", ": 1")}
    played = Played(env, answers, epoch=2)
    for term in ("exploration", "cross_model"):
        assert (max(played.terms(term).values()) > 0) is paid
