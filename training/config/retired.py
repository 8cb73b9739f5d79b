"""Deleted settings, and the sentences for stored runs that use them."""

from collections.abc import Mapping
from typing import Any

from coterie.datatypes import UserError

_DISTIL = "use --algo.distillation.beta 1 with --env.reread unsolved in a new run"

RETIRED: Mapping[tuple[str, ...], tuple[Any, str]] = {
    ("algo", "sharing", "weight"): (0, f"learning peers' traces as one's own is gone: {_DISTIL}"),
    ("algo", "sharing", "alpha"): (None, ""),
    ("algo", "sharing", "delta"): (None, ""),
    ("algo", "distillation", "direction"): (
        "hint",
        f"weighing the reward by a hint is gone: {_DISTIL}",
    ),
    ("env", "reread_contrast"): (False, f"comparing with a wrong hint is gone: {_DISTIL}"),
}
"""Path of a setting -> its value without effect (None: any value), and the sentence for all
others."""

RETIRED_VALUES: Mapping[tuple[str, ...], Mapping[str, str]] = {
    ("algo", "distillation", "reader"): {
        "current": "weights that read what they have just learned are gone: use average",
    },
    ("env", "reread_hint"): {"gold": "the gold answer as a hint is gone: use peer or own"},
}
"""Path of an existing setting -> deleted values, with their sentences."""


class Retired(UserError):
    """Raised for a run that uses a deleted setting."""


def without_retired(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The stored settings of a run without deleted ones that had no effect.

    Raises:
        Retired: a deleted setting had an effect.
    """
    kept = _copy(plain)
    for path, (off, sentence) in RETIRED.items():
        *groups, name = path
        holder = _at(kept, groups)
        if name not in holder:
            continue
        value = holder.pop(name)
        if off is not None and value != off:
            raise Retired(_sentence(path, value, sentence))
        if not holder:
            del _at(kept, groups[:-1])[groups[-1]]
    for path, values in RETIRED_VALUES.items():
        value = _at(kept, path[:-1]).get(path[-1])
        if isinstance(value, str) and value in values:
            raise Retired(_sentence(path, value, values[value]))
    return kept


def _sentence(path: tuple[str, ...], value: Any, sentence: str) -> str:
    flag = "--" + ".".join(path).replace("_", "-")
    return f"this run was begun with {flag} {value}; {sentence}"


def _at(plain: dict[str, Any], path: Any) -> dict[str, Any]:
    """The mapping at ``path``; an empty one where there is none."""
    for name in path:
        inner = plain.get(name)
        plain = inner if isinstance(inner, dict) else {}
    return plain


def _copy(value: Any) -> Any:
    return {k: _copy(v) for k, v in value.items()} if isinstance(value, Mapping) else value
