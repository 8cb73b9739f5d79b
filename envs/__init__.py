"""Environments: a folder for each protocol.

``make(name)`` builds one, and ``check_env(env)`` tests whether it keeps the contract. Importing
this package registers every environment with ``pettingzoo.make``, too. Derive your own from
:class:`ConversationEnv`.
"""

from importlib import import_module

from coterie.envs.adapt import adapt
from coterie.envs.check import check_env
from coterie.envs.conversation import ConversationEnv
from coterie.envs.env_spec import EnvSpec
from coterie.envs.presets import settings_of
from coterie.envs.registry import make, names, register, registered, spec
from coterie.envs.tools import ToolCall, Tools
from coterie.envs.turns import Answers, Ask, Conversation, Fresh, Outcome, Turn

__all__ = [
    "Answers",
    "Ask",
    "Conversation",
    "ConversationEnv",
    "EnvSpec",
    "Fresh",
    "Outcome",
    "ToolCall",
    "Tools",
    "Turn",
    "adapt",
    "check_env",
    "make",
    "names",
    "register",
    "registered",
    "settings_of",
    "spec",
]

# Each environment is a folder; the rest of the project knows only its spec.py. The first is the
# default of train.py.
for folder in ("core_teaching", "corea_deferral", "eapo_consultation", "sd_e2", "solo"):
    register(import_module(f"coterie.envs.{folder}.spec").SPEC)
