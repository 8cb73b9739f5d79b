"""Settings that cannot work are refused when they are made, in one sentence."""

from math import nan

import pytest

from coterie.algorithms import Algorithm, ClippedRatio, LearnerSettings
from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import UserError

AVERAGE = {"baseline": "role-average", "scale": "none"}
REFUSED = {
    Algorithm: [
        ({"kl_coefficient": 0.1, "kl_estimator": "k1"}, "k1 in the loss"),
        ({"kl_importance": True}, "kl-importance does nothing without algo.kl-coefficient$"),
        (
            {"kl_coefficient": 0.1, "kl_estimator": "k2", "kl_importance": True},
            "k2 in the loss has the gradient of the divergence, .* leave it out",
        ),
        ({"kl_estimator": "k2"}, "kl-estimator does nothing without algo.kl-coefficient$"),
        ({"kl_in_reward": 0.1, "combine": "normalise-then-sum"}, "kl-in-reward has no effect"),
        ({"combine": "normalise-then-sum", "scale": "none"}, "scales each term by its group"),
        ({"entropy_coefficient": nan}, "entropy_coefficient is nan; it must be finite"),
        ({"length": 5}, "algo.length does nothing without algo.reduction constant-length$"),
        ({"overlong_limit": 5}, "needs both"),
        (
            {"overlong_limit": 5, "overlong_buffer": 6},
            "overlong-buffer must be at most algo.overlong-limit",
        ),
        (
            {"overlong_limit": 5, "overlong_buffer": 2, "combine": "normalise-then-sum"},
            "overlong-factor has no effect",
        ),
        ({"baseline_decay": 0.9}, "does nothing without algo.baseline role-average"),
        ({"baseline": "role-average"}, "say algo.scale none"),
        ({"combine": "normalise-then-sum", "advantage": "m:f"}, "compares whole rewards"),
        (AVERAGE | {"advantage": "m:f"}, "leave out .*algo.advantage"),
        (AVERAGE | {"dynamic_sampling": True}, "leave out .*algo.dynamic-sampling"),
        ({"generation_batch": 96}, "nothing without algo.dynamic-sampling"),
        ({"max_generation_batches": 3}, "nothing without algo.dynamic-sampling"),
    ],
    ClippedRatio: [({"dual": 1.0}, "dual is 1.0; it must be above 1")],
    Distillation: [
        ({"fade": 50}, "fade is 50; it must be 0 to 1"),
        ({"teacher_revision": "main"}, "without algo.distillation.teacher$"),
        ({"beta": 1.0, "reader": "start", "decay": 0.5}, "without .*distillation.reader average$"),
        ({"teacher": "t"}, "teacher does nothing without algo.distillation.beta"),
        ({"teacher": "t", "beta": 1.0, "reader": "start"}, "are about the role's own weights"),
        ({"teacher": "t", "beta": 1.0, "decay": 0.5}, "are about the role's own weights"),
        ({"rewards": False}, "nothing to learn from without algo.distillation.beta"),
        ({"rewards": False, "beta": 1.0, "fade": 0.5}, "once algo.distillation.fade 0.5 has"),
    ],
    LearnerSettings: [
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"importance_correction": "none", "importance_cap": 3.0}, "importance-cap does nothing"),
    ],
}
ROWS = [(kind, *row) for kind, rows in REFUSED.items() for row in rows]


@pytest.mark.parametrize(("kind", "fields", "words"), ROWS)
def test_settings_that_cannot_work(kind, fields, words: str) -> None:
    with pytest.raises(UserError, match=words):
        kind(**fields)
