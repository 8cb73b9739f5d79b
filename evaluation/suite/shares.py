"""What each agent adds to what a team can solve."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluation.metrics.team import shapley_shares, subset_unions
from evaluation.metrics.variance import mean_at_n
from evaluation.numbers import plain_number
from evaluation.suite.responses import Responses


def shares(sets: Sequence[Mapping[str, Responses]]) -> dict[str, dict[str, Any]]:
    """``unions``: every subset of agents -> share of questions that one answer of each holds a
    right one to; ``shapley``: agent -> its part in that of all, from the first answer of each."""
    correct = {
        name: np.concatenate([answered[name].correct_QN for answered in sets]) for name in sets[0]
    }
    unions = subset_unions({name: mean_at_n(right_QN) for name, right_QN in correct.items()})
    parts = shapley_shares({name: right_QN[:, 0] for name, right_QN in correct.items()})
    return {
        "unions": {"+".join(agents): plain_number(value) for agents, value in unions.items()},
        "shapley": {name: plain_number(value) for name, value in parts.items()},
    }
