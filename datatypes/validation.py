"""Validates settings against the types and bounds beside their fields.

::

    @dataclass(frozen=True)
    class Timer(Validated):
        seconds: Annotated[float, Gt(0)] = 1.0
        direction: Literal["up", "down"] = "up"

A bound holds for every number of its field. Without an upper bound a number must be finite, and a
whole number below 2^31, which no run reaches; ``Le(math.inf)`` allows infinity.
"""

import dataclasses
import math
import operator
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, GroupedMetadata, Gt, Interval, Le, Lt, MinLen

from coterie.datatypes.errors import UserError

Seed = Annotated[int, Interval(ge=0, lt=2**63)]
"""Seed of a random generator."""
Share = Annotated[float, Interval(ge=0, le=1)]
"""A share of a whole, or a probability."""
PositiveShare = Annotated[float, Interval(gt=0, le=1)]
"""A share above 0."""


class Needs:
    """Metadata of a field that changes nothing unless another one has one of some values.

    ::

        loss: Literal["l1", "l2", "kl"] = "l1"
        epsilon: Annotated[float, Needs("loss", "kl")] = 1e-3
        weight: float = 0.0
        margin: Annotated[float, Needs("weight")] = 0.1
    """

    def __init__(self, other: str, *values: object) -> None:
        self.other, self.values = other, values
        """The name of the other field, and those of its values that are enough; none: any that is
        not 0, false or empty."""

    def met_by(self, value: object) -> bool:
        """Whether the other field's ``value`` is enough; of a list one entry has to be."""
        entries = value if isinstance(value, tuple | list) else (value,)
        return any(entry in self.values if self.values else entry for entry in entries)


_LARGE = 2**31
_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    list: "a list",
    dict: "an object",
    Callable: "a function",
    NoneType: "null",
    Path: "a path",
}
_SECTION = re.compile(r"(--)?(agents\.\w+\.)?([a-z]+)?")
"""The place of settings: whether they are flags, the role that they are of, their section."""
_UNVALIDATED = ContextVar("unvalidated", default=False)


class Validated:
    """Base of a dataclass whose values are validated when an instance is made.

    Raises:
        UserError: a value does not fit its field, or :meth:`check` refuses it.
    """

    def __post_init__(self) -> None:
        if not _UNVALIDATED.get():
            validate(self)

    def check(self) -> None:
        """Refuse values that do not go together; each already fits its own field.

        Raises:
            UserError: one sentence that names the flag and the way out.
        """


def unmet(settings: Any) -> Iterator[tuple[str, Needs]]:
    """The names of the fields of a dataclass that change nothing now, each with what it needs.

    Raises:
        UserError: a field needs another one that does not exist.
    """
    fields = _fields(type(settings))
    for name, (_, marks) in fields.items():
        for mark in marks:
            if not isinstance(mark, Needs):
                continue
            if mark.other not in fields:
                kind = type(settings).__name__
                raise UserError(f"{kind}.{name} needs {mark.other!r}, which is no field of {kind}")
            if not mark.met_by(getattr(settings, mark.other)):
                yield name, mark


