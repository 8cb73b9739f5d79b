"""Settings for models in other processes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import check_literals, refuse

_ADDRESS = re.compile(r"none|local|auto|[^\s:/]+:\d+")


@dataclass(frozen=True)
class ClusterSettings:
    """Processes of models, here or on a Ray cluster."""

    address: str = "none"
    """local: start Ray on this machine and stop it with the run; auto or HOST:PORT: join a cluster
    from one of its nodes; none: models are in this process, or with --agents.ROLE.learner-devices
    and engine-replicas in processes of this machine."""
    cpus: float = 1.0
    """CPU cores, and threads unless --threads is set, of each process with a model; below 1,
    several processes share a core."""
    checkpoints: Literal["auto", "shared", "driver"] = "auto"
    """Which process writes weights and moments. shared: those that hold them, into the run's
    folder, which they must see under the same path; driver: this process, which receives them;
    auto: driver on a joined cluster, else shared."""
    restarts: int = 16
    """How often a process that dies is replaced and asked again; 0: its death ends the run."""

    def __post_init__(self) -> None:
        check_literals(self, "cluster.")
        refuse(
            (
                not _ADDRESS.fullmatch(self.address),
                f"--cluster.address {self.address[:80]} is not an address: use local, auto or "
                "HOST:PORT, or none for no cluster",
            ),
            (not 0 < self.cpus < 4096, "--cluster.cpus must be above 0"),
            (self.restarts < 0, "--cluster.restarts must not be negative"),
        )

    @property
    def used(self) -> bool:
        """Whether the run uses a Ray cluster."""
        return self.address != "none"

    @property
    def cores(self) -> int:
        """Default number of threads of each process."""
        return max(1, int(self.cpus))

    @property
    def shares_disk(self) -> bool:
        """Whether all processes write into the run's folder."""
        here = self.address in ("none", "local")
        return here if self.checkpoints == "auto" else self.checkpoints == "shared"


def has_processes(settings: ClusterSettings, agents: Mapping[str, AgentSettings]) -> bool:
    """Whether models run in separate processes, on a cluster or on this machine."""
    return settings.used or any(
        agent.learner_devices > 1 or agent.engine_replicas > 0 for agent in agents.values()
    )
