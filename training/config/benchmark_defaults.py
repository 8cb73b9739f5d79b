"""Defaults of benchmarks and distillation for models that are not tiny.

They come from the tables of training (:mod:`coterie.training.config.model_defaults`).
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from coterie import envs
from coterie.agents.models.size import is_tiny
from coterie.agents.team.settings import AgentSettings
from coterie.experts.naming import is_player
from coterie.training.config.model_defaults import EVERYWHERE, as_flag, sizes_in_words
from coterie.training.config.serialize import flat

PROBLEMS: str = EVERYWHERE["problems.train"]
"""Real problems, in place of those for tiny models."""
_FOR_TINY_MODELS = ("chains", "recall")
_PROMPT_SETTINGS = (
    "env.prompt_style",
    "env.prompt",
    "env.max_new_tokens",
    "env.expert_max_new_tokens",
    "env.reply_tokens",
    "env.stop",
    "env.prefill_confidence",
)
"""Settings of an environment's table that concern prompts and answers, not learning."""


def are_tiny(models: Collection[str]) -> bool:
    """Whether all ``models`` are as small as the shipped ones, as scripts and servers are."""
    return all(is_player(model) or is_tiny(model) for model in models)


def asking(env: str) -> dict[str, Any]:
    """Settings of the environment about prompts and answers, for models that are not tiny."""
    table = flat(envs.spec(env).larger or {})
    return {n.removeprefix("env."): value for n, value in table.items() if n in _PROMPT_SETTINGS}


def is_made_for_tiny(problems: Collection[str]) -> bool:
    """Whether all sets come from generators that the tiny models were trained on."""
    return all(name.partition("?")[0] in _FOR_TINY_MODELS for name in problems)


def defaults_notice(
    values: Mapping[str, Any],
    models: Collection[str],
    where: str = "",
    form: Callable[[str, Any], str] = as_flag,
) -> str:
    """A sentence on the settings chosen for ``models``; empty without ``values``.

    Args:
        values: settings by name.
        models: for which they were chosen.
        where: begins the sentence.
        form: (name, value) of a setting -> how the user would write it.
    """
    if not values:
        return ""
    sizes = sizes_in_words(AgentSettings(model, trained=False) for model in models)
    flags = " ".join(form(name, value) for name, value in values.items())
    return f"{where}Defaults for models of {sizes} weights: {flags}"
