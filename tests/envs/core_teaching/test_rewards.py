"""Reward terms worked out by hand, and what is asked of the scorer for them."""

from dataclasses import replace
from typing import Any

import pytest

from coterie.datatypes import Problem
from coterie.envs.core_teaching.settings import weights_at

from .scripted import CORE, PROBLEM, RESCUE, RIGHT, WRONG, Played, trace


def test_every_term_by_hand(make: Any) -> None:
    other = trace(2, "15 - 3 =")
    answers = {**RESCUE, "alice_2": "9" + other}
    env = make(
        w_explore=(0.2, 0.5),
        lambda_cm=(0.0, 0.1),
        lambda_ta=0.2,
        teacher_lift=0.4,
        explore_correct_only=True,
    )
    played = Played(env, answers, epoch=2)

    # Embeddings: alice_2 starts with "9", all others with "<": cosine distance 1 to it, 0 among
    # themselves. Operations: "+ - =" for the others and "- =" for it, so Jaccard 2/3; "result" and
    # "strategy" stand in tags. d = .6 + .4 / 3 = .733333; .8 for nobody.
    far = 0.6 + 0.4 * (1 - 2 / 3) - 0.15
    # Leave-one-out in epoch 2 at .5: alice_2 is far from all; bob_1 has equals at distance 0.
    assert played.terms("exploration") == pytest.approx(
        {**dict.fromkeys(answers, 0.0), "alice_2": 0.5 * far}
    )
    # Round B: bob's only trace there is wrong, so alice_2 has nobody worth differing from. Round A:
    # alice has no correct trace, so bob_1 neither.
    assert played.terms("cross_model") == dict.fromkeys(answers, 0.0)
    # v2, c (1 - rho): round A 1 of 4 correct, round B 1 of 2.
    assert played.terms("trace_accuracy") == pytest.approx(
        {**dict.fromkeys(answers, 0.0), "bob_1": 0.2 * 0.75, "alice_2": 0.2 * 0.5}
    )
    # The hint of bob_1 lifted alice from 0 to 1; bob's own second try does not count.
    assert played.terms("teacher_lift") == pytest.approx(
        {**dict.fromkeys(answers, 0.0), "bob_1": 0.4}
    )
    for agent, info in played.infos.items():
        assert played.rewards[agent] == sum(info["reward_terms"].values())


def test_partial_credit_and_its_options(make: Any, scorer: Any) -> None:
    capital = Problem(id="c", question="?", gold="new york city", kind="text")
    answers = {**RESCUE, "alice_0": trace("york"), "bob_1": trace("new york city")}

    def exploitation(**changes: Any) -> tuple[float, float]:
        env = make(**changes)
        terms = Played(env, answers, problem=capital).terms("exploitation")
        return terms["alice_0"], terms["bob_1"]

    # F1 of one shared token of 1 and 3: 2 / 4 = .5.
    assert exploitation() == pytest.approx((0.3 * 0.5, 1.3))
    assert exploitation(alpha_only_if_wrong=True) == pytest.approx((0.15, 1.0))
    assert exploitation(alpha=0.1, w_exploit=2.0) == pytest.approx((0.1, 2.2))


def test_partial_credit_takes_the_best_of_several_gold_answers(make: Any, scorer: Any) -> None:
    capital = Problem(id="c", question="?", gold="albany", kind="text")
    both = replace(capital, alternatives=("new york city",))
    answers = {**RESCUE, "alice_0": trace("york"), "bob_1": trace("new york city")}
    for problem, credit in ((capital, (0.0, 0.0)), (both, (0.3 * 0.5, 1.3))):
        terms = Played(make(), answers, problem=problem).terms("exploitation")
        assert (terms["alice_0"], terms["bob_1"]) == pytest.approx(credit)


def test_wrong_traces_are_paid_for_distance_only_if_asked(make: Any) -> None:
    answers = {**RESCUE, "alice_0": "9" + WRONG}
    for correct_only, paid in ((True, 0.0), (False, 0.2 * 0.45)):
        played = Played(make(w_explore=(0.2,), explore_correct_only=correct_only), answers)
        # It differs from all others in its first letter: d = .6, the margin is .15.
        assert played.terms("exploration")["alice_0"] == pytest.approx(paid)


