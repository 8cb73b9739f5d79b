"""Check whether a machine or a cluster has the cores and GPUs that a run needs."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from coterie.datatypes import UserError


def fits(
    needs: Mapping[str, Mapping[str, float]],
    total: Mapping[str, float],
    nodes: Sequence[Mapping[str, float]],
) -> bool:
    """Whether ``total`` covers the needs of all processes, and some node covers the needs
    of each.

    Args:
        needs: process -> resource -> amount.
        total: resource -> amount of all nodes together.
        nodes: the same of each node.
    """
    return all(_sum(needs, kind) <= total.get(kind, 0) for kind in ("CPU", "GPU")) and all(
        any(all(node.get(kind, 0) >= amount for kind, amount in need.items()) for node in nodes)
        for need in needs.values()
    )


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
        f"{_sum(needs, 'CPU'):g} cores and {_sum(needs, 'GPU'):g} GPUs, and "
        f"{free.get('CPU', 0):g} of {total.get('CPU', 0):g} cores and {free.get('GPU', 0):g} of "
        f"{total.get('GPU', 0):g} GPUs are free, each process being on one node; lower "
        "--cluster.cpus, --agents.ROLE.learner-devices, --agents.ROLE.engine-replicas or "
        "--agents.ROLE.tensor-parallel"
    )


def _sum(needs: Mapping[str, Mapping[str, float]], kind: str) -> float:
    return sum(need.get(kind, 0) for need in needs.values())
