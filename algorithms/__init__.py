"""Credit, losses and the learner.

An algorithm is data. torch is imported when it is needed.
"""

from importlib import import_module
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
from coterie.algorithms.informative_groups import informative_groups
from coterie.algorithms.overlong import with_overlong_penalty
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


_NEED_TORCH = {"Learner": "learner", "TrainableModel": "logprobs"} | dict.fromkeys(
    ("Terms", "surrogate", "token_ratio"), "surrogates"
)
"""Name -> its module, which is imported when it is asked for."""


def __getattr__(name: str) -> Any:
    if name in _NEED_TORCH:
        return getattr(import_module(f"coterie.algorithms.{_NEED_TORCH[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
