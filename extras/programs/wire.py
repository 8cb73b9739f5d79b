"""Values over a pipe between two processes that do not trust each other: JSON with tags.

The receiver rebuilds every value from numbers, strings and types of the standard library, so no
object of the other side (such as an ``__eq__`` that is always true) gets through. Functions and
iterators stay where they are: the other side gets a stand-in that asks for each result. The module
imports nothing from this project: child processes run it as a plain file.
"""

import builtins
import collections
import datetime
import json
import os
from collections import OrderedDict, deque
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

LONGEST = 1 << 20
"""Maximum number of bytes of a message; a longer one breaks the link."""
_MOST_ITERATED = 1 << 24
"""Maximum number of bytes that all iterators of the other side may send."""
_MOST_IN_RANGE = 1 << 20

_CONTAINERS: dict[str, type] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset
}  # fmt: skip
_MAPPINGS: dict[str, type] = {
    "Counter": collections.Counter, "OrderedDict": OrderedDict, "dict": dict
}  # fmt: skip
_VIEWS: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "keys": (KeysView, lambda items: dict.fromkeys(items).keys()),
    "values": (ValuesView, lambda items: dict(enumerate(items)).values()),
    "items": (ItemsView, lambda items: dict(items).items()),
}
_TIMES: dict[str, Any] = {
    "datetime": datetime.datetime, "date": datetime.date, "time": datetime.time
}  # fmt: skip
_ERRORS: dict[str, type[Exception]] = {
    name: error
    for name, error in vars(builtins).items()
    if isinstance(error, type)
    and issubclass(error, Exception)
    # These would end a ``map`` or an ``all`` of the other side as if its input had ended.
    and not issubclass(error, StopIteration | StopAsyncIteration)
}
_TYPES: dict[str, type] = {
    **{kind.__name__: kind for kind in (bool, int, float, complex, str, bytes, bytearray)},
    **{kind.__name__: kind for kind in (list, tuple, dict, set, frozenset, range, object)},
    **{kind.__name__: kind for kind in (type(None), Decimal, Fraction, deque)},
    **_ERRORS,
}


class BrokenLinkError(BaseException):
    """The other side is gone or sent an invalid message; ``except Exception`` misses it."""


class RemoteError(Exception):
    """The other side raised an exception that is no built-in one."""


class NoPlainValueError(TypeError):
    """A value cannot cross."""


