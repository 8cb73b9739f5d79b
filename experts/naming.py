"""Players by name: who plays a role that no local model plays, on the command line.

::

    scripted:oracle?p_right=0.8           a script (see ScriptedSettings)
    server:http://127.0.0.1:8000/v1?model=expert&max_tokens=4096
    pool:tiny:expert|scripted:useless     seat 0, seat 1, and so on in turn
"""

import dataclasses
import types
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import unquote

from experts.settings import ScriptedSettings, ServerSettings
from vocabulary import UserError

SCRIPTED, SERVER, POOL = "scripted:", "server:", "pool:"

Named = ScriptedSettings | ServerSettings


def is_player(name: str) -> bool:
    """Whether ``name`` names something else than a model to load."""
    return name.startswith((SCRIPTED, SERVER, POOL))


def pool_members(name: str) -> list[str]:
    """The members of a pool, the name itself for everything else.

    Raises:
        UserError: an empty pool, or a pool in a pool.
    """
    if not name.startswith(POOL):
        return [name]
    members = [member.strip() for member in name.removeprefix(POOL).split("|")]
    if not all(members):
        raise UserError(f"{name!r}: write pool:ONE|TWO, each a model, scripted:... or server:...")
    if any(member.startswith(POOL) for member in members):
        raise UserError(f"{name!r}: a pool cannot hold another pool; join their members with |")
    return members


def read_player(name: str) -> Named:
    """The settings that ``scripted:...`` or ``server:...`` stands for.

    Raises:
        UserError: an option that does not exist, or a value of the wrong type.
    """
    if name.startswith(SCRIPTED):
        kind, options = _options(name.removeprefix(SCRIPTED))
        return _settings(name, ScriptedSettings, {"kind": kind or "oracle"} | options)
    address, options = _options(name.removeprefix(SERVER))
    return _settings(name, ServerSettings, {"base_url": address} | {"model": ""} | options)


def _options(text: str) -> tuple[str, dict[str, str]]:
    head, mark, tail = text.partition("?")
    options: dict[str, str] = {}
    for pair in tail.split("&") if mark else []:
        key, equals, value = pair.partition("=")
        if not key or not equals or key in options:
            raise UserError(f"{text!r}: write options as NAME=VALUE, each once, joined by &")
        options[key] = unquote(value)
    return head, options


def _settings(name: str, kind: type[Any], options: dict[str, str]) -> Any:
    hints = get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind)]
    values: dict[str, Any] = {}
    for key, text in options.items():
        if key not in known:
            raise UserError(f"{name!r} has no option {key!r}; known: {', '.join(known)}")
        try:
            values[key] = _value(text, hints[key])
        except ValueError:
            raise UserError(f"{name!r}: {key}={text} is no value for it") from None
    return kind(**values)


def _value(text: str, hint: Any) -> Any:
    if get_origin(hint) is types.UnionType:
        hint = get_args(hint)[0]
    if hint is bool:
        if text.lower() not in ("true", "false", "1", "0"):
            raise ValueError(text)
        return text.lower() in ("true", "1")
    if hint in (int, float):
        return hint(text[:40])
    if get_origin(hint) is tuple:
        return tuple(text.split(",")) if text else ()
    choices = get_args(hint)
    if choices and text not in choices:
        raise ValueError(text)
    return text
