"""A trajectory by hand."""

from typing import Any

import numpy as np

from coterie.datatypes import Trajectory


def row(role: str = "alice", sampled: int = 1, **changes: Any) -> Trajectory:
    """A prompt of one token, and ``sampled`` tokens, each certain; ``changes`` over its fields."""
    place = np.arange(1 + sampled)
    fields: dict[str, Any] = {"agent": f"{role}_0", "role": role, "tokens": place}
    fields |= {"mask": place > 0, "logprobs": np.zeros(1 + sampled, np.float32), "reward": 0.0}
    return Trajectory(**fields | {"reward_terms": {}, "groups": {}} | changes)
