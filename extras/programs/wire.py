"""Plain values over a pipe between two processes that do not trust each other: JSON with tags.

The receiver rebuilds values from numbers, strings and built-in containers, so no object of the
other side (such as an ``__eq__`` that is always true) gets through. The module imports nothing from
this project: child processes run it as a plain file.
"""

import json
import os
from typing import Any

LONGEST = 1 << 20
"""Maximum number of bytes of a message; a longer one breaks the link."""

_CONTAINERS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class BrokenLinkError(BaseException):
    """The other side is gone or sent an invalid message; ``except Exception`` misses it."""


def encode(value: Any) -> Any:
    """Convert a plain value to JSON data; raise TypeError for any other value."""
    if value is None or isinstance(value, bool):
        return value
    for scalar in (int, float, str):
        if isinstance(value, scalar):
            return scalar(value)
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, bytes | bytearray):
        return ["bytes", bytes(value).hex()]
    if isinstance(value, dict):
        return ["dict", [[encode(key), encode(item)] for key, item in value.items()]]
    for name, container in _CONTAINERS.items():
        if isinstance(value, container):
            return [name, [encode(item) for item in value]]
    raise TypeError(f"a {type(value).__name__} is no plain value")


def decode(data: Any) -> Any:
    """Convert data from :func:`encode` back to its value; raise an error for other data."""
    if not isinstance(data, list):
        if isinstance(data, dict):
            raise ValueError("an object is no value")
        return data
    name, *rest = data
    if name == "complex":
        return complex(*rest)
    if name == "bytes":
        return bytes.fromhex(*rest)
    if name == "dict":
        return {decode(key): decode(item) for key, item in rest[0]}
    return _CONTAINERS[name](decode(item) for item in rest[0])


class Link:
    """Messages over two pipes, one per line."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = reads, writes
        self._rest = b""

    def send(self, message: Any) -> None:
        """Send a message; raise :class:`BrokenLinkError` if the other side does not read."""
        data = json.dumps(message).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._writes, data) :]
        except OSError:
            raise BrokenLinkError from None

    def receive(self, longest: int | None = LONGEST) -> Any:
        """Return the next message; raise :class:`BrokenLinkError` if there is none."""
        pieces = [self._rest]
        length = len(self._rest)
        while b"\n" not in pieces[-1]:
            piece = os.read(self._reads, 1 << 16)
            length += len(piece)
            if not piece or (longest is not None and length > longest):
                raise BrokenLinkError
            pieces.append(piece)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            raise BrokenLinkError from None
