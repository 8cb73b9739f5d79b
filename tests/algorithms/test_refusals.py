"""Settings that cannot work are refused when they are made, in one sentence."""

from math import nan

import pytest

from coterie.algorithms import (
    Algorithm,
    ClippedRatio,
    ClippedWeight,
    GateWeight,
    LearnerSettings,
    SequenceWeight,
    SoftGate,
)
from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import UserError

AVERAGE = {"baseline": "role-average", "scale": "none"}
REFUSED = {
    Algorithm: [
        ({"kl_coefficient": 0.1, "kl_estimator": "k1"}, "k1 in the loss"),
        ({"kl_importance": True}, "kl-coefficient"),
        ({"kl_coefficient": -1.0}, "kl-coefficient must not be negative"),
        ({"kl_in_reward": -0.1}, "kl-in-reward must not be negative"),
        ({"kl_in_reward": nan}, "kl-in-reward must not be negative"),
        ({"kl_in_reward": 0.1, "combine": "normalise-then-sum"}, "each term, a divergence too"),
        ({"combine": "normalise-then-sum", "scale": "none"}, "scales each term by its group"),
        ({"epsilon": -1.0}, "epsilon must not be negative"),
        ({"entropy_coefficient": nan}, "entropy-coefficient"),
        ({"reduction": "constant-length"}, "needs algo.length"),
        ({"length": 5}, "constant-length only"),
        ({"overlong_limit": 5}, "needs both"),
        ({"overlong_limit": 5, "overlong_buffer": 6}, "between 0 and"),
        ({"max_generation_batches": 0}, "max-generation-batches"),
        ({"baseline_decay": 1.0}, "baseline-decay must be 0 to below 1"),
        ({"baseline_decay": 0.9}, "does nothing without algo.baseline role-average"),
        ({"baseline": "role-average"}, "say algo.scale none"),
        (AVERAGE | {"advantage": "m:f"}, "leave out .*algo.advantage"),
        (AVERAGE | {"dynamic_sampling": True}, "leave out .*algo.dynamic-sampling"),
        ({"generation_batch": 96}, "nothing without algo.dynamic-sampling"),
        ({"generation_batch": -1, "dynamic_sampling": True}, "generation-batch must not"),
    ],
    ClippedRatio: [
        ({"dual": 1.0}, "dual must be finite and above 1"),
        ({"dual": nan}, "dual must be finite and above 1"),
        ({"low": 1.0}, "low must lie between 0 and 1"),
    ],
    SequenceWeight: [({"high": 0.0}, "high be above 0, and finite")],
    SoftGate: [({"tau_positive": 0.0}, "tau-positive")],
    GateWeight: [({"tau_negative": -1.0}, "tau-negative")],
    ClippedWeight: [({"high": 0.5}, "below 1")],
    Distillation: [
        ({"beta": -1.0}, "beta must not be negative"),
        ({"bound": 0.0}, "bound must be above 0"),
        ({"decay": 1.0}, "decay must be at least 0 and below 1"),
        ({"likeliest": -1}, "likeliest must not be negative"),
        ({"fade": -1}, "fade is a share"),
        ({"fade": 50}, "fade is a share"),
    ],
    LearnerSettings: [
        ({"lr": 0.0}, "lr"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"epochs": 0}, "epochs"),
        ({"micro_batch_tokens": 0}, "micro-batch-tokens"),
        ({"importance_cap": 0.5}, "importance-cap"),
        ({"max_grad_norm": 0.0}, "max-grad-norm"),
        ({"weight_decay": -1.0}, "weight-decay"),
        ({"warmup": -1.0}, "warmup"),
    ],
}
ROWS = [(kind, *row) for kind, rows in REFUSED.items() for row in rows]


@pytest.mark.parametrize(("kind", "fields", "words"), ROWS)
def test_settings_that_cannot_work(kind, fields, words: str) -> None:
    with pytest.raises(UserError, match=words):
        kind(**fields)
