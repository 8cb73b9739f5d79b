"""The interface between core and cluster: what it hosts, checks and builds for a run."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from coterie.agents.team.backend import Backend
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.extras.cluster.checks import check_cluster
from coterie.extras.cluster.settings import ClusterSettings, has_processes
from coterie.training.config.train_settings import TrainSettings
from coterie.training.hosts import Flag, Host
from coterie.training.run.directory import RunDirectory


class ClusterHost(Host):
    """Hosts models in processes of this machine or of a cluster."""

    section = "cluster"

    def holds_models(
        self, section_settings: ClusterSettings, agents: Mapping[str, AgentSettings]
    ) -> bool:
        """See :class:`Host` for this and all other methods."""
        return has_processes(section_settings, agents)

    def check(self, settings: TrainSettings) -> None:
        check_cluster(settings)

    def resume_flags(self, settings: TrainSettings) -> Sequence[Flag]:
        placed = {
            role: Placement(agent.engine_replicas, agent.learner_devices)
            for role, agent in settings.agents.items()
        }
        roles: list[Flag] = [(role, Placement, placed[role]) for role in placed]
        placements = dataclasses.make_dataclass("Places", roles, frozen=True)
        cluster = settings.section(ClusterSettings)
        return [("cluster", ClusterSettings, cluster), ("agents", placements, placements(**placed))]

    def with_flags(self, settings: TrainSettings, flags: Any) -> TrainSettings:
        leaves = settings.section(ClusterSettings).used and not flags.cluster.used
        agents = {}
        for role, agent in settings.agents.items():
            placed = asdict(getattr(flags.agents, role))
            # Only a number that is given keeps engines apart in a run that leaves its cluster.
            if leaves and placed["engine_replicas"] == agent.engine_replicas:
                placed["engine_replicas"] = 0
            agents[role] = replace(agent, **placed)
        return replace(settings, cluster=flags.cluster, agents=agents)

    def build(
        self,
        section_settings: ClusterSettings,
        agents: Mapping[str, AgentSettings],
        *,
        vllm: VllmSettings | None,
        threads: int,
        directory: RunDirectory,
    ) -> Backend | None:
        if not has_processes(section_settings, agents):
            return None
        from coterie.extras.cluster.pool import Pool

        folder = directory.path if section_settings.shares_disk else None
        return Pool(section_settings, threads=threads, vllm=vllm, folder=folder)


HOST = ClusterHost()


@dataclass(frozen=True)
class Placement:
    """Where this role's model runs; may change on --resume."""

    engine_replicas: int = 0
    """Number of processes that sample from this model. 0: the learner's process samples."""
    learner_devices: int = 1
    """Devices over which its learner is sharded."""
