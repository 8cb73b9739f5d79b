"""Policies that play expert roles: servers, other models, scripts."""

from experts.cache import CachedPolicy
from experts.naming import build_expert
from experts.pool import ExpertPool, TranslatedPolicy
from experts.scripted import ScriptedPolicy
from experts.server import ServerPolicy
from experts.settings import ScriptedSettings, ServerSettings

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
