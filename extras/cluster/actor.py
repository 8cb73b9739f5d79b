"""A thin layer over Ray: join a cluster, reserve places, run workers as actors."""

import asyncio
import logging
import os
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from coterie.agents.team.backend import Died
from coterie.datatypes import PolicyFailure, UserError, reason_of, refuse
from coterie.extras.cluster.resources import too_small
from coterie.extras.cluster.settings import ClusterSettings
from coterie.extras.cluster.worker import Worker

_PATIENCE_S = 10.0
"""Seconds to wait for places that are free; a cluster may have other users."""


def died(name: str, why: str) -> str:
    """The message for the death of the process ``name``; ``why``: the reason, empty if unknown."""
    return f"{name} has died, or its node has{f' ({why})' if why else ''}"


def beforehand(address: str) -> dict[str, str]:
    """Environment variables to set before Ray is imported, because it reads them once. For a
    local cluster they also restrict access to this machine and this user."""
    variables = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}
    if address != "local":
        return variables
    variables |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    # Ray's switch for local use: it then listens on the loopback interface only.
    # The niceness: by default Ray's processes yield to all others on this machine.
    return variables | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_worker_niceness": "0"}


class Cluster:
    """A connection to Ray, with a place for each process of a run."""

    def __init__(self, settings: ClusterSettings) -> None:
        """Start Ray on this machine, or join a cluster.

        Raises:
            UserError: no cluster can be joined at the address.
        """
        variables = beforehand(settings.address)
        refuse(
            (
                settings.address == "local"
                and "ray" in sys.modules
                and "RAY_AUTH_TOKEN" not in os.environ,
                f"--cluster.address {settings.address}: Ray was imported before this run could "
                "set its access token; start the run in a process that has not imported ray",
            )
        )
        for name, value in variables.items():
            os.environ.setdefault(name, value)
        import ray

        more: dict[str, Any] = {}
        if settings.address == "local":
            more["include_dashboard"] = False
        try:
            # Test the connection first: Ray would retry for minutes.
            host, _, port = settings.address.rpartition(":")
            if host:
                socket.create_connection((host, int(port)), _PATIENCE_S).close()
            ray.init(address=settings.address, logging_level=logging.ERROR, **more)
        except Exception as error:
            raise UserError(
                f"--cluster.address {settings.address}: no cluster can be joined "
                f"({reason_of(error)}); `ray start --head` starts one here, and local starts and "
                "ends one with the run"
            ) from None
        self._address = settings.address
        self._group: Any = None
        self._stores: list[Any] = []

    def has_gpus(self) -> bool:
        """Whether any node has a GPU."""
        import ray

        return ray.cluster_resources().get("GPU", 0) > 0

    def reserve(self, needs: Mapping[str, Mapping[str, float]]) -> None:
        """Reserve a place for each process, spread over the nodes; ``needs`` maps names to needs.

        Raises:
            UserError: the cluster has too few GPUs or cores.
        """
        import ray
        from ray.util.placement_group import placement_group

        bundles = [dict(need) for need in needs.values()]
        self._group = placement_group(bundles, strategy="SPREAD")
        if not self._group.wait(_PATIENCE_S):
            where = f"the cluster of {sum(node['Alive'] for node in ray.nodes())} nodes"
            raise too_small(where, needs, ray.available_resources(), ray.cluster_resources())

    def place(self, number: int, need: Mapping[str, float]) -> dict[str, Any]:
        """Options that start an actor at the reserved place ``number``."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        return {
            "num_cpus": need["CPU"],
            "num_gpus": need.get("GPU", 0),
            "scheduling_strategy": PlacementGroupSchedulingStrategy(self._group, number),
        }

    def keep(self, value: Any) -> Any:
        """Put ``value`` into Ray's store; return a reference that any number of calls can take.
        Ray spills values to disk if the store is full.

        Raises:
            UserError: the disk is full, too.
        """
        import ray
        from ray.exceptions import OutOfDiskError

        try:
            return ray.put(value)
        except OutOfDiskError:
            raise UserError(
                "Ray's object store is full, and so is the disk it spills to (Ray leaves 5 % of it "
                "free; see `df`): free some space, or start Ray with a larger --object-store-memory"
            ) from None

    def meeting(self) -> str:
        """A new meeting point for the ranks of a learner: a TCP store in this process."""
        import ray
        from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

        host = ray.util.get_node_ip_address()
        store = TCPStore(host, 0, is_master=True, wait_for_workers=False)
        self._stores.append(store)
        return f"{host}:{store.port}"

    def close(self) -> None:
        """Release the places, and end what :meth:`__init__` started."""
        import ray
        from ray.util.placement_group import remove_placement_group

        with suppress(Exception):
            if self._group is not None:
                remove_placement_group(self._group)
        ray.shutdown()


@dataclass(eq=False)
class Actor:
    """A worker in a separate process, which can be restarted."""

    name: str
    roles: Sequence[str]
    arguments: tuple[Any, ...] = ()
    """Arguments of :attr:`worker` after its name."""
    more: Mapping[str, Any] = field(default_factory=dict)
    worker: type[Worker] = Worker
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of its place."""
    restarts: int = 0
    """How often it has been replaced."""
    handle: Any = None
    row: dict[str, str] = field(default_factory=dict)
    """Its row in the table of processes and their nodes."""

    @property
    def processes(self) -> "Sequence[Actor]":
        """Itself, or the ranks that learn together under its name."""
        return [self]

    def start(self) -> None:
        """Start the process without waiting for it; replace one that runs."""
        import ray

        self.stop()
        made: Any = ray.remote(self.worker).options(**self.options)
        self.handle = made.remote(self.name, *self.arguments, **self.more)

    def begin(self, verb: str, *arguments: Any) -> Any:
        """Start a method call; :meth:`result` waits for it."""
        return getattr(self.handle, verb).remote(*arguments)

    def reference(self, begun: Any) -> Any:
        """The result of a call, as an argument for a call of another process."""
        return begun

    def result(self, begun: Any) -> Any:
        """Wait for a call and return its result.

        Raises:
            Died: the process or its node has died.
            PolicyFailure: the policy could not answer.
            UserError: the method raised it, or failed; the message then names this process.
        """
        import ray
        from ray.exceptions import (
            NodeDiedError,
            OutOfMemoryError,
            RayActorError,
            RayError,
            RayTaskError,
        )

        try:
            return ray.get(begun)
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, (UserError, PolicyFailure)):
                raise cause from None
            kind = type(cause or error).__name__
            raise UserError(f"{self.name} failed: {kind}: {reason_of(cause or error)}") from error
        except (RayActorError, NodeDiedError, OutOfMemoryError) as error:
            # Of an actor the reason comes last, behind lines about its process.
            lines = str(error).strip().split("\n")
            line = lines[-1] if isinstance(error, RayActorError) else lines[0]
            why = line.rpartition("Worker exit detail: ")[2].partition(". ")[0]
            raise Died(died(self.name, why.removesuffix(".")[:200])) from None
        except RayError as error:
            raise UserError(f"{self.name} cannot be asked: {reason_of(error)}") from error

    def future(self, begun: Any) -> Future[Any]:
        """A future for a call: done when the call is, with its exception if it failed."""
        return begun.future()

    async def wait(self, begun: Any) -> Any:
        """Like :meth:`result`, without blocking the event loop."""
        with suppress(Exception):
            await asyncio.wrap_future(self.future(begun))
        return self.result(begun)

    def ask(self, verb: str, *arguments: Any) -> Any:
        """:meth:`begin` and :meth:`result`."""
        return self.result(self.begin(verb, *arguments))

    def locate(self) -> None:
        """Record the node, address and device of the process.

        Raises:
            Died: the process has died.
        """
        node, address, gpus = self.ask("where")
        device = ", ".join(f"GPU {gpu}" for gpu in gpus) or "CPU"
        self.row = {"process": self.name, "roles": ", ".join(self.roles), "node": node[:8],
                "address": address, "device": device}  # fmt: skip

    def stop(self) -> None:
        """End the process, if there is one."""
        import ray

        if self.handle is not None:
            with suppress(Exception):
                ray.kill(self.handle)
            self.handle = None
