"""The divergence that is taken off the reward, against numbers worked out by hand."""

import dataclasses

import numpy as np
import pytest
import torch

from coterie.algorithms import (
    Learner,
    LearnerSettings,
    assign_credit,
    get,
    with_divergence_penalty,
)

PLAIN = LearnerSettings(importance_correction="none", lr=3e-3)
RLOO = dataclasses.replace(get("rloo"), kl_in_reward=0.1)


def group(make_rows, rewards):
    rows = make_rows(len(rewards))
    return [
        dataclasses.replace(row, reward=reward, reward_terms={"right": reward}, groups={"p": "x"})
        for row, reward in zip(rows, rewards)
    ]


def test_rloo_as_it_was_first_written(make_rows):
    # R = r - .1 sum log(pi / pi_ref): 1 - .2, 0 - 0, 0 - .1. Less the mean of the two others:
    # .8 + .05, 0 - .35, -.1 - .4.
    rows = with_divergence_penalty(group(make_rows, [1.0, 0.0, 0.0]), [2.0, 0.0, 1.0], RLOO)
    assert [row.reward for row in rows] == pytest.approx([0.8, 0.0, -0.1])
    assert rows[0].reward_terms == {"right": 1.0, "divergence": pytest.approx(-0.2)}
    assert assign_credit(rows, "p", RLOO).advantage_B == pytest.approx([0.85, -0.35, -0.5])


def test_reinforce_plus_plus_scales_what_is_left(make_rows):
    algorithm = dataclasses.replace(get("reinforce++"), kl_in_reward=0.5, ddof=0, epsilon=0.0)
    # 1 - .5 * 1, 0 - .5 * (-1): both .5, so nothing is left to learn; and 1 - .5, 0 - .5.
    level = with_divergence_penalty(group(make_rows, [1.0, 0.0]), [1.0, -1.0], algorithm)
    assert assign_credit(level, "p", algorithm).advantage_B.tolist() == [0, 0]
    apart = with_divergence_penalty(group(make_rows, [1.0, 0.0]), [1.0, 1.0], algorithm)
    assert assign_credit(apart, "p", algorithm).advantage_B == pytest.approx([1.0, -1.0])


def test_an_agents_contexts_pay_for_all_of_its_tokens(make_rows):
    first, second, other = group(make_rows, [1.0, 1.0, 0.0])
    rows = [dataclasses.replace(row, member="a") for row in (first, second)]
    paid = with_divergence_penalty([*rows, other], [2.0, 3.0, 1.0], RLOO)
    assert [row.reward for row in paid] == pytest.approx([0.5, 0.5, -0.1])


def test_without_a_weight_rows_come_back_as_they_are(make_rows):
    rows = make_rows(3)
    assert with_divergence_penalty(rows, [1.0, 2.0, 3.0], get("rloo")) == rows


def test_the_learner_sums_log_ratios_over_an_agents_own_tokens(tiny, make_rows):
    rows, model, start = make_rows(8), tiny(), tiny()
    learner = Learner(model, RLOO, PLAIN)
    assert learner.divergences(rows) == pytest.approx(np.zeros(8), abs=1e-6)
    learner.update(rows, np.linspace(-1, 1, 8))
    divergences = learner.divergences([*rows, dataclasses.replace(rows[0], status="deadline")])
    for row, value in zip(rows, divergences):
        ids = torch.from_numpy(row.tokens)[None]
        with torch.no_grad():
            new, old = (
                handle.module(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
                for handle in (model, start)
            )
        by_hand = float((new - old)[torch.from_numpy(row.mask[1:])].sum())
        assert value == pytest.approx(by_hand, abs=1e-5)
    assert np.abs(divergences[:-1]).max() > 0.01
    assert divergences[-1] == 0
    assert learner.divergences([]).shape == (0,)
    assert any(name.startswith("reference/") for name in learner.state_dict()[0])
