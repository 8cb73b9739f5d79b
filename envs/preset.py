"""What a preset is, as data: each setting with where it stands, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    own: bool = False
    """Whether its models are ours and not the paper's."""


# The papers name AdamW and no decay rates.
ADAMW = {
    "learner.betas": Setting(
        (0.9, 0.999), "PyTorch, which the frameworks leave alone", "the tiny team's"
    )
}
TINY = "the size of the tiny team's models"
