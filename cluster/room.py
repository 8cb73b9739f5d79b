"""Whether a machine or a cluster can hold the processes of a run; what is said where it cannot."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from coterie.cluster.settings import ClusterSettings, has_processes
from coterie.datatypes import UserError
from coterie.teams.models import model_spec
from coterie.teams.settings import AgentSettings

_PROCESS_BYTES = 200 << 20
"""Of main memory, before a process holds anything: Python and torch."""


def has_room(
    needs: Mapping[str, Mapping[str, float]],
    there: Mapping[str, float],
    nodes: Sequence[Mapping[str, float]],
) -> bool:
    """Whether processes with these needs can be where so much is there in all, each of them on one
    of the nodes."""
    return all(_sum(needs, kind) <= there.get(kind, 0) for kind in ("CPU", "GPU")) and all(
        any(all(node.get(kind, 0) >= amount for kind, amount in need.items()) for node in nodes)
        for need in needs.values()
    )


def no_room(
    where: str,
    needs: Mapping[str, Mapping[str, float]],
    free: Mapping[str, float],
    there: Mapping[str, float],
) -> UserError:
    """What is said where there is none."""
    return UserError(
        f"{where} cannot hold this run: {_count(needs)} need "
        f"{_sum(needs, 'CPU'):g} cores and {_sum(needs, 'GPU'):g} GPUs, and "
        f"{free.get('CPU', 0):g} of {there.get('CPU', 0):g} cores and {free.get('GPU', 0):g} of "
        f"{there.get('GPU', 0):g} GPUs are free, each process being on one node; lower "
        "--cluster.cpus, --cluster.episode-workers, --agents.ROLE.learner-devices, "
        "--agents.ROLE.engine-replicas or --agents.ROLE.tensor-parallel"
    )


def check_room(settings: ClusterSettings, agents: Mapping[str, AgentSettings]) -> None:
    """Refuse more processes than this machine can hold, where they are to be on it; a cluster that
    is joined says so itself, and devices are counted when torch is there.

    Raises:
        UserError: one sentence that names the flags.
    """
    if settings.address not in ("none", "local"):
        return
    needs = {name: {"CPU": settings.cpus} for name in _least(settings, agents)}
    there = {"CPU": float(os.cpu_count() or 1), "GPU": 0.0}
    if not has_room(needs, there, [there]):
        raise UserError(
            f"this machine cannot hold this run: {_count(needs)} need {_sum(needs, 'CPU'):g} "
            f"cores, and it has {there['CPU']:g}; lower --cluster.cpus, --cluster.episode-workers, "
            "--agents.ROLE.learner-devices or --agents.ROLE.engine-replicas"
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if len(needs) * _PROCESS_BYTES > memory:
        raise UserError(
            f"this machine cannot hold this run: {_count(needs)} need at least "
            f"{len(needs) * _PROCESS_BYTES / 2**30:.0f} GiB of memory, and it has "
            f"{memory / 2**30:.0f}; lower --cluster.episode-workers, "
            "--agents.ROLE.learner-devices or --agents.ROLE.engine-replicas"
        )


def _least(settings: ClusterSettings, agents: Mapping[str, AgentSettings]) -> Iterator[str]:
    """The processes that there will be at least: roles with adapters may share theirs."""
    yield from (f"episode worker {i + 1}" for i in range(settings.episode_workers))
    if not has_processes(settings, agents):
        return
    shared: dict[str, tuple[int, int]] = {}
    for role, agent in agents.items():
        name = "adapters" if agent.trained and model_spec(agent).lora else role
        learners, engines = shared.get(name, (0, 0))
        devices = agent.learner_devices if agent.trained else 0
        shared[name] = max(learners, devices), max(engines, agent.engine_replicas)
    for name, (learners, engines) in shared.items():
        yield from (f"learner {i + 1} of {name}" for i in range(learners))
        several = engines or int(learners != 1)
        yield from (f"engine {i + 1} of {name}" for i in range(several))


def _count(needs: Mapping[str, Mapping[str, float]]) -> str:
    """``3 processes (2 x episode worker, engine of bob)``."""
    kinds = Counter(re.sub(r" \d+\b", "", name, count=1) for name in needs)
    named = (f"{count} x {kind}" if count > 1 else kind for kind, count in kinds.items())
    return f"{len(needs)} processes ({', '.join(named)})"


def _sum(needs: Mapping[str, Mapping[str, float]], kind: str) -> float:
    return sum(need.get(kind, 0) for need in needs.values())
