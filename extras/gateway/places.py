"""Which connections there may be: few of unknown clients, and of nobody so many that others have
none."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Generic, Protocol, TypeVar

try:
    import resource
except ImportError:  # not for this system
    resource = None

MOST_CONNECTIONS = 2048
"""Of all clients whose key is known."""
MOST_OF_ONE = 256
"""Of one owner."""
MOST_UNKNOWN = 256
"""Of clients that have shown no key for a while; in a burst there may be more."""
WHILE_S = 1.0
_DESCRIPTORS = 8192
"""Open files that this process would like to have; the commands that it runs need some, too."""


class _Place(Protocol):
    holder: "Holder | None"

    @property
    def idle(self) -> bool: ...


C = TypeVar("C", bound=_Place)


class NoPlace(Exception):
    """There is no place for a connection, and the owner's others are all in use."""


@dataclass(eq=False)
class Holder(Generic[C]):
    """What one owner has."""

    owner: Hashable
    connections: dict[C, None] = field(default_factory=dict)
    """From the oldest on."""
    bytes: int = 0
    """Of requests that are not answered yet."""


class Places(Generic[C]):
    """The connections, by their owners.

    Where too many are unknown, those that came first go. Where there is no place
    for a known one, idle connections are closed, those of whoever has most before others; then
    whoever has most gives one up that is in use.
    """

    def __init__(self) -> None:
        self._descriptors = _allowed_descriptors()
        self._unknown: dict[C, float] = {}
        """When each came, in that order."""
        self._holders: dict[Hashable, Holder[C]] = {}
        self._held = 0

    @property
    def _most(self) -> int:
        return min(MOST_CONNECTIONS, self._descriptors // 4)

    def arrive(self, connection: C) -> Iterable[C]:
        """A client comes; gives the connections that must go."""
        self._unknown[connection] = monotonic()
        return self._too_many_unknown()

    def claim(self, connection: C, owner: Hashable) -> Iterable[C]:
        """The connection is the owner's, or with None nobody's; gives those that must go.

        Raises:
            NoPlace: the owner may not have another.
        """
        if connection.holder is not None and connection.holder.owner == owner:
            return ()
        if connection.holder is None and owner is None:
            return ()
        gone = () if owner is None else self._room(owner)
        for other in gone:
            self.leave(other)
        self.leave(connection)
        if owner is None:
            self._unknown[connection] = monotonic()
            return self._too_many_unknown()
        holder = self._holders.setdefault(owner, Holder(owner))
        holder.connections[connection] = None
        connection.holder = holder
        self._held += 1
        return gone

    def leave(self, connection: C) -> None:
        """The connection is none any more."""
        self._unknown.pop(connection, None)
        holder, connection.holder = connection.holder, None
        if holder is None:
            return
        if holder.connections.pop(connection, connection) is None:
            self._held -= 1
        if not holder.connections:
            self._holders.pop(holder.owner, None)

    def forget(self, owner: Hashable) -> list[C]:
        """The owner is none any more; gives its connections, which are nobody's from now on."""
        holder = self._holders.get(owner)
        connections = [] if holder is None else list(holder.connections)
        for connection in connections:
            self.leave(connection)
            self._unknown[connection] = monotonic()
        return connections

    def _too_many_unknown(self) -> list[C]:
        few, most = max(1, min(MOST_UNKNOWN, self._most // 4)), max(1, self._most)
        gone: list[C] = []
        if len(self._unknown) <= few:
            return gone
        long_ago = monotonic() - WHILE_S
        for connection, came in self._unknown.items():
            left = len(self._unknown) - len(gone)
            # Those of a burst are as many as their requests, which are about to be read.
            if left <= few or (left <= most and came > long_ago):
                break
            gone.append(connection)
        for connection in gone:
            del self._unknown[connection]
        return gone

    def _room(self, owner: Hashable) -> list[C]:
        """Connections that go, so that the owner can have another."""
        holder = self._holders.get(owner)
        own = {} if holder is None else holder.connections
        if len(own) >= max(1, min(MOST_OF_ONE, self._most // 2)):
            if idle := _first_idle(own):
                return [idle]
            raise NoPlace(f"this episode has {len(own)} connections already")
        if self._held < self._most:
            return []
        by_size = sorted(self._holders.values(), key=lambda holder: -len(holder.connections))
        for other in by_size:
            if idle := _first_idle(other.connections):
                return [idle]
        if by_size and len(by_size[0].connections) > len(own) + 1:
            return [next(reversed(by_size[0].connections))]
        raise NoPlace(f"there are {self._held} connections already")


def _first_idle(connections: Iterable[C]) -> C | None:
    return next((connection for connection in connections if connection.idle), None)


def _allowed_descriptors() -> int:
    """Files that this process may have open, after it has asked for more."""
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
