"""What a preset is, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The papers name AdamW and no decay rates: those of PyTorch, which their frameworks leave alone.
ADAMW_BETAS = (0.9, 0.999)


@dataclass(frozen=True)
class Preset:
    """A paper's setting."""

    source: str
    env: str
    algo: str
    models: Mapping[str, str]
    """Role -> hub id; a team of other roles takes the rest and names its own models."""
    values: Mapping[str, Any]
    agent: Mapping[str, Any] = field(default_factory=dict)
    """How every role is trained."""
    algo_values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Algorithm -> what the paper sets of it."""
