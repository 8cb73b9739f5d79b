"""One question's way through the two rounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from envs.core_teaching.scoring import Trace
from envs.core_teaching.teacher import Lesson
from rewards.rescue import COLD
from vocabulary import Problem, UserError, derive_seed

Mode = Literal["train", "eval", "probe"]
_PROBE_HINT_PROBABILITY = 0.5


@dataclass
class CoreTeachingEpisode:
    """What has happened so far."""

    problem: Problem
    seed: int
    mode: Mode
    step: int
    epoch: int
    hint_probability: float
    round: int = COLD
    asked: dict[str, Lesson | None] = field(default_factory=dict)
    """Who is asked now -> the lesson that stands in its prompt."""
    prompts: dict[str, str] = field(default_factory=dict)
    """Everyone who was ever asked -> its prompt."""
    lessons: dict[str, Lesson] = field(default_factory=dict)
    traces: list[Trace] = field(default_factory=list)
    """Answers, in the order of the agents."""
    infos: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The last step's, for the transcript."""


def begin(
    problem: Problem, seed: int, options: Mapping[str, Any], hint_probability: float
) -> CoreTeachingEpisode:
    """An episode at its start, as the reset's options want it.

    Raises:
        UserError: an option that makes no sense.
    """
    mode = options.get("mode", "train")
    if mode not in get_args(Mode):
        known = ", ".join(get_args(Mode))
        raise UserError(f"core-teaching: mode {mode!r} is unknown; choose one of {known}.")
    if mode == "probe":
        hint_probability = float(options.get("hint_probability", _PROBE_HINT_PROBABILITY))
    return CoreTeachingEpisode(
        problem=problem,
        seed=seed,
        mode=mode,
        step=int(options.get("step", 0)),
        epoch=int(options.get("epoch", 1)),
        hint_probability=hint_probability,
    )


def coin(seed: int, agent: str) -> float:
    """This agent's draw u in [0, 1), which depends on nothing else."""
    return derive_seed("core-teaching", "hint coin", seed, agent) / 2**63


def shows_hint(u: float, probability: float) -> bool:
    """Whether the draw ``u`` shows the hint (strictly below, so probability 0 never does)."""
    return u < probability
