"""Credit, losses and the learner. Choices are data; torch is imported when it is needed."""

from typing import TYPE_CHECKING, Any

from algorithms.algorithm import (
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
from algorithms.credit import Credit, assign_credit, with_divergence_penalty
from algorithms.dynamic_sampling import informative_groups, with_overlong_penalty
from algorithms.settings import LearnerSettings

if TYPE_CHECKING:
    from algorithms.learner import Learner
    from algorithms.logprobs import TrainableModel

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
    "TrainableModel",
    "assign_credit",
    "get",
    "informative_groups",
    "names",
    "register",
    "with_divergence_penalty",
    "with_overlong_penalty",
]


def __getattr__(name: str) -> Any:
    if name == "Learner":
        from algorithms.learner import Learner

        return Learner
    if name == "TrainableModel":
        from algorithms.logprobs import TrainableModel

        return TrainableModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
