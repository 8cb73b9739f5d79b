"""One question's way through the cascade."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from envs.corea_deferral.scoring import Trace
from vocabulary import Problem, UserError

Mode = Literal["train", "eval", "responses"]


@dataclass
class CoreaEpisode:
    """What has happened so far."""

    problem: Problem
    mode: Mode
    asked: tuple[str, ...] = ()
    """Who is asked now."""
    deferred: tuple[str, ...] = ()
    """The large role's agents that were asked because a small one's answer did not stand."""
    prompted: list[str] = field(default_factory=list)
    """Everyone who was ever asked, in order."""
    traces: dict[str, Trace] = field(default_factory=dict)
    """Agent -> its answer."""
    infos: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The last step's, for the transcript."""


def begin(problem: Problem, options: Mapping[str, Any]) -> CoreaEpisode:
    """An episode at its start, as the reset's options want it.

    Raises:
        UserError: an unknown mode.
    """
    mode = options.get("mode", "train")
    if mode not in get_args(Mode):
        known = ", ".join(get_args(Mode))
        raise UserError(f"corea-deferral: mode {mode!r} is unknown; choose one of {known}.")
    return CoreaEpisode(problem, mode)


def keeps(confidence: float | None, threshold: float) -> bool:
    """Whether the small role's answer stands: its confidence reaches the threshold. Silence never
    does."""
    return confidence is not None and confidence >= threshold
