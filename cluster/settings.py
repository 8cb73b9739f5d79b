"""Where a run's models live, and what can be found wrong before Ray is started."""

import pickle
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any, Literal

from coterie import envs
from coterie.agents.engine.settings import VllmSettings
from coterie.datatypes import UserError, check_literals, reason_of, refuse
from coterie.envs.registry import PLUGINS
from coterie.teams.players import local_models
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


def check_cluster(
    settings: ClusterSettings,
    agents: Mapping[str, AgentSettings],
    *,
    vllm: VllmSettings | None,
    moments: str,
    doctor: bool,
) -> None:
    """Refuse what cannot run on a cluster, or in processes of this machine; ``vllm``: how its
    engines are run, None without.

    Raises:
        UserError: one sentence that names the flag.
    """
    for role, agent in agents.items():
        asked = f"--agents.{role}.engine-replicas"
        shards = f"--agents.{role}.learner-devices"
        refuse(
            (agent.engine_replicas < 0, f"{asked} must not be negative"),
            (agent.learner_devices < 1, f"{shards} must be at least 1"),
            (
                agent.learner_devices > 1 and not agent.trained,
                f"{shards} is for a role that learns: leave it out, or have {role} trained",
            ),
            (
                agent.learner_devices > 1 and moments != "float32",
                f"--learner.moments {moments} cannot lie in shards: leave it at float32, or "
                f"{shards} at 1",
            ),
            (
                agent.engine_replicas > 0 and not local_models({role: agent}),
                f"{asked} is for models: a script or a server has no engine",
            ),
        )
    if not has_processes(settings, agents):
        return
    devices = any(agent.learner_devices > 1 for agent in agents.values())
    here = "--agents.ROLE.learner-devices" if devices else "--agents.ROLE.engine-replicas"
    why = "--cluster.address" if settings.used else here
    refuse(
        (
            settings.used and find_spec("ray") is None,
            '--cluster.address needs Ray, which is not installed: pip install -e ".[ray]"',
        ),
        (doctor, f"--doctor examines models in this process: leave out {why}"),
        (not local_models(agents), f"{why} has no model to place: leave it out"),
    )
    sleeps = vllm is not None and vllm.sleep_level > 0
    for role, agent in agents.items():
        for flag, device in (("device", agent.device), ("engine-device", agent.engine_device)):
            if device not in ("auto", "cpu", "cuda"):
                raise UserError(
                    f"--agents.{role}.{flag} {device}: with {why} each process is given its GPU; "
                    "say cuda, cpu or auto"
                )
        if sleeps and (agent.engine_replicas or agent.learner_devices > 1):
            raise UserError(
                "--vllm.sleep-level is for an engine on its learner's GPU: leave it out, or "
                f"--agents.{role}.engine-replicas and learner-devices"
            )


def check_episode_workers(
    settings: ClusterSettings, env: str, judge: str, handed: Any, *, doctor: bool
) -> None:
    """Refuse what other processes cannot play.

    Args:
        settings: how many there are.
        env: the environment's name.
        judge: the model that grades answers, if any.
        handed: what they are sent.
        doctor: whether models are examined.

    Raises:
        UserError: one sentence that names the flag.
    """
    if not settings.episode_workers:
        return
    flag, spec = "--cluster.episode-workers", envs.spec(env)
    refuse(
        (doctor, f"--doctor examines models in this process: leave out {flag}"),
        (
            not (spec.shipped or ":" in env or env in PLUGINS.names()),
            f"{flag}: other processes do not know --env {env}, which was registered in this one; "
            "name it by its path (pkg.module:NAME), or by an entry point of its package",
        ),
        (
            bool(judge and local_models({"judge": AgentSettings(judge)})),
            f"{flag}: each of them would load --scoring.judge {judge}; serve it (coterie serve) "
            "and say --scoring.judge server:URL?model=NAME",
        ),
    )
    try:
        pickle.dumps(handed)
    except Exception as error:
        raise UserError(
            f"{flag}: the problems, or the settings of --env {env}, cannot be sent to another "
            f"process ({reason_of(error)}); leave it out"
        ) from None


def has_processes(settings: ClusterSettings, agents: Mapping[str, AgentSettings]) -> bool:
    """Whether models live in processes of their own, on a cluster or on this machine."""
    return settings.used or any(
        agent.learner_devices > 1 or agent.engine_replicas > 0 for agent in agents.values()
    )


@dataclass(frozen=True)
class Placement:
    """What of :class:`AgentSettings` may change when a run is taken up."""

    engine_replicas: int = 0
    """Processes of their own that answer for this model."""
    learner_devices: int = 1
    """Devices over which its learner lies in shards."""


def placement(agent: AgentSettings) -> Placement:
    """Of a role that has been trained."""
    return Placement(agent.engine_replicas, agent.learner_devices)


def replaced(
    agents: Mapping[str, AgentSettings], placements: Mapping[str, Placement], *, leaves: bool
) -> dict[str, AgentSettings]:
    """``agents`` with their processes elsewhere; a run that ``leaves`` its cluster has no engines
    apart, unless it is told how many."""
    found = {}
    for role, agent in agents.items():
        placed = asdict(placements[role])
        if leaves and placed["engine_replicas"] == agent.engine_replicas:
            placed["engine_replicas"] = 0
        found[role] = replace(agent, **placed)
    return found
