"""What is told of a step: by hand."""

import numpy as np
import pytest

from training.records import troubles
from vocabulary import Trajectory


def row(role: str, *, status: str = "ok", sampled: bool = True) -> Trajectory:
    return Trajectory(
        agent=f"{role}_0",
        role=role,
        tokens=np.array([1, 2]),
        mask=np.array([False, sampled]),
        logprobs=np.array([0.0, -1.0], np.float32),
        reward=0.0,
        reward_terms={},
        groups={},
        status=status,
    )


LOST = "failed: server sent a web page"


@pytest.mark.parametrize(
    ("rows", "metrics", "told"),
    [
        ([row("alice"), row("expert", status=LOST), row("expert")], {}, {}),
        ([row("alice"), row("expert", status=LOST)], {}, {"expert": f"never answers: {LOST}"}),
        # An expert that nobody asks is no fault.
        ([row("alice")], {}, {}),
        (
            [row("alice", sampled=False)],
            {},
            {"alice": "has nothing to learn from: its answers are empty"},
        ),
        ([], {}, {"alice": "has nothing to learn from: it was not asked"}),
        ([row("alice", status=LOST)], {}, {"alice": f"has nothing to learn from: {LOST}"}),
        (
            [row("alice")],
            {"learner/alice/grad_norm": float("nan")},
            {"alice": "did not learn: its gradient is no finite number"},
        ),
        ([row("alice")], {"learner/alice/grad_norm": 0.5}, {}),
    ],
)
def test_who_is_named(rows, metrics, told) -> None:
    assert troubles(rows, metrics, trained=["alice"], frozen=["expert"]) == told
