"""Parses the names of players on the command line: scripts, servers, people and pools.

::

    scripted:oracle?p_right=0.8           a script (see ScriptedSettings)
    server:http://127.0.0.1:8000/v1?model=expert&max_tokens=4096
    human:                                a person at the terminal
    pool:tiny:expert|scripted:useless     seat 0, seat 1, and so on in turn
"""

import dataclasses
import types
from typing import Any, get_args, get_origin, get_type_hints

from coterie.datatypes import TokenCodec, UserError, did_you_mean, read_options
from coterie.experts.cache import CachedPolicy
from coterie.experts.human import HumanPolicy
from coterie.experts.scripted import ScriptedPolicy
from coterie.experts.server import ServerPolicy
from coterie.experts.settings import HumanSettings, ScriptedSettings, ServerSettings

SCRIPTED, SERVER, HUMAN, POOL = "scripted:", "server:", "human:", "pool:"

Named = ScriptedSettings | ServerSettings | HumanSettings


def is_player(name: str) -> bool:
    """Whether ``name`` is a player rather than a model to load."""
    return name.startswith((SCRIPTED, SERVER, HUMAN, POOL))


def is_human(name: str) -> bool:
    """Whether a person answers for ``name``, alone or in a pool."""
    return any(member.startswith(HUMAN) for member in pool_members(name))


def pool_members(name: str) -> list[str]:
    """Return the members of a pool, or ``[name]`` for other names.

    Raises:
        UserError: an empty pool, or a pool in a pool.
    """
    if not name.startswith(POOL):
        return [name]
    members = [member.strip() for member in name.removeprefix(POOL).split("|")]
    if not all(members):
        raise UserError(f"{name!r}: write pool:ONE|TWO, each a model or a player")
    if any(member.startswith(POOL) for member in members):
        raise UserError(f"{name!r}: a pool cannot hold another pool; join their members with |")
    return members


def read_player(name: str) -> Named:
    """Parse ``scripted:...``, ``server:...`` or ``human:`` into settings.

    Raises:
        UserError: an unknown option, or a value of the wrong type.
    """
    if name.startswith(SCRIPTED):
        kind, options = read_options(name.removeprefix(SCRIPTED))
        return _settings(name, ScriptedSettings, {"kind": kind or "oracle"} | options)
    if name.startswith(HUMAN):
        if name != HUMAN:
            raise UserError(f"{name!r}: write human: alone, without anything after the colon")
        return HumanSettings()
    address, options = read_options(name.removeprefix(SERVER))
    return _settings(name, ServerSettings, {"base_url": address} | {"model": ""} | options)


def build_expert(
    settings: Named, codec: TokenCodec, *, codec_name: str = ""
) -> ServerPolicy | ScriptedPolicy | HumanPolicy | CachedPolicy:
    """Build the policy of ``settings``.

    Args:
        settings: a server, a script or a person.
        codec: the role's codec, for replies.
        codec_name: name of the codec (a model's id and revision, ``utf-8``), for caches, which
            store ids.

    Raises:
        UserError: the API key is not set, the cache folder is unusable, or a cached codec has no
            name.
    """
    if isinstance(settings, ScriptedSettings):
        return ScriptedPolicy(settings, codec)
    if isinstance(settings, HumanSettings):
        return HumanPolicy(codec, settings.system_prompt)
    policy = ServerPolicy(settings, codec)
    if not settings.cache_dir:
        return policy
    if not codec_name:
        raise UserError("a cache stores token ids: name the role's codec, or leave cache_dir empty")
    identity = policy.identity() | {"codec": codec_name, "vocabulary": codec.vocab_size}
    return CachedPolicy(policy, settings.cache_dir, identity=identity)


def _settings(name: str, kind: type[Any], options: dict[str, str]) -> Any:
    # An option may hold a key by mistake.
    name, hints = name.partition("?")[0], get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind)]
    values: dict[str, Any] = {}
    for key, text in options.items():
        if key not in known:
            near = did_you_mean(key, known)
            raise UserError(f"{name!r} has no option {key!r}; {near}known: {', '.join(known)}")
        try:
            values[key] = _value(text, hints[key])
        except ValueError:
            raise UserError(f"{name!r}: {key}={text} is not a value for it") from None
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
