"""Policies that play expert roles: servers, other models, scripts."""

from experts.build import build_expert
from experts.cache import CachedPolicy
from experts.pool import ExpertPool
from experts.scripted import ScriptedPolicy
from experts.server import ServerPolicy
from experts.settings import ScriptedSettings, ServerSettings
from experts.translated import TranslatedPolicy

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
