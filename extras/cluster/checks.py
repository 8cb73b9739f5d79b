"""Checks of the settings before any process starts."""

import pickle
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from coterie import envs
from coterie.agents.team.players import local_models
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import UserError, reason_of, refuse
from coterie.envs.registry import PLUGINS
from coterie.extras.cluster.settings import ClusterSettings, has_processes


def check_cluster(
    settings: ClusterSettings,
    agents: Mapping[str, AgentSettings],
    *,
    vllm: VllmSettings | None,
    moments: str,
    doctor: bool,
) -> None:
    """Refuse settings that cannot run on a cluster, or in processes of this machine.

    Args:
        settings: the cluster settings.
        agents: role -> settings.
        vllm: settings of the vLLM engines; None without vLLM.
        moments: number format of the optimiser's moments.
        doctor: whether the run is ``--doctor``.

    Raises:
        UserError: a setting is refused; the message names the flag.
    """
    for role, agent in agents.items():
        asked = f"--agents.{role}.engine-replicas"
        shards = f"--agents.{role}.learner-devices"
        refuse(
            (
                agent.learner_devices > 1 and not agent.trained,
                f"{shards} is for a role that learns: leave it out, or have {role} trained",
            ),
            (
                agent.learner_devices > 1 and moments != "float32",
                f"--learner.moments {moments} cannot be sharded: leave it at float32, or {shards} "
                "at 1",
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
    """Refuse settings with which episode workers cannot play.

    Args:
        settings: the cluster settings, with the number of workers.
        env: name of the environment.
        judge: the model that grades answers; empty without one.
        handed: the object that is pickled for the workers.
        doctor: whether the run is ``--doctor``.

    Raises:
        UserError: a setting is refused; the message names the flag.
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
