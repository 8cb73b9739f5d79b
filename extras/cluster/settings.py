"""Where a run's models live, other than in this process."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from coterie.datatypes import check_literals, refuse
from coterie.teams.settings import AgentSettings

_ADDRESS = re.compile(r"none|local|auto|[^\s:/]+:\d+")


@dataclass(frozen=True)
class ClusterSettings:
    """The cluster on which models learn and answer; without it, this process holds them."""

    address: str = "none"
    """local: start Ray on this machine and end it with the run; auto or HOST:PORT: join a cluster
    from one of its nodes; none: models live in this process, or with
    --agents.ROLE.learner-devices and engine-replicas in processes of this machine."""
    cpus: float = 1.0
    """Processor cores of each process that holds a model, which are its threads too unless
    --threads says otherwise; below 1, several processes share one."""
    checkpoints: Literal["auto", "shared", "driver"] = "auto"
    """Who writes weights and moments into the run's folder: shared: the processes that hold them,
    which have to see that folder under the same path; driver: this process, through which they
    pass; auto: driver where the run joins a cluster, shared where all of it is on this machine."""
    restarts: int = 16
    """How often each process may die: another one takes its place, and what it was asked is asked
    again; 0: its death ends the run."""
    episode_workers: int = 0
    """Processes that play and score the episodes, on the cluster or on this machine, where the
    command's one core is too slow for it; 0: the command does."""

    def __post_init__(self) -> None:
        check_literals(self, "cluster.")
        refuse(
            (
                not _ADDRESS.fullmatch(self.address),
                f"--cluster.address {self.address[:80]} is no address: say local, auto or "
                "HOST:PORT, and none to do without",
            ),
            (not 0 < self.cpus < 4096, "--cluster.cpus must be above 0"),
            (self.restarts < 0, "--cluster.restarts must not be negative"),
            (self.episode_workers < 0, "--cluster.episode-workers must not be negative"),
        )

    @property
    def used(self) -> bool:
        """Whether there is a cluster at all."""
        return self.address != "none"

    @property
    def cores(self) -> int:
        """Threads of each process, unless told otherwise."""
        return max(1, int(self.cpus))

    @property
    def shares_disk(self) -> bool:
        """Whether all processes write into the run's folder."""
        here = self.address in ("none", "local")
        return here if self.checkpoints == "auto" else self.checkpoints == "shared"


def has_processes(settings: ClusterSettings, agents: Mapping[str, AgentSettings]) -> bool:
    """Whether models live in processes of their own, on a cluster or on this machine."""
    return settings.used or any(
        agent.learner_devices > 1 or agent.engine_replicas > 0 for agent in agents.values()
    )
