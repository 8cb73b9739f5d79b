"""Policies that play expert roles: servers, other models, scripts."""

from coterie.experts.cache import CachedPolicy
from coterie.experts.naming import build_expert
from coterie.experts.pool import ExpertPool, TranslatedPolicy
from coterie.experts.scripted import ScriptedPolicy
from coterie.experts.server import ServerPolicy
from coterie.experts.settings import ScriptedSettings, ServerSettings

__all__ = [
    "CachedPolicy",
    "ExpertPool",
    "ScriptedPolicy",
    "ScriptedSettings",
    "ServerPolicy",
    "ServerSettings",
    "TranslatedPolicy",
    "build_expert",
]
