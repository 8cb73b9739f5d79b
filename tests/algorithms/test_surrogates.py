"""Values and gradients derived by hand; g is the derivative by log pi."""

import math

import pytest
import torch

from coterie.algorithms import ClippedRatio, ClippedWeight, GateWeight, SequenceWeight, SoftGate
from coterie.algorithms.surrogates import surrogate

LN2 = math.log(2)


def run(choice, log_ratio, advantage, mask=None, old=-1.0):
    """Loss and gradient by log pi of one row whose old log-probabilities are all ``old``."""
    log_ratio = torch.tensor([log_ratio], dtype=torch.float64)
    old_BT = torch.full_like(log_ratio, old)
    logp_BT = (old_BT + log_ratio).requires_grad_()
    mask_BT = torch.ones_like(log_ratio, dtype=torch.bool) if mask is None else torch.tensor([mask])
    advantage_BT = torch.tensor([advantage], dtype=torch.float64)
    terms = surrogate(choice, logp_BT, old_BT, advantage_BT, mask_BT)
    loss_BT = terms.loss_BT.expand_as(mask_BT)
    (grad,) = torch.autograd.grad((loss_BT * mask_BT).sum(), logp_BT)
    return loss_BT[0].tolist(), grad[0].tolist(), terms.clipped_BT.expand_as(mask_BT)[0].tolist()


MASKED = 9.0
"""The log-ratio of a token that is not the row's own."""
FAR = [4.9, math.log(9.9), math.log(0.5)]
SEQUENCE, ROOT = [LN2, 0.0, MASKED], math.sqrt(2)
P = 1 / (1 + math.exp(-1))


@pytest.mark.parametrize(
    ("choice", "log_ratio", "advantage", "loss", "grad", "clipped"),
    [
        # r = 2, 1, 1/2 with A = 1: min(2, 1.2), min(1, 1), min(.5, .8); the first has no gradient
        (ClippedRatio(), [LN2, 0, -LN2], 1, [-1.2, -1, -0.5], [0, -1, -0.5], [1, 0, 0]),
        # A = -1: min(-2, -1.2), min(-1, -1), min(-.5, -.8); the last has no gradient
        (ClippedRatio(), [LN2, 0, -LN2], -1, [2, 1, 0.8], [2, 1, 0], [0, 0, 1]),
        # Bounds of unequal distance.
        (ClippedRatio(low=0.2, high=0.28), [math.log(1.25), math.log(1.3)], 1,
         [-1.25, -1.28], [-1.25, 0], [0, 1]),
        # r = e^4.9 = 134, A = -.7: 94 without the bound, 10 * .7 with it, and no gradient.
        (ClippedRatio(), FAR, -0.7,
         [0.7 * math.exp(4.9), 6.93, 0.56], [0.7 * math.exp(4.9), 6.93, 0], [0, 0, 1]),
        (ClippedRatio(dual=10.0), FAR, -0.7, [7, 6.93, 0.56], [0, 6.93, 0], [1, 0, 1]),
        # Where the advantage is positive nothing changes.
        (ClippedRatio(dual=10.0), FAR, 0.7, [-0.84, -0.84, -0.35], [0, 0, -0.35], [1, 1, 0]),
        # Mean log-ratio over the own tokens: (ln 2 + 0) / 2, s = sqrt(2). Each token carries s in
        # full: the mean over two tokens then has the gradient s A / 2 of each.
        (ClippedRatio("sequence", 0.5, 0.5), SEQUENCE, 1, [-ROOT] * 2, [-ROOT] * 2, [0, 0]),
        (ClippedRatio("sequence", 3e-4, 4e-4), SEQUENCE, 1, [-1.0004] * 2, [0, 0], [1, 1]),
        # In the words of CoRe a clipped sequence keeps its gradient: weight clip(sqrt 2) = 1.0004,
        # log pi = -1 + ln 2 and -1.
        (SequenceWeight(3e-4, 4e-4), SEQUENCE, 1,
         [-1.0004 * (LN2 - 1), 1.0004], [-1.0004] * 2, [1, 1]),
        # r = 1: sigmoid(0) 4 / tau = 2 / tau, derivative 4 sigmoid' r = 1
        (SoftGate(1.0, 1.05), [0], 3, [-6], [-3], [0]),
        (SoftGate(1.0, 1.05), [0], -3, [6 / 1.05], [3], [0]),
        # r = 2, tau = 1: p = sigmoid(1); loss -4 p, gradient -4 p (1 - p) r
        (SoftGate(1.0, 1.05), [LN2], 1, [-4 * P], [-8 * P * (1 - P)], [0]),
        # A ratio at its bound is not limited.
        (ClippedWeight(1.0), [0], 1, [1], [-1], [0]),
        # log pi = -1 + ln 8 and -1 - ln 8: weights min(8, 5) and 1/8, times A log pi
        (ClippedWeight(5.0), [3 * LN2, -3 * LN2], 1,
         [-5 * (3 * LN2 - 1), (1 + 3 * LN2) / 8], [-5, -1 / 8], [1, 0]),
    ],
)  # fmt: skip
def test_by_hand(choice, log_ratio, advantage, loss, grad, clipped):
    mask = [ratio != MASKED for ratio in log_ratio]
    got = run(choice, [float(ratio) for ratio in log_ratio], [float(advantage)], mask)
    own = len(loss)
    assert got[0][:own] == pytest.approx(loss, rel=1e-7)
    assert got[1] == pytest.approx([*grad, *[0] * (len(mask) - own)], rel=1e-7)
    assert got[2][:own] == [bool(value) for value in clipped]


@pytest.mark.parametrize("choice", [ClippedRatio("sequence", 0.5, 0.5), SequenceWeight(0.5, 0.5)])
def test_a_row_without_own_tokens_has_no_gradient(choice):
    assert run(choice, [LN2], [1.0], [False])[1] == [0.0]


def test_sequence_ratio_with_advantages_by_token():
    # s = 1 (log-ratios cancel); each token's gradient is that of its own advantage.
    loss, grad, _ = run(ClippedRatio("sequence"), [0.1, -0.1], [2.0, -3.0])
    assert loss == pytest.approx([-2.0, 3.0])
    assert grad == pytest.approx([-2.0, 3.0])


def test_sapo_in_the_words_of_core_never_attenuates():
    # r = 20: the published gate's gradient vanishes, the worded one has weight 4 sigmoid(19).
    _, published, _ = run(SoftGate(1.0, 1.05), [math.log(20)], [1.0])
    assert abs(published[0]) < 1e-6
    _, worded, _ = run(GateWeight(1.0, 1.05), [math.log(20)], [1.0])
    assert worded == pytest.approx([-4.0], abs=1e-6)
    # r = 1: 2 / tau, where the published one has 1. Without the stop-gradient an unlikely token
    # would be pushed down: at log pi = -9, -(f + f' r log pi) = -(2 + 1 * -9) = 7.
    for old in (-1.0, -9.0):
        _, worded, _ = run(GateWeight(1.0, 1.05), [0.0], [1.0], old=old)
        assert worded == pytest.approx([-2.0])


@pytest.mark.parametrize(
    "choice",
    [ClippedRatio(), ClippedRatio("sequence"), SoftGate(), ClippedWeight(), SequenceWeight(),
     GateWeight()],
)  # fmt: skip
def test_absurd_ratios_stay_finite(choice):
    loss, grad, _ = run(choice, [900.0, -900.0], [1.0])
    assert all(map(math.isfinite, loss + grad))


def test_an_unknown_surrogate_is_named():
    with pytest.raises(TypeError, match="registered for str"):
        run("grpo", [0.0], [1.0])