def idle_fields(settings: Any, section: str) -> Iterator[tuple[bool, str]]:
    """For :func:`~coterie.datatypes.refuse`: fields that change nothing now, and whether each has
    another value than its default.

    Args:
        settings: a dataclass.
        section: what its settings are called, such as ``algo``.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    for name, needs in unmet(settings):
        idle, other = (f"{section}.{each.replace('_', '-')}" for each in (name, needs.other))
        enough = f" {' or '.join(map(str, needs.values))}" if needs.values else ""
        chosen = getattr(settings, name) != defaults[name]
        yield chosen, f"{idle} does nothing without {other}{enough}"


@contextmanager
def unvalidated() -> Iterator[None]:
    """Inside, instances are made without validation.

    It serves a builder of nested settings, which calls :func:`validate` with the names of flags.
    """
    before = _UNVALIDATED.set(True)
    try:
        yield
    finally:
        _UNVALIDATED.reset(before)


def validate(settings: Any, at: str = "") -> None:
    """Refuse values that do not fit their fields, or do not go together.

    Args:
        settings: a dataclass, with nested ones in its fields or in mappings there.
        at: prefix of the fields' names; if it begins with ``--``, they are written as flags.

    Raises:
        UserError: one sentence that names the field.
    """
    fields = _fields(type(settings))
    values = {name: getattr(settings, name) for name in fields}
    check_fields(type(settings), values, at=at)
    for name, value in values.items():
        # The flags of a section without a name, such as --steps, have no prefix.
        nameless = any(getattr(mark, "name", None) == "" for mark in fields[name][1])
        prefix = at if nameless else f"{at}{_written(name, at)}."
        nested = {prefix: value}
        if isinstance(value, Mapping):
            nested = {f"{prefix}{_written(str(key), at)}.": item for key, item in value.items()}
        for path, item in nested.items():
            if dataclasses.is_dataclass(item) and not isinstance(item, type):
                validate(item, path)
    if isinstance(settings, Validated):
        with named_below(at):
            settings.check()


@contextmanager
def named_below(at: str) -> Iterator[None]:
    """Inside, errors name the settings of a section as they are written at ``at``.

    A section's own sentences call its settings ``algo.scale``, and a role ROLE::

        with named_below("--agents.bob.algo."):
            raise UserError("set algo.scale")  # set --agents.bob.algo.scale

    Args:
        at: the section, as for :func:`validate`; without flags (``agents.bob.algo.``) names have no
            ``--``.
    """
    try:
        yield
    except UserError as error:
        sentence = _located(str(error), at)
        if sentence == str(error):
            raise
        raise type(error)(sentence) from error.__cause__


def _located(sentence: str, at: str) -> str:
    match = _SECTION.match(at)
    assert match is not None, "every part is optional"
    dashes, role, section = match.groups(default="")
    if role:
        sentence = sentence.replace("agents.ROLE.", role)
    if section:
        own_name = rf"(?<![\w.-])(--)?{section}\.(?=[a-z])"
        sentence = re.sub(own_name, f"{dashes}{role}{section}.", sentence)
    return sentence


def check_fields(kind: type, values: Mapping[str, Any], *, at: str = "") -> None:
    """Refuse a value that does not fit the type or the bounds of its field.

    Args:
        kind: a dataclass.
        values: by name; names without a field are ignored, and lists are tuples.
        at: prefix of the fields' names; if it begins with ``--``, they are written as flags.

    Raises:
        UserError: names the first such value.
    """
    fields = _fields(kind)
    for name, value in values.items():
        if name in fields and (wanted := _wanted(value, *fields[name])):
            shown = reprlib.repr(value)
            raise UserError(f"{at}{_written(name, at)} is {shown}; it must be {wanted}")


def fits(value: Any, hint: Any) -> bool:
    """Whether ``value`` is of type ``hint``; an int is also a float, and a bool is neither.

    Every value fits a type that is not understood here, such as a protocol.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return fits(value, inner[0])
    if origin in (Union, UnionType):
        return any(fits(value, member) for member in inner)
    if origin is Literal:
        return any(type(value) is type(member) and value == member for member in inner)
    if origin is not None:
        return isinstance(value, origin) and _elements_fit(value, inner)
    if hint is None:
        return value is None
    if hint in (int, float):
        kinds = (int,) if hint is int else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    if hint is Any or not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return True
    return isinstance(value, hint)


@lru_cache
def _fields(kind: type) -> dict[str, tuple[Any, list[Any]]]:
    """The fields of a dataclass; name -> its type, the bounds and other metadata in it."""
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in dataclasses.fields(kind)]
    return {name: (hints[name], _marks(hints[name])) for name in names}


def _written(name: str, at: str) -> str:
    return name.replace("_", "-") if at.startswith("--") else name


