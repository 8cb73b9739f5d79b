"""Types for presets as data: each setting with its source and its reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Setting:
    """One setting of a preset."""

    value: Any
    source: str
    """The place in the paper (``section 5, table 3``) or in a work that it builds on."""
    why: str = ""
    """Why our default differs."""
    paper: str = ""
    """The paper's value, if the preset departs from it or the paper contradicts itself."""
    departs: str = ""
    """Why the preset departs from the paper."""


@dataclass(frozen=True)
class Departure:
    """A difference from the paper that no setting expresses."""

    what: str
    paper: str
    here: str
    why: str


@dataclass(frozen=True)
class Preset:
    """The settings of a paper, or of its method with other models."""

    paper: str
    env: str
    """The environment."""
    algo: str
    models: Mapping[str, str]
    """Role -> hub id; a team with other roles must name its own models."""
    settings: Mapping[str, Setting]
    """Settings by dotted name (``env.k_cold``); ``agents.tuning`` applies to every role."""
    algos: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    """Algorithm -> the paper's settings for it."""
    train_role: tuple[str, ...] = ()
    """Roles that learn; empty: the environment's default."""
    comparison: Mapping[str, Setting] = field(default_factory=dict)
    """The paper's evaluation: settings of ``benchmark.py``, by name."""
    own: bool = False
    """Whether the models differ from the paper's."""
    of: str = ""
    """Name of the preset with the paper's models that this one repeats with the tiny team."""
    at_default: Mapping[str, str] = field(default_factory=dict)
    """Setting that stays at the tiny team's default -> why."""


def miniature(
    of: str,
    full: Preset,
    *,
    at_default: Mapping[str, str],
    instead: Mapping[str, Setting],
    more: Mapping[str, Setting] | None = None,
) -> Preset:
    """Return the preset ``full`` with the tiny team; all other settings are the paper's.

    Args:
        of: name of ``full``.
        full: a preset with the paper's models.
        at_default: setting that stays at the tiny team's default -> why.
        instead: settings with another value, with ``paper`` and ``departs``.
        more: settings of the miniature only.

    Raises:
        ValueError: ``full`` lacks a setting of ``at_default`` or ``instead``.
    """
    names = {*full.settings, *(path for algo in full.algos.values() for path in algo)}
    if unknown := {*at_default, *instead} - names:
        raise ValueError(f"preset {of} sets no {', '.join(sorted(unknown))}")

    def smaller(settings: Mapping[str, Setting]) -> dict[str, Setting]:
        return {
            path: instead.get(path, setting)
            for path, setting in settings.items()
            if path not in at_default
        }

    return replace(
        full,
        models={},
        settings={**smaller(full.settings), **(more or {})},
        algos={name: smaller(settings) for name, settings in full.algos.items()},
        # The paper's data sets and sizes do not suit the tiny team.
        comparison={},
        own=True,
        of=of,
        at_default=at_default,
    )


# The papers name AdamW without decay rates.
ADAMW = {
    "learner.betas": Setting(
        (0.9, 0.999), "PyTorch, which the frameworks leave alone", "the tiny team's"
    )
}
TINY = "the size of the tiny team's models"
