"""What must hold for any rewards and any log-probabilities."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.algorithms import ALGORITHMS, get
from coterie.algorithms.batching import Batch
from coterie.algorithms.credit import advantages
from coterie.algorithms.objective import Totals, objective

NAMES = st.sampled_from(list(ALGORITHMS))
REWARDS = st.lists(
    st.tuples(st.integers(-64, 64).map(lambda n: n / 16), st.integers(0, 3)),
    min_size=1,
    max_size=20,
)
FAST = settings(max_examples=25, deadline=None)


def arrays(rewards):
    return np.array([r for r, _ in rewards]), np.array([g for _, g in rewards])


@FAST
@given(NAMES, REWARDS, st.randoms(use_true_random=False))
def test_order_does_not_matter(name, rewards, random):
    order = list(range(len(rewards)))
    random.shuffle(order)
    reward, group = arrays(rewards)
    whole = advantages(reward, group, get(name))
    np.testing.assert_allclose(
        advantages(reward[order], group[order], get(name)), whole[order], rtol=1e-9, atol=1e-12
    )


@FAST
@given(NAMES, REWARDS, st.integers(-100, 100))
def test_a_shift_of_a_groups_rewards_changes_nothing(name, rewards, shift):
    reward, group = arrays(rewards)
    shifted = reward + np.where(group == group[0], shift, 0)
    np.testing.assert_allclose(
        advantages(shifted, group, get(name)),
        advantages(reward, group, get(name)),
        rtol=1e-9,
        atol=1e-9,
    )


@FAST
@given(NAMES, REWARDS)
def test_groups_are_balanced_and_equal_rewards_are_zero(name, rewards):
    reward, group = arrays(rewards)
    got = advantages(reward, group, get(name))
    for number in set(group.tolist()):
        assert abs(got[group == number].sum()) < 1e-9
        if len(set(reward[group == number])) == 1:
            assert (got[group == number] == 0).all()
        else:
            best = reward[group == number] == reward[group == number].max()
            assert (got[group == number][best] > 0).all()


def part(name, logp, old, mask, advantage):
    logp = logp.clone().requires_grad_()
    batch = Batch(
        ids_BT=torch.zeros(logp.shape[0], logp.shape[1] + 1, dtype=torch.long),
        mask_BT=mask,
        sampler_BT=old,
        advantage_B=advantage,
        weight_B=torch.ones(len(advantage)),
    )
    totals = Totals(len(advantage), int(mask.sum()))
    share = objective(logp, torch.zeros_like(logp), old, None, batch, get(name), totals)
    share.loss.backward()
    return float(share.loss.detach()), logp.grad, share.sums


def random_batch(seed, rows=4, width=7):
    generator = torch.Generator().manual_seed(seed)
    logp = -5 * torch.rand(rows, width, generator=generator)
    old = logp + 0.5 * torch.randn(rows, width, generator=generator)
    mask = torch.rand(rows, width, generator=generator) < 0.6
    mask[:, 0] = True
    return logp, old, mask, torch.randn(rows, generator=generator)


@FAST
@given(NAMES, st.integers(0, 10**6))
@pytest.mark.parametrize("junk", [50.0, torch.nan])
def test_masked_tokens_do_not_matter(junk, name, seed):
    logp, old, mask, advantage = random_batch(seed)
    loss, grad, sums = part(name, logp, old, mask, advantage)
    spoiled = torch.where(mask, logp, junk)
    other_loss, other_grad, other_sums = part(name, spoiled, old, mask, advantage)
    assert loss == other_loss
    assert torch.equal(grad[mask], other_grad[mask])
    assert torch.equal(sums, other_sums)