def _marks(hint: Any) -> list[Any]:
    """The bounds and other metadata beside a type, and beside the types in it."""
    if get_origin(hint) is not Annotated:
        return [mark for member in get_args(hint) for mark in _marks(member)]
    kind, *marks = get_args(hint)
    parts = [[*mark] if isinstance(mark, GroupedMetadata) else [mark] for mark in marks]
    return [part for group in parts for part in group] + _marks(kind)


def _wanted(value: Any, hint: Any, marks: list[Any]) -> str:
    """What the field takes in words if ``value`` does not fit; else empty."""
    if not fits(value, hint):
        return describe(hint)
    if any(isinstance(mark, MinLen) and len(value) < mark.min_length for mark in marks):
        return "a list with at least one entry"
    bounds = list(_bounds(marks))
    return next((words for n in _numbers(value) if (words := _range_around(n, bounds))), "")


def _numbers(value: Any) -> Iterator[int | float]:
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, Mapping):
        yield from _numbers([*value.values()])


_Bound = tuple[str, Callable[[Any, Any], bool], Any]
"""(words, whether a number is within the limit, the limit)."""


def _bounds(marks: Iterable[Any]) -> Iterator[_Bound]:
    for mark in marks:
        match mark:
            case Ge(ge=limit):
                yield "at least", operator.ge, limit
            case Gt(gt=limit):
                yield "above", operator.gt, limit
            case Le(le=limit):
                yield "at most", operator.le, limit
            case Lt(lt=limit):
                yield "below", operator.lt, limit


def _range_around(number: float, bounds: Sequence[_Bound]) -> str:
    """The range of a field in words if ``number`` is outside; else empty."""
    largest = math.inf if isinstance(number, float) else _LARGE
    words = {word for word, *_ in bounds}
    implied: list[_Bound] = []
    if not words & {"at least", "above"}:
        implied.append(("above", operator.gt, -largest))
    if not words & {"at most", "below"}:
        implied.append(("below", operator.lt, largest))
    broken = {
        word: limit
        for word, is_within, limit in (*bounds, *implied)
        if not is_within(number, limit)
    }
    if not broken:
        return ""
    shown = {word: limit for word, _, limit in bounds if limit != math.inf}
    if shown.keys() == {"at least", "at most"}:
        return f"{_figure(shown['at least'])} to {_figure(shown['at most'])}"
    parts = [
        "finite" if math.isinf(limit) else f"{word} {_figure(limit)}"
        for word, limit in {**shown, **broken}.items()
    ]
    return " and ".join(dict.fromkeys(parts))


def _figure(limit: float) -> str:
    """A limit as text: large ones as a power of 2."""
    if isinstance(limit, float):
        return f"{limit:g}"
    power = abs(limit).bit_length() - 1
    return f"{'-' if limit < 0 else ''}2^{power}" if abs(limit) >= _LARGE else str(limit)


def _elements_fit(value: Any, inner: tuple[Any, ...]) -> bool:
    """Whether the elements of a container fit their types."""
    if isinstance(value, tuple) and inner and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(fits, value, inner))
    if isinstance(value, Mapping) and len(inner) == 2:
        return all(
            fits(key, inner[0]) and fits(element, inner[1]) for key, element in value.items()
        )
    if isinstance(value, Sequence) and inner:
        return all(fits(element, inner[0]) for element in value)
    return True


def describe(hint: Any) -> str:
    """Return what a field of type ``hint`` takes, in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return describe(inner[0])
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(describe(member) for member in inner))
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is list or (origin is tuple and inner[-1:] == (Ellipsis,)):
        return f"a list, each entry {describe(inner[0])}"
    if origin is tuple:
        return f"a list of {len(inner)}, {', '.join(map(describe, inner))}"
    if dataclasses.is_dataclass(hint) or (origin is not None and issubclass(origin, Mapping)):
        return "an object"
    return _WORDS.get(origin or hint, getattr(hint, "__name__", str(hint)))