class Link:
    """Messages over two pipes, one per line."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = reads, writes
        self._rest = b""
        self.received = 0
        """Bytes of all messages so far."""

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
        self.received += len(line)
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            raise BrokenLinkError from None


class Peer:
    """One side of the link: it calls functions of the other side, and serves its own.

    While a call waits for its result, the other side may call back the functions that it was given.
    """

    def __init__(self, link: Link, longest: int | None = LONGEST) -> None:
        self.link = link
        self.longest = longest
        """Maximum number of bytes of a message from the other side; None: any."""
        self.served: list[Callable[..., Any]] = []
        """Functions that the other side may call, by number."""
        self.returns_arguments = False
        """Whether results of function 0 come with its arguments as they are after the call."""
        self.array: Callable[[Any], Any] = list
        """What an array of the other side becomes."""
        self.refuses_nan = False
        """Whether a result that holds NaN counts as an exception of the function."""
        self.broken = False
        """Whether a call ended with :class:`BrokenLinkError`."""
        self._iterated = 0

    def call(self, number: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call a function of the other side and return its result.

        Raises:
            Exception: what the function raised, if it is built in; else :class:`RemoteError`.
            NoPlainValueError: an argument cannot cross.
            BrokenLinkError: the other side is gone or sent an invalid message.
        """
        try:
            return self._call(number, arguments, named)
        except BrokenLinkError:
            self.broken = True
            raise

    def _call(self, number: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self.link.send({"call": [number, self.encode(arguments), self.encode(named)]})
        while True:
            message = self.link.receive(self.longest)
            try:
                ((kind, body),) = message.items()
                if kind == "call":
                    self.serve(*body)
                    continue
                if kind == "error":
                    error = self._error(*body)
                elif kind == "value":
                    return self.decode(body)
                elif kind == "changed" and self.returns_arguments:
                    value, *changed = map(self.decode, body)
                    _restore([*arguments, *named.values()], *changed)
                    return value
                else:
                    raise ValueError(f"{kind!r} is no message")
            except RemoteError:
                raise
            except Exception:
                raise BrokenLinkError from None
            raise error

    def serve(self, number: int, arguments: Any, named: Any) -> None:
        """Call one of our functions for the other side and send the result.

        Raises:
            BrokenLinkError: there is no such function, or the other side is gone.
        """
        try:
            if number not in range(len(self.served)):
                raise IndexError
            function = self.served[number]
            arguments, named = self.decode(arguments), self.decode(named)
        except Exception:
            raise BrokenLinkError from None
        try:
            value = function(*arguments, **named)
            if self.returns_arguments and number == 0:
                after = [*arguments, *named.values()]
                reply = {"changed": [self.encode(value), self.encode(after)]}
            else:
                reply = {"value": self.encode(value)}
        except BrokenLinkError:
            raise
        except BaseException as error:
            reply = {"error": self._described(error)}
        self.link.send(reply)

    def encode(self, value: Any) -> Any:
        """Convert a value to JSON data.

        Raises:
            NoPlainValueError: the value cannot cross.
        """
        if value is None or isinstance(value, bool):
            return value
        # The methods of the built-in types, not those of a subclass such as an Enum.
        if isinstance(value, int):
            number = int.__int__(value)
            return number if -(1 << 63) <= number < 1 << 63 else ["int", hex(number)]
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, complex):
            return ["complex", value.real, value.imag]
        if isinstance(value, bytes):
            return ["bytes", bytes(value).hex()]
        if isinstance(value, bytearray):
            return ["bytearray", bytes(value).hex()]
        for name, kind in _MAPPINGS.items():
            if isinstance(value, kind):
                items = [[self.encode(key), self.encode(item)] for key, item in value.items()]
                return [name, items]
        for name, kind in _CONTAINERS.items():
            if isinstance(value, kind):
                return [name, [self.encode(item) for item in value]]
        return self._encode_further(value)

    def _encode_further(self, value: Any) -> Any:
        if isinstance(value, deque):
            return ["deque", [self.encode(item) for item in value], value.maxlen]
        if isinstance(value, range):
            return ["range", *map(self.encode, (value.start, value.stop, value.step))]
        if isinstance(value, Fraction):
            return ["Fraction", self.encode(value.numerator), self.encode(value.denominator)]
        if isinstance(value, Decimal):
            return ["Decimal", str(value)]
        if isinstance(value, datetime.timedelta):
            return ["timedelta", value.days, value.seconds, value.microseconds]
        for name, kind in _TIMES.items():
            if isinstance(value, kind):
                return [name, value.isoformat()]
        for name, (kind, _) in _VIEWS.items():
            if isinstance(value, kind):
                return [name, [self.encode(item) for item in value]]
        if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
            items = self.encode(value.tolist())
            return ["array", items] if isinstance(items, list) and items[0] == "list" else items
        if isinstance(value, Iterator):
            return ["iterator", self._offer(lambda: list(islice(value, 1)))]
        if isinstance(value, type) and _TYPES.get(value.__name__) is value:
            return ["type", value.__name__]
        if isinstance(value, Remote) and value.peer is self:
            return ["yours", value.number]
        if callable(value):
            return ["function", self._offer(value)]
        raise NoPlainValueError(f"a {type(value).__name__} is no plain value")

    def _offer(self, function: Callable[..., Any]) -> int:
        self.served.append(function)
        return len(self.served) - 1

    def decode(self, data: Any) -> Any:
        """Convert data from :meth:`encode` back to its value; raise an error for other data."""
        if not isinstance(data, list):
            if isinstance(data, dict):
                raise ValueError("an object is no value")
            if self.refuses_nan and data != data:
                raise RemoteError("NaN")
            return data
        name, *rest = data
        if name in _CONTAINERS:
            (items,) = rest
            return _CONTAINERS[name](self.decode(item) for item in _listed(items))
        if name in _MAPPINGS:
            (items,) = rest
            pairs = ((self.decode(key), self.decode(item)) for key, item in _listed(items))
            return _MAPPINGS[name](dict(pairs))
        return self._decode_further(name, rest)

    def _decode_further(self, name: str, rest: list[Any]) -> Any:
        if name == "array":
            (items,) = rest
            return self.array(self.decode(items))
        if name == "complex":
            return complex(*map(self.decode, rest))
        if name == "iterator":
            return RemoteIterator(self, *rest)
        if name == "function":
            return Remote(self, *rest)
        if name == "yours":
            return self.served[range(len(self.served))[rest[0]]]
        if name in _VIEWS:
            (items,) = rest
            return _VIEWS[name][1](self.decode(item) for item in _listed(items))
        if name == "deque":
            items, longest = rest
            return deque((self.decode(item) for item in _listed(items)), longest)
        if name in ("range", "Fraction"):
            numbers = [self.decode(item) for item in rest]
            if not all(type(number) is int for number in numbers):
                raise ValueError(f"a {name} holds integers")
            if name == "Fraction":
                return Fraction(*numbers)
            values = range(*numbers)
            # A few bytes must not become gigabytes of the other side.
            if len(values) > _MOST_IN_RANGE:
                raise ValueError("a range is too long")
            return values
        return _scalar(name, *rest)

    def next_of(self, number: int) -> list[Any]:
        """Ask an iterator of the other side for its next item: a list of it, or an empty one."""
        before = self.link.received
        items = self.call(number, (), {})
        self._iterated += self.link.received - before
        if type(items) is not list or len(items) > 1 or self._iterated > _MOST_ITERATED:
            self.broken = True
            raise BrokenLinkError
        return items

    def _described(self, error: BaseException) -> list[Any]:
        names = [kind.__name__ for kind in type(error).__mro__]
        try:
            described = [names, [self.encode(argument) for argument in error.args]]
            return described if len(json.dumps(described)) < LONGEST // 2 else [names, []]
        except Exception:
            return [names, []]

    def _error(self, names: Any, arguments: Any) -> Exception:
        for name in _listed(names):
            if name in _ERRORS:
                try:
                    return _ERRORS[name](*map(self.decode, _listed(arguments)))
                except Exception:
                    break
        return RemoteError(str(names[0])[:100])


