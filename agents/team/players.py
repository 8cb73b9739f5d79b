"""Players without a model of their own: scripts, servers, people and pools, which are frozen."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import Policy, TokenCodec, UserError
from coterie.experts import ExpertPool, TranslatedPolicy, build_expert
from coterie.experts.naming import (
    HUMAN,
    SCRIPTED,
    SERVER,
    Named,
    is_human,
    is_player,
    pool_members,
    read_player,
)
from coterie.experts.pool import counters_of
from coterie.experts.server import read_key
from coterie.experts.settings import HumanSettings, ScriptedSettings, ServerSettings

SEAT = "|"
"""Stands between a role and the number of a seat of its pool, in the names of models."""


def check_players(agents: Mapping[str, AgentSettings]) -> None:
    """Check every player before anything is loaded.

    Raises:
        UserError: an invalid name, a player that should learn, or a server whose API key is not
            set.
    """
    for role, settings in agents.items():
        if not is_player(settings.model):
            continue
        if settings.trained:
            raise UserError(
                f"{role} is played by {settings.model}, which cannot learn; name the roles that "
                "learn with --train-role"
            )
        for member in pool_members(settings.model):
            if member.startswith((SCRIPTED, SERVER, HUMAN)):
                named = _named_player(role, member, settings.system)
                if isinstance(named, ServerSettings):
                    read_key(named)


def _named_player(role: str, member: str, system: str) -> Named:
    """The settings of a player with the system message ``system``.

    Raises:
        UserError: an invalid name, or a player that cannot send the message.
    """
    named, flag = read_player(member), f"--agents.{role}.system"
    if not system:
        return named
    if isinstance(named, ScriptedSettings):
        raise UserError(f"{flag}: {member} reads no system message; leave it out")
    if isinstance(named, HumanSettings):
        return dataclasses.replace(named, system_prompt=system)
    if named.system_prompt:
        raise UserError(f"{flag}: {member} has a system_prompt already; leave out one of the two")
    if named.api != "chat":
        raise UserError(
            f"{flag}: {member} has api=completions, which sends no system message; leave it out, "
            "or write it into the environment's prompt"
        )
    return dataclasses.replace(named, system_prompt=system)


def local_models(agents: Mapping[str, AgentSettings]) -> dict[str, AgentSettings]:
    """Return the models to load: by role, or for members of pools by the name of their seat."""
    models: dict[str, AgentSettings] = {}
    for role, settings in agents.items():
        if not is_player(settings.model):
            models[role] = settings
            continue
        for seat, member in enumerate(pool_members(settings.model)):
            if not is_player(member):
                models[_seat(role, seat)] = dataclasses.replace(settings, model=member)
    return models


def build_player(
    role: str,
    name: str,
    codec: TokenCodec,
    *,
    codec_name: str,
    local: Mapping[str, tuple[Policy, TokenCodec]],
    system: str = "",
) -> Policy:
    """Return the policy of a role with the player ``name``.

    Args:
        role: the role.
        name: ``scripted:...``, ``server:...``, ``human:`` or ``pool:...``.
        codec: the role's codec.
        codec_name: name of the codec, for caches.
        local: the loaded models of :func:`local_models`: name -> (policy, its codec).
        system: the role's system message, which servers get with every request.
    """

    def player_at(seat: int, member: str) -> Any:
        if not is_player(member):
            policy, inner = local[_seat(role, seat)]
            return TranslatedPolicy(policy, inner=inner, outer=codec)
        return build_expert(_named_player(role, member, system), codec, codec_name=codec_name)

    members = pool_members(name)
    if len(members) == 1 and members[0] == name:
        return player_at(0, name)
    return ExpertPool({f"{seat}": player_at(seat, member) for seat, member in enumerate(members)})


def player_counters(policies: Mapping[str, Policy]) -> dict[str, float]:
    """Return the players' counters as ``player/ROLE/...``, for logs."""
    return {
        f"player/{role}/{name}": value
        for role, policy in policies.items()
        for name, value in counters_of(policy).items()
    }


def has_human(agents: Mapping[str, AgentSettings]) -> bool:
    """Whether a person plays one of the roles."""
    return any(is_human(agent.model) for agent in agents.values())


def _seat(role: str, seat: int) -> str:
    return f"{role}{SEAT}{seat}"
