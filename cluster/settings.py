"""Where a run's models live, and what can be found wrong before Ray is started."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec

from coterie.datatypes import UserError, refuse
from coterie.teams.players import local_models
from coterie.teams.settings import AgentSettings

_ADDRESS = re.compile(r"none|local|auto|[^\s:/]+:\d+")


@dataclass(frozen=True)
class ClusterSettings:
    """The cluster on which models learn and answer; without it, this process holds them."""

    address: str = "none"
    """local: start Ray on this machine and end it with the run; auto or HOST:PORT: join a cluster
    from one of its nodes; none: models live in this process."""
    cpus: float = 1.0
    """Processor cores of each process that holds a model, which are its threads too unless
    --threads says otherwise; below 1, several processes share one."""

    def __post_init__(self) -> None:
        refuse(
            (
                not _ADDRESS.fullmatch(self.address),
                f"--cluster.address {self.address[:80]} is no address: say local, auto or "
                "HOST:PORT, and none to do without",
            ),
            (not 0 < self.cpus < 4096, "--cluster.cpus must be above 0"),
        )

    @property
    def used(self) -> bool:
        """Whether there is a cluster at all."""
        return self.address != "none"


def check_cluster(
    settings: ClusterSettings, agents: Mapping[str, AgentSettings], *, engine: str, doctor: bool
) -> None:
    """Refuse what cannot run on a cluster.

    Raises:
        UserError: one sentence that names the flag.
    """
    for role, agent in agents.items():
        asked = f"--agents.{role}.engine-replicas"
        refuse(
            (agent.engine_replicas < 0, f"{asked} must not be negative"),
            (
                agent.engine_replicas > 0 and not settings.used,
                f"{asked} needs --cluster.address: local starts Ray on this machine",
            ),
            (
                agent.engine_replicas > 0 and not local_models({role: agent}),
                f"{asked} is for models: a script or a server has no engine",
            ),
        )
    if not settings.used:
        return
    refuse(
        (
            find_spec("ray") is None,
            '--cluster.address needs Ray, which is not installed: pip install -e ".[ray]"',
        ),
        (
            engine == "vllm",
            "--cluster.address has engines of this program's own sampler so far, and none of "
            "vLLM: leave out --engine vllm, or --cluster.address",
        ),
        (
            doctor,
            "--doctor examines models in this process: leave out --cluster.address",
        ),
        (not local_models(agents), "--cluster.address has no model to place: leave it out"),
    )
    for role, agent in agents.items():
        if agent.device not in ("auto", "cpu", "cuda"):
            raise UserError(
                f"--agents.{role}.device {agent.device}: on a cluster Ray chooses the GPU; say "
                "cuda, cpu or auto"
            )


def without_cluster(agents: Mapping[str, AgentSettings]) -> dict[str, AgentSettings]:
    """``agents`` as they are where everything is in one process."""
    return {role: replace(agent, engine_replicas=0) for role, agent in agents.items()}
