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
        ({"kl_coefficient": -1.0}, "kl_coefficient is -1.0; it must be at least 0"),
        ({"kl_in_reward": -0.1}, "kl_in_reward is -0.1; it must be at least 0"),
        ({"kl_in_reward": nan}, "kl_in_reward is nan; it must be at least 0 and finite"),
        ({"kl_in_reward": 0.1, "combine": "normalise-then-sum"}, "each term, a divergence too"),
        ({"combine": "normalise-then-sum", "scale": "none"}, "scales each term by its group"),
        ({"epsilon": -1.0}, "epsilon is -1.0; it must be at least 0"),
        ({"entropy_coefficient": nan}, "entropy_coefficient is nan; it must be finite"),
        ({"reduction": "constant-length"}, "needs algo.length"),
        ({"length": 5}, "constant-length only"),
        ({"overlong_limit": 5}, "needs both"),
        (
            {"overlong_limit": 5, "overlong_buffer": 6},
            "overlong-buffer must be at most algo.overlong-limit",
        ),
        ({"max_generation_batches": 0}, "max_generation_batches is 0; it must be at least 1"),
        ({"baseline_decay": 1.0}, "baseline_decay is 1.0; it must be at least 0 and below 1"),
        ({"baseline_decay": 0.9}, "does nothing without algo.baseline role-average"),
        ({"baseline": "role-average"}, "say algo.scale none"),
        (AVERAGE | {"advantage": "m:f"}, "leave out .*algo.advantage"),
        (AVERAGE | {"dynamic_sampling": True}, "leave out .*algo.dynamic-sampling"),
        ({"generation_batch": 96}, "nothing without algo.dynamic-sampling"),
        (
            {"generation_batch": -1, "dynamic_sampling": True},
            "generation_batch is -1; it must be at least 0",
        ),
    ],
    ClippedRatio: [
        ({"dual": 1.0}, "dual is 1.0; it must be above 1"),
        ({"dual": nan}, "dual is nan; it must be above 1 and finite"),
        ({"low": 1.0}, "low is 1.0; it must be above 0 and below 1"),
    ],
    SequenceWeight: [({"high": 0.0}, "high is 0.0; it must be above 0")],
    SoftGate: [({"tau_positive": 0.0}, "tau_positive is 0.0; it must be above 0")],
    GateWeight: [({"tau_negative": -1.0}, "tau_negative is -1.0; it must be above 0")],
    ClippedWeight: [({"high": 0.5}, "high is 0.5; it must be at least 1")],
    Distillation: [
        ({"beta": -1.0}, "beta is -1.0; it must be at least 0"),
        ({"bound": 0.0}, "bound is 0.0; it must be above 0"),
        ({"decay": 1.0}, "decay is 1.0; it must be at least 0 and below 1"),
        ({"likeliest": -1}, "likeliest is -1; it must be at least 0"),
        ({"fade": -1}, "fade is -1; it must be 0 to 1"),
        ({"fade": 50}, "fade is 50; it must be 0 to 1"),
    ],
    LearnerSettings: [
        ({"lr": 0.0}, "lr is 0.0; it must be above 0"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"epochs": 0}, "epochs"),
        ({"micro_batch_tokens": 0}, "micro_batch_tokens"),
        ({"importance_cap": 0.5}, "importance_cap"),
        ({"max_grad_norm": 0.0}, "max_grad_norm"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"warmup": -1.0}, "warmup"),
    ],
}
ROWS = [(kind, *row) for kind, rows in REFUSED.items() for row in rows]


@pytest.mark.parametrize(("kind", "fields", "words"), ROWS)
def test_settings_that_cannot_work(kind, fields, words: str) -> None:
    with pytest.raises(UserError, match=words):
        kind(**fields)
