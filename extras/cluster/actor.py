"""Ray, and no more of it than is needed: a cluster to join, places on it, workers as actors."""

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

from coterie.datatypes import PolicyFailure, UserError, reason_of, refuse
from coterie.extras.cluster.room import has_room, no_room
from coterie.extras.cluster.settings import ClusterSettings
from coterie.extras.cluster.worker import BaseWorker, Worker
from coterie.teams.backend import Died

_PATIENCE_S = 10.0
"""Seconds for a place that should be free; only a cluster that others use too needs them."""


def died(name: str) -> str:
    """What is said of the process ``name``."""
    return f"{name} has died, or its node has"


def beforehand(address: str) -> dict[str, str]:
    """What Ray's environment says before Ray is imported, which reads it once: of a cluster that is
    started here also what keeps it to this machine, and to this user."""
    said = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}
    if address != "local":
        return said
    said |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    # Ray's own switch for "this machine alone": it listens on the loopback interface then.
    # And its processes would wait for everybody else's on this machine.
    return said | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_worker_niceness": "0"}


class Cluster:
    """A connection to Ray, with a place for each process of a run."""

    def __init__(self, settings: ClusterSettings) -> None:
        """Start Ray on this machine, or join a cluster.

        Raises:
            UserError: there is no cluster at the address.
        """
        said = beforehand(settings.address)
        refuse(
            (
                settings.address == "local"
                and "ray" in sys.modules
                and "RAY_AUTH_TOKEN" not in os.environ,
                f"--cluster.address {settings.address}: Ray was imported before this run could "
                "set its access token; start the run in a process that has not imported ray",
            )
        )
        for name, value in said.items():
            os.environ.setdefault(name, value)
        import ray

        more: dict[str, Any] = {}
        if settings.address == "local":
            more["include_dashboard"] = False
        try:
            # Ray itself would try for minutes.
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
        """Hold a place for each process, by name, spread over the nodes.

        Raises:
            UserError: the cluster cannot hold them.
        """
        import ray
        from ray.util.placement_group import placement_group

        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        there, where = ray.cluster_resources(), f"the cluster of {len(nodes)} nodes"
        if has_room(needs, there, nodes):
            bundles = [dict(need) for need in needs.values()]
            self._group = placement_group(bundles, strategy="SPREAD")
        if self._group is None or not self._group.wait(_PATIENCE_S):
            raise no_room(where, needs, ray.available_resources(), there)

    def place(self, place: int, need: Mapping[str, float]) -> dict[str, Any]:
        """Options of the actor that takes the place of that number."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        return {
            "num_cpus": need["CPU"],
            "num_gpus": need.get("GPU", 0),
            "scheduling_strategy": PlacementGroupSchedulingStrategy(self._group, place),
        }

    def keep(self, value: Any) -> Any:
        """A reference to it, which can be given to actors any number of times; Ray writes to disk
        what finds no room in its store."""
        import ray

        return ray.put(value)

    def meeting(self) -> str:
        """Where ranks of one learner find each other: a store that this process holds."""
        import ray
        from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

        host = ray.util.get_node_ip_address()
        store = TCPStore(host, 0, is_master=True, wait_for_workers=False)
        self._stores.append(store)
        return f"{host}:{store.port}"

    def close(self) -> None:
        """Give the places back, and end what :meth:`__init__` started."""
        import ray
        from ray.util.placement_group import remove_placement_group

        with suppress(Exception):
            if self._group is not None:
                remove_placement_group(self._group)
        ray.shutdown()


@dataclass(eq=False)
class Actor:
    """A worker in a process of its own, which can be started again."""

    name: str
    roles: Sequence[str]
    arguments: tuple[Any, ...] = ()
    """Of :attr:`worker`, without its name."""
    more: Mapping[str, Any] = field(default_factory=dict)
    worker: type[BaseWorker] = Worker
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of its place."""
    restarts: int = 0
    """How often another one took its place."""
    handle: Any = None
    row: dict[str, str] = field(default_factory=dict)
    """Of the table of who sits where."""

    @property
    def processes(self) -> "Sequence[Actor]":
        """Itself, or those that learn as one under its name."""
        return [self]

    def start(self) -> None:
        """Begin to start it, or another one in its place."""
        import ray

        self.stop()
        made: Any = ray.remote(self.worker).options(**self.options)
        self.handle = made.remote(self.name, *self.arguments, **self.more)

    def begin(self, verb: str, *arguments: Any) -> Any:
        """Have a method run; :meth:`result` waits for it."""
        return getattr(self.handle, verb).remote(*arguments)

    def reference(self, begun: Any) -> Any:
        """What was begun, as an argument of what another process is to do with it."""
        return begun

    def result(self, begun: Any) -> Any:
        """What the method gave.

        Raises:
            Died: the process or its node has gone.
            PolicyFailure: it could not answer.
            UserError: what the method raised, or one sentence with this process's name.
        """
        import ray
        from ray.exceptions import RayActorError, RayError, RayTaskError

        try:
            return ray.get(begun)
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, (UserError, PolicyFailure)):
                raise cause from None
            kind = type(cause or error).__name__
            raise UserError(f"{self.name} failed: {kind}: {reason_of(cause or error)}") from error
        except RayActorError:
            raise Died(died(self.name)) from None
        except RayError as error:
            raise UserError(f"{self.name} cannot be asked: {reason_of(error)}") from error

    def future(self, begun: Any) -> Future[Any]:
        """Of what was begun: done when it is, with an exception where it failed."""
        return begun.future()

    async def wait(self, begun: Any) -> Any:
        """As :meth:`result`, and others may work meanwhile."""
        with suppress(Exception):
            await asyncio.wrap_future(self.future(begun))
        return self.result(begun)

    def ask(self, verb: str, *arguments: Any) -> Any:
        """:meth:`begin` and :meth:`result`."""
        return self.result(self.begin(verb, *arguments))

    def locate(self) -> None:
        """Note where it is.

        Raises:
            Died: it is nowhere.
        """
        node, address, gpus = self.ask("where")
        device = ", ".join(f"GPU {gpu}" for gpu in gpus) or "CPU"
        self.row = {"process": self.name, "roles": ", ".join(self.roles), "node": node[:8],
                "address": address, "device": device}  # fmt: skip

    def stop(self) -> None:
        """End the process; nothing to do where there is none."""
        import ray

        if self.handle is not None:
            with suppress(Exception):
                ray.kill(self.handle)
            self.handle = None
