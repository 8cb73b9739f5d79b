"""How models that are not tiny are asked where nothing is trained by reward: in a benchmark, and by
who imitates them. The same tables as for training (:mod:`coterie.training.model_defaults`)."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from coterie import envs
from coterie.experts.naming import is_player
from coterie.models.size import count_weights, is_tiny
from coterie.training.model_defaults import EVERYWHERE, as_flag, size_in_words
from coterie.training.plain import flat

PROBLEMS: str = EVERYWHERE["problems.train"]
"""Real problems, in place of those that are made for tiny models."""
_MADE = ("chains", "recall")
_ASKED = (
    "env.prompt_style",
    "env.prompt",
    "env.max_new_tokens",
    "env.expert_max_new_tokens",
    "env.reply_tokens",
    "env.stop",
)
"""What of an environment's table says how its models are asked, and not how they learn."""


def are_tiny(models: Collection[str]) -> bool:
    """Whether none of them is larger than those that ship here; a script or server never is."""
    return all(is_player(one) or is_tiny(one) for one in models)


def asking(env: str) -> dict[str, Any]:
    """Settings of the environment ``env``, by their names, for models that are not tiny."""
    table = flat(envs.spec(env).larger or {})
    return {n.removeprefix("env."): value for n, value in table.items() if n in _ASKED}


def is_made_for_tiny(problems: Collection[str]) -> bool:
    """Whether all of these sets are made by a rule that tiny models have learned."""
    return all(name.partition("?")[0] in _MADE for name in problems)


def sentence(
    values: Mapping[str, Any],
    models: Collection[str],
    where: str = "",
    form: Callable[[str, Any], str] = as_flag,
) -> str:
    """What was chosen for ``models``, and why; empty without any ``values``.

    Args:
        values: settings by their names.
        models: for which they were chosen.
        where: what it begins with.
        form: name and value of a setting -> as the user would write it.
    """
    if not values:
        return ""
    counted = [count_weights(one) for one in models if not is_player(one)]
    sizes = " and ".join(dict.fromkeys(map(size_in_words, counted)))
    flags = " ".join(form(name, value) for name, value in values.items())
    return f"{where}Defaults for models of {sizes} weights: {flags}"
