"""Check whether a machine or a cluster has the cores, GPUs and memory that a run needs."""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import local_models
from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import UserError
from coterie.extras.cluster.settings import ClusterSettings, has_processes

_PROCESS_BYTES = 200 << 20
"""Main memory of an empty process with Python and torch, in bytes."""


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
    kinds = Counter(re.sub(r" \d+\b", "", name, count=1) for name in needs)
    return UserError(
        f"{where} cannot hold this run: {_named(kinds)} need "
        f"{_sum(needs, 'CPU'):g} cores and {_sum(needs, 'GPU'):g} GPUs, and "
        f"{free.get('CPU', 0):g} of {total.get('CPU', 0):g} cores and {free.get('GPU', 0):g} of "
        f"{total.get('GPU', 0):g} GPUs are free, each process being on one node; lower "
        "--cluster.cpus, --agents.ROLE.learner-devices, --agents.ROLE.engine-replicas or "
        "--agents.ROLE.tensor-parallel"
    )


def check_machine(settings: ClusterSettings, agents: Mapping[str, AgentSettings]) -> None:
    """Refuse more local processes than this machine can hold. A joined cluster is checked when the
    run reserves its places, and GPUs are counted after torch is imported.

    Raises:
        UserError: the machine is too small; the message names the flags.
    """
    if settings.address not in ("none", "local") or not has_processes(settings, agents):
        return
    counts = _least(agents)
    count, cores = counts.total(), os.cpu_count() or 1
    if count * settings.cpus > cores:
        raise UserError(
            f"this machine cannot hold this run: {_named(counts)} need {count * settings.cpus:g} "
            f"cores, and it has {cores}; lower --cluster.cpus, --agents.ROLE.learner-devices or "
            "--agents.ROLE.engine-replicas"
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if count * _PROCESS_BYTES > memory:
        raise UserError(
            f"this machine cannot hold this run: {_named(counts)} need at least "
            f"{count * _PROCESS_BYTES / 2**30:.0f} GiB of memory, and it has "
            f"{memory / 2**30:.0f}; lower --agents.ROLE.learner-devices or "
            "--agents.ROLE.engine-replicas"
        )


def _least(agents: Mapping[str, AgentSettings]) -> Counter[str]:
    """The minimum number of processes of each kind; roles with adapters may share processes."""
    shared: dict[str, tuple[int, int]] = {}
    for role, agent in local_models(agents).items():
        name = "adapters" if model_spec(agent).lora else role
        learners, engines = shared.get(name, (0, 0))
        devices = agent.learner_devices if agent.trained else 0
        shared[name] = max(learners, devices), max(engines, agent.engine_replicas)
    counts = Counter[str]()
    for name, (learners, engines) in shared.items():
        counts[f"learner of {name}"] = learners
        counts[f"engine of {name}"] = engines or int(learners != 1)
    return +counts


def _named(counts: Mapping[str, int]) -> str:
    """``3 processes (learner of alice, 2 x engine of bob)``."""
    named = (f"{count} x {kind}" if count > 1 else kind for kind, count in counts.items())
    return f"{sum(counts.values())} processes ({', '.join(named)})"


def _sum(needs: Mapping[str, Mapping[str, float]], kind: str) -> float:
    return sum(need.get(kind, 0) for need in needs.values())