def test_ties_go_by_role_then_sample_whatever_the_round(make: Any) -> None:
    env = make(w_explore=(1.0,), explore_mode="literal", cap=1, explore_correct_only=False)
    played = Played(env, {**RESCUE, "alice_2": "9" + RIGHT})
    # alice_2 and bob_1 are equally right. alice_2 comes first, is the whole set and earns nothing;
    # all others are .6 away from it.
    assert played.terms("exploration") == pytest.approx(
        {**dict.fromkeys(RESCUE, 0.45), "alice_2": 0.0}
    )


def test_strategy_ratio_looks_inside_a_trace(make: Any, scorer: Any) -> None:
    block = "<strategy>{}<result>2</result></strategy>"
    # Two strategies that begin alike and one that does not: the greedy set has two of three.
    text = "".join(map(block.format, ("1 + 1", "1 + 1", "9 + 1"))) + "<answer>2</answer>"
    env = make(w_explore=(0.3,), explore_mode="strategy-ratio")
    played = Played(env, {**RESCUE, "bob_1": text})
    terms = played.terms("exploration")
    assert terms.pop("bob_1") == pytest.approx(0.3 * 2 / 3)
    assert set(terms.values()) == {0.0}
    assert played.episode["exploration_zero"] is False


def test_schedules_count_epochs_from_one() -> None:
    settings = CORE
    at = [weights_at(settings, epoch) for epoch in (1, 2, 3)]
    assert [weights.exploration for weights in at] == [0.2, 0.05, 0.05]
    assert [weights.cross_model for weights in at] == [0.0, 0.1, 0.1]


def test_failed_agents_are_left_out(make: Any) -> None:
    answers = {agent: text for agent, text in RESCUE.items() if agent not in ("alice_0", "bob_0")}
    played = Played(make(lambda_ta=0.2), answers)
    # rho of round A is now 1 of 2.
    assert played.terms("trace_accuracy")["bob_1"] == pytest.approx(0.2 * 0.5)
    assert played.episode["cold_rate"] == {"alice": 0.0, "bob": 1.0}
    failed = played.infos["alice_0"]
    assert failed["failed"]
    assert set(failed["reward_terms"].values()) == {0.0}
    assert failed["groups"]["problem"] == "q"
    assert played.infos["alice_2"]["rescued"]


def test_everyone_may_fail(make: Any) -> None:
    for env in (make(), make(CORE), make(k_hinted=0)):
        played = Played(env, {})
        assert set(played.rewards.values()) == {0.0}
        assert played.episode["answered"] == 0
        assert not played.episode["team_correct"]


def test_traces_without_an_answer(make: Any) -> None:
    played = Played(make(CORE), dict.fromkeys(RESCUE, ""))
    assert played.infos["bob_1"]["answer"] is None
    assert set(played.rewards.values()) == {0.0}
    assert played.episode["answered"] == 6


def test_requests_name_all_that_a_step_asks(make: Any, scorer: Any) -> None:
    env = make(w_explore=(0.2,), lambda_cm=(0.1,))
    two_ways = trace(3).replace(" <final", "<strategy>b<result>2</result></strategy> <final")
    answers = {**RESCUE, "bob_0": two_ways.replace("> 3 </final", "> 2 </final")}
    env.reset(seed=0, options={"problem": PROBLEM})
    for round_ in (("alice_0", "alice_1", "bob_0", "bob_1"), ("alice_2", "bob_2")):
        actions = {agent: answers[agent] for agent in round_}
        requests = env.score_requests(actions)
        assert scorer.checked == scorer.embedded == []
        env.step(actions)
        assert set(scorer.checked) <= {text for text, _ in requests.checks}
        assert set(scorer.embedded) == set(requests.embeddings)
        scorer.checked.clear()
        scorer.embedded.clear()


def test_nothing_is_embedded_without_a_weight(make: Any, scorer: Any) -> None:
    env = make()
    env.reset(seed=0, options={"problem": PROBLEM})
    assert env.score_requests(RESCUE).embeddings == ()
    Played(env, {**RESCUE, "alice_0": RIGHT})
    assert scorer.embedded == []
