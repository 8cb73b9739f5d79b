"""Checks of the settings before any process starts."""

from importlib.util import find_spec

from coterie.agents.models.spec import IN_CODES
from coterie.agents.team.players import local_models
from coterie.datatypes import UserError, refuse
from coterie.extras.cluster.settings import ClusterSettings, has_processes
from coterie.training.config.train_settings import TrainSettings


def check_cluster(settings: TrainSettings) -> None:
    """Refuse settings that cannot run on a cluster, or in processes of this machine.

    Raises:
        UserError: a setting is refused; the message names the flag.
    """
    cluster, agents = settings.section(ClusterSettings), settings.agents
    vllm = settings.run.engine == "vllm"
    for role, agent in agents.items():
        replicas = f"--agents.{role}.engine-replicas"
        shards, moments = f"--agents.{role}.learner-devices", settings.learner_of(role).moments
        refuse(
            (
                agent.learner_devices > 1 and not agent.trained,
                f"{shards} is for a role that learns: leave it out, or have {role} trained",
            ),
            (
                agent.learner_devices > 1 and moments != "float32",
                f"{agent.learner_at(role)}moments {moments} cannot be sharded: leave it at "
                f"float32, or {shards} at 1",
            ),
            (
                agent.learner_devices > 1 and agent.dtype in IN_CODES,
                f"--agents.{role}.dtype {agent.dtype} cannot be sharded: leave it out, or {shards} "
                "at 1",
            ),
            (
                agent.engine_replicas > 0 and agent.dtype in IN_CODES and vllm,
                f"--agents.{role}.dtype {agent.dtype} has its vLLM engine beside its learner: "
                f"leave it out, or {replicas} at 0",
            ),
            (
                agent.engine_replicas > 0 and not local_models({role: agent}),
                f"{replicas} is for models: a script or a server has no engine",
            ),
        )
    if not has_processes(cluster, agents):
        # A run that is resumed may have begun in other processes.
        refuse(
            (
                cluster != ClusterSettings() and settings.choice.resume is None,
                "--cluster.cpus, .checkpoints and .restarts are for processes of models, and this "
                "run has none: leave them out, or say --cluster.address local",
            )
        )
        return
    devices = any(agent.learner_devices > 1 for agent in agents.values())
    flag = "--agents.ROLE.learner-devices" if devices else "--agents.ROLE.engine-replicas"
    why = "--cluster.address" if cluster.used else flag
    refuse(
        (
            cluster.used and find_spec("ray") is None,
            '--cluster.address needs Ray, which is not installed: pip install -e ".[ray]"',
        ),
        (settings.run.doctor, f"--doctor examines models in this process: leave out {why}"),
        (not local_models(agents), f"{why} has no model to place: leave it out"),
    )
    sleeps = vllm and settings.vllm.sleep_level > 0
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
