"""Settings as JSON data and back, for config.json, presets and resume."""

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from coterie.datatypes import UserError, check_fields, named_below, suggest_briefly

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """``value`` as JSON data: dataclasses become dictionaries, tuples lists, paths strings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return value


def override(default: T, values: Mapping[str, Any], *, at: str = "") -> T:
    """``default`` (a frozen dataclass) with ``values`` laid over it, field by field.

    Args:
        default: has the types of all fields.
        values: by name; nested mappings reach into nested dataclasses.
        at: the path of ``default``, for messages.

    Raises:
        UserError: an unknown name, or a value that does not fit its field.
    """
    changes: dict[str, Any] = {}
    known = {field.name for field in dataclasses.fields(default)}  # type: ignore[arg-type]
    for name, new in values.items():
        if name not in known:
            raise UserError(f"no setting is called {at}{name}; {suggest_briefly(name, known)}")
        old = getattr(default, name)
        if dataclasses.is_dataclass(old) and not isinstance(old, type) and isinstance(new, Mapping):
            changes[name] = override(old, new, at=f"{at}{name}.")
        else:
            changes[name] = _typed(new, _hints(type(default))[name])
    check_fields(type(default), changes, at=at)
    with named_below(at):
        return dataclasses.replace(default, **changes)  # type: ignore[type-var]


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """``{"env.k_cold": 2}`` -> ``{"env": {"k_cold": 2}}``."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        *parts, name = path.split(".")
        inner = tree
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return tree


def flat(values: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """The inverse of :func:`nested`."""
    leaves: dict[str, Any] = {}
    for name, value in values.items():
        leaves |= flat(value, f"{at}{name}.") if isinstance(value, Mapping) else {at + name: value}
    return leaves


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _typed(new: Any, hint: Any) -> Any:
    """``new`` as what JSON does not have: a tuple, or a path or dataclass that the type ``hint``
    names."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if isinstance(new, list):
        tuples = (get_args(kind) for kind in kinds if get_origin(kind) is tuple)
        hints: tuple[Any, ...] = next(tuples, ())
        if hints[1:] == (...,):
            return tuple(_typed(item, hints[0]) for item in new)
        # An item without a hint stays as it is: check_fields refuses a list that is too long.
        return tuple(_typed(item, each) for item, each in zip_longest(new, hints[: len(new)]))
    if isinstance(new, Mapping):
        kind: Any = next((kind for kind in kinds if dataclasses.is_dataclass(kind)), None)
        return new if kind is None else override(kind(), new)
    return Path(new) if Path in kinds and isinstance(new, str) else new
