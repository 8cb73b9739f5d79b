"""Settings for models in other processes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import UserError, Validated

_ADDRESS = re.compile(r"none|local|auto|[^\s:/]+:\d+")


@dataclass(frozen=True)
class ClusterSettings(Validated):
    """Processes of models, here or on a Ray cluster."""

    address: str = "none"
    """local: start Ray on this machine and stop it with the run; auto or HOST:PORT: join a cluster
    from one of its nodes; none: models are in this process, or with --agents.ROLE.learner-devices
    and engine-replicas in processes of this machine."""
    cpus: Annotated[float, Interval(gt=0, lt=4096)] = 1.0
    """CPU cores, and threads unless --threads is set, of each process with a model; below 1,
    several processes share a core."""
    checkpoints: Literal["auto", "shared", "driver"] = "auto"
    """shared: each process writes its own weights to the run's folder, which must have the same
    path on every node. driver: this process collects and writes them. auto: driver on a joined
    cluster, else shared."""
    restarts: Annotated[int, Ge(0)] = 16
    """How often a process that dies is replaced and asked again; 0: its death ends the run."""

    def check(self) -> None:
        if not _ADDRESS.fullmatch(self.address):
            raise UserError(
                f"--cluster.address {self.address[:80]} is not an address: use local, auto or "
                "HOST:PORT, or none for no cluster"
            )

    @property
    def used(self) -> bool:
        """Whether the run uses a Ray cluster."""
        return self.address != "none"

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
