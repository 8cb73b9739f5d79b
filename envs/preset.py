"""What a preset is, as data: each setting with where it stands, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Setting:
    """One setting of a preset."""

    value: Any
    source: str
    """Where it stands: in the paper (``section 5, table 3``), or in what that builds on."""
    why: str = ""
    """Why our default is another one."""
    paper: str = ""
    """What the paper says where the preset departs from it, or where it says two things."""
    departs: str = ""
    """Why it departs."""


@dataclass(frozen=True)
class Departure:
    """A difference between presets and paper that no setting expresses."""

    what: str
    paper: str
    here: str
    why: str


@dataclass(frozen=True)
class Preset:
    """The settings of a paper, or of a method with models that it does not name."""

    paper: str
    env: str
    """Where it holds; empty: in every environment."""
    algo: str
    models: Mapping[str, str]
    """Role -> hub id; a team of other roles takes the rest and names its own models."""
    settings: Mapping[str, Setting]
    """By dotted name (``env.k_cold``); ``agents.tuning`` is every role's."""
    algos: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    """Algorithm -> what the paper sets of it."""
    train_role: tuple[str, ...] = ()
    """Who learns; empty: whoever learns in this environment by default."""
    comparison: Mapping[str, Setting] = field(default_factory=dict)
    """What the paper compares on and how: settings of ``benchmark.py``, by name."""
    own: bool = False
    """Whether its models are ours and not the paper's."""
    of: str = ""
    """Name of the preset with the paper's models that this one repeats with the tiny team."""
    at_default: Mapping[str, str] = field(default_factory=dict)
    """Settings of that preset that stay at the tiny team's default -> why."""


def miniature(
    of: str,
    full: Preset,
    *,
    at_default: Mapping[str, str],
    instead: Mapping[str, Setting],
    more: Mapping[str, Setting] | None = None,
) -> Preset:
    """The preset ``full`` with the tiny team: every setting the paper's, but for those named here.

    Args:
        of: name of ``full``.
        full: a preset with the paper's models.
        at_default: settings that stay at the tiny team's default -> why.
        instead: settings with another value; ``paper`` and ``departs`` say what stands in the
            paper and why the miniature departs from it.
        more: what only the miniature has to say.

    Raises:
        ValueError: ``full`` has no such setting.
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
        # The paper's sets and sizes; the tiny team is compared on its own.
        comparison={},
        own=True,
        of=of,
        at_default=at_default,
    )


# The papers name AdamW and no decay rates.
ADAMW = {
    "learner.betas": Setting(
        (0.9, 0.999), "PyTorch, which the frameworks leave alone", "the tiny team's"
    )
}
TINY = "the size of the tiny team's models"
