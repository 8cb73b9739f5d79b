"""Settings as JSON data and back, for config.json, presets and resume."""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from coterie.datatypes import UserError, check_fields, named_below
from coterie.datatypes.errors import join_or

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
            raise UserError(f"no setting is called {at}{nearest(name, known)}")
        old = getattr(default, name)
        if dataclasses.is_dataclass(old) and not isinstance(old, type) and isinstance(new, Mapping):
            changes[name] = override(old, new, at=f"{at}{name}.")
        else:
            changes[name] = _typed_like(old, new)
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


def nearest(name: str, known: Iterable[str]) -> str:
    """``name`` with similar known names, or else all known names, for messages."""
    near = difflib.get_close_matches(name, known := sorted(known), n=3)
    return (
        f"{name}; did you mean {join_or(near)}?" if near else f"{name}; known: {', '.join(known)}"
    )


def _typed_like(old: Any, new: Any) -> Any:
    """``new`` as a tuple or path, which JSON does not have, if ``old`` is one."""
    if isinstance(new, list):
        return tuple(_typed_like(None, item) for item in new)
    if isinstance(old, Path) and new is not None:
        return Path(new)
    return new
