"""The refusal of a run that needs more cores or GPUs than there are."""

import re
from collections import Counter
from collections.abc import Mapping

from coterie.datatypes import UserError


def too_small(
    where: str,
    needs: Mapping[str, Mapping[str, float]],
    free: Mapping[str, float],
    total: Mapping[str, float],
) -> UserError:
    """The error for a place with too few cores or GPUs.

    Args:
        where: the machine or cluster, in words.
        needs: process -> resource -> amount.
        free: resource -> amount that is free.
        total: resource -> amount that exists.
    """
    # Such as 3 processes (learner of alice, 2 x engine of bob).
    kinds = Counter(re.sub(r" \d+\b", "", name, count=1) for name in needs)
    named = ", ".join(f"{n} x {kind}" if n > 1 else kind for kind, n in kinds.items())
    return UserError(
        f"{where} cannot hold this run: {len(needs)} processes ({named}) need "
        f"{needed(needs, 'CPU'):g} cores and {needed(needs, 'GPU'):g} GPUs, and "
        f"{free.get('CPU', 0):g} of {total.get('CPU', 0):g} cores and {free.get('GPU', 0):g} of "
        f"{total.get('GPU', 0):g} GPUs are free, each process being on one node; lower "
        "--cluster.cpus, --agents.ROLE.learner-devices, --agents.ROLE.engine-replicas or "
        "--agents.ROLE.tensor-parallel"
    )


def needed(needs: Mapping[str, Mapping[str, float]], kind: str) -> float:
    """The amount of a resource that all processes need together."""
    return sum(need.get(kind, 0) for need in needs.values())
