"""Checks of the settings before any process starts."""

from collections.abc import Mapping
from importlib.util import find_spec

from coterie.agents.models.spec import IN_CODES
from coterie.agents.team.players import local_models
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import UserError, refuse
from coterie.extras.cluster.settings import ClusterSettings, has_processes


def check_cluster(
    settings: ClusterSettings,
    agents: Mapping[str, AgentSettings],
    *,
    vllm: VllmSettings | None,
    moments: Mapping[str, str],
    doctor: bool,
    resumes: bool = False,
) -> None:
    """Refuse settings that cannot run on a cluster, or in processes of this machine.

    Args:
        settings: the cluster settings.
        agents: role -> settings.
        vllm: settings of the vLLM engines; None without vLLM.
        moments: role -> number format of the optimizer's moments.
        doctor: whether the run is ``--doctor``.
        resumes: whether the run has begun before, perhaps in other processes.

    Raises:
        UserError: a setting is refused; the message names the flag.
    """
    for role, agent in agents.items():
        replicas = f"--agents.{role}.engine-replicas"
        shards = f"--agents.{role}.learner-devices"
        refuse(
            (
                agent.learner_devices > 1 and not agent.trained,
                f"{shards} is for a role that learns: leave it out, or have {role} trained",
            ),
            (
                agent.learner_devices > 1 and moments[role] != "float32",
                f"{agent.learner_at(role)}moments {moments[role]} cannot be sharded: leave it at "
                f"float32, or {shards} at 1",
            ),
            (
                agent.learner_devices > 1 and agent.dtype in IN_CODES,
                f"--agents.{role}.dtype {agent.dtype} cannot be sharded: leave it out, or {shards} "
                "at 1",
            ),
            (
                agent.engine_replicas > 0 and agent.dtype in IN_CODES and vllm is not None,
                f"--agents.{role}.dtype {agent.dtype} has its vLLM engine beside its learner: "
                f"leave it out, or {replicas} at 0",
            ),
            (
                agent.engine_replicas > 0 and not local_models({role: agent}),
                f"{replicas} is for models: a script or a server has no engine",
            ),
        )
    if not has_processes(settings, agents):
        refuse(
            (
                settings != ClusterSettings() and not resumes,
                "--cluster.cpus, .checkpoints and .restarts are for processes of models, and this "
                "run has none: leave them out, or say --cluster.address local",
            )
        )
        return
    devices = any(agent.learner_devices > 1 for agent in agents.values())
    flag = "--agents.ROLE.learner-devices" if devices else "--agents.ROLE.engine-replicas"
    why = "--cluster.address" if settings.used else flag
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
