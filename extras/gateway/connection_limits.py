"""Limits on connections: how many there may be in all, of one owner, and of unknown clients."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Generic, Protocol, TypeVar

try:
    import resource
except ImportError:  # not on this system
    resource = None

MOST_CONNECTIONS = 2048
"""Connections of all clients whose key is known."""
MOST_OF_ONE = 256
"""Connections of one owner."""
MOST_UNKNOWN = 256
"""Connections that have shown no key for ``WHILE_S``; a burst may have more."""
WHILE_S = 1.0
_DESCRIPTORS = 8192
"""Open files that this process requests; the commands that it runs need some, too."""


class _Connection(Protocol):
    quota: "OwnerQuota | None"

    @property
    def idle(self) -> bool: ...


C = TypeVar("C", bound=_Connection)


class TooManyConnections(Exception):
    """An owner may have no further connection, and none of its others is idle."""


@dataclass(eq=False)
class OwnerQuota(Generic[C]):
    """What one owner uses."""

    owner: Hashable
    connections: dict[C, None] = field(default_factory=dict)
    """Oldest first."""
    bytes: int = 0
    """Size of its requests that have no answer yet."""


class ConnectionLimits(Generic[C]):
    """The open connections, by owner, and which to close when there are too many.

    Too many unknown clients push out the oldest of them. If a known client finds no room, an idle
    connection is closed, first from the owner with the most; if none is idle, that owner loses a
    busy one.
    """

    def __init__(self) -> None:
        self._descriptors = _allowed_descriptors()
        self._unknown: dict[C, float] = {}
        """Connection -> its time of arrival, oldest first."""
        self._quotas: dict[Hashable, OwnerQuota[C]] = {}
        self._owned = 0

    @property
    def limit(self) -> int:
        """Maximum number of connections with an owner."""
        return min(MOST_CONNECTIONS, self._descriptors // 4)

    def add(self, connection: C) -> Iterable[C]:
        """Add the connection of an unknown client; return those to close."""
        self._unknown[connection] = monotonic()
        return self._evict_unknown()

    def assign(self, connection: C, owner: Hashable) -> Iterable[C]:
        """Assign the connection to ``owner``, or to nobody with None; return those to close.

        Raises:
            TooManyConnections: the owner may not have another.
        """
        if connection.quota is not None and connection.quota.owner == owner:
            return ()
        if connection.quota is None and owner is None:
            return ()
        evicted = () if owner is None else self._make_room(owner)
        for other in evicted:
            self.remove(other)
        self.remove(connection)
        if owner is None:
            return self.add(connection)
        quota = self._quotas.setdefault(owner, OwnerQuota(owner))
        quota.connections[connection] = None
        connection.quota = quota
        self._owned += 1
        return evicted

    def remove(self, connection: C) -> None:
        """Forget a closed connection."""
        self._unknown.pop(connection, None)
        quota, connection.quota = connection.quota, None
        if quota is None:
            return
        if quota.connections.pop(connection, connection) is None:
            self._owned -= 1
        if not quota.connections:
            self._quotas.pop(quota.owner, None)

    def forget_owner(self, owner: Hashable) -> list[C]:
        """Return the connections of ``owner``, which belong to nobody from now on."""
        quota = self._quotas.get(owner)
        connections = [] if quota is None else list(quota.connections)
        for connection in connections:
            self.remove(connection)
            self._unknown[connection] = monotonic()
        return connections

    def _evict_unknown(self) -> list[C]:
        few, most = max(1, min(MOST_UNKNOWN, self.limit // 4)), max(1, self.limit)
        evicted: list[C] = []
        if len(self._unknown) <= few:
            return evicted
        settled_before = monotonic() - WHILE_S
        for connection, arrival in self._unknown.items():
            left = len(self._unknown) - len(evicted)
            # Newcomers are spared: the request with their key is about to be read.
            if left <= few or (left <= most and arrival > settled_before):
                break
            evicted.append(connection)
        for connection in evicted:
            del self._unknown[connection]
        return evicted

    def _make_room(self, owner: Hashable) -> list[C]:
        """Choose the connections to close so that ``owner`` can have another."""
        quota = self._quotas.get(owner)
        current = {} if quota is None else quota.connections
        if len(current) >= max(1, min(MOST_OF_ONE, self.limit // 2)):
            if idle := _first_idle(current):
                return [idle]
            raise TooManyConnections(f"this episode has {len(current)} connections already")
        if self._owned < self.limit:
            return []
        by_size = sorted(self._quotas.values(), key=lambda quota: -len(quota.connections))
        for other in by_size:
            if idle := _first_idle(other.connections):
                return [idle]
        if by_size and len(by_size[0].connections) > len(current) + 1:
            return [next(reversed(by_size[0].connections))]
        raise TooManyConnections(f"there are {self._owned} connections already")


def _first_idle(connections: Iterable[C]) -> C | None:
    return next((connection for connection in connections if connection.idle), None)


def _allowed_descriptors() -> int:
    """Raise this process's limit of open files, and return it."""
    if resource is None:
        return _DESCRIPTORS
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _DESCRIPTORS
    wanted = _DESCRIPTORS if most == resource.RLIM_INFINITY else min(_DESCRIPTORS, most)
    if wanted > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        except (OSError, ValueError):
            return soft
        return wanted
    return soft
