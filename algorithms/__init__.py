"""Credit, losses and the learner. Choices are data; torch is imported when it is needed."""

from typing import TYPE_CHECKING, Any

from coterie.algorithms.algorithm import (
    ALGORITHMS,
    Algorithm,
    ClippedRatio,
    ClippedWeight,
    GateWeight,
    SequenceWeight,
    SoftGate,
    Surrogate,
    get,
    names,
    register,
)
from coterie.algorithms.credit import Credit, assign_credit, with_divergence_penalty
from coterie.algorithms.dynamic_sampling import informative_groups, with_overlong_penalty
from coterie.algorithms.settings import LearnerSettings

if TYPE_CHECKING:
    from coterie.algorithms.learner import Learner
    from coterie.algorithms.logprobs import TrainableModel
    from coterie.algorithms.surrogates import Terms, surrogate, token_ratio

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "ClippedRatio",
    "ClippedWeight",
    "Credit",
    "GateWeight",
    "Learner",
    "LearnerSettings",
    "SequenceWeight",
    "SoftGate",
    "Surrogate",
    "Terms",
    "TrainableModel",
    "assign_credit",
    "get",
    "informative_groups",
    "names",
    "register",
    "surrogate",
    "token_ratio",
    "with_divergence_penalty",
    "with_overlong_penalty",
]


def __getattr__(name: str) -> Any:
    if name == "Learner":
        from coterie.algorithms.learner import Learner

        return Learner
    if name == "TrainableModel":
        from coterie.algorithms.logprobs import TrainableModel

        return TrainableModel
    if name in ("Terms", "surrogate", "token_ratio"):
        from coterie.algorithms import surrogates

        return getattr(surrogates, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