class Remote:
    """Stands for a function of the other side."""

    def __init__(self, peer: Peer, number: int) -> None:
        self.peer, self.number = peer, number

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it there."""
        return self.peer.call(self.number, arguments, named)


class RemoteIterator:
    """Stands for an iterator of the other side, which computes each item when it is needed."""

    def __init__(self, peer: Peer, number: int) -> None:
        self._peer, self._number = peer, number

    def __iter__(self) -> "RemoteIterator":
        return self

    def __next__(self) -> Any:
        for item in self._peer.next_of(self._number):
            return item
        raise StopIteration


def _listed(items: Any) -> list[Any]:
    # Iterating over a string or an object would yield characters or keys.
    if not isinstance(items, list):
        raise ValueError("a list was expected")
    return items


def _scalar(name: str, *rest: Any) -> Any:
    if name == "int":
        (digits,) = rest
        return int(digits, 16)
    if name in ("bytes", "bytearray"):
        return _TYPES[name](bytes.fromhex(*rest))
    if name == "Decimal":
        (text,) = rest
        if not isinstance(text, str):
            raise ValueError("a Decimal is text")
        return Decimal(text)
    if name == "timedelta":
        return datetime.timedelta(*rest)
    if name == "type":
        return _TYPES[rest[0]]
    return _TIMES[name].fromisoformat(*rest)


def _restore(arguments: list[Any], changed: Any) -> None:
    """Update the containers that were passed to a function as the function changed them."""
    for mine, theirs in zip(arguments, changed, strict=True):
        if type(mine) is not type(theirs):
            continue
        if isinstance(mine, list | bytearray):
            mine[:] = theirs
        elif isinstance(mine, dict | set):
            mine.clear()
            mine.update(theirs)
        elif isinstance(mine, deque):
            mine.clear()
            mine.extend(theirs)
