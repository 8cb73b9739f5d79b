"""What settings of environments share: numbers of agents, and the longest answer."""

from collections.abc import Iterator
from typing import Annotated, Any

from annotated_types import Interval

MOST = 4096
"""Agents or episodes of one question that a setting may ask for; papers take up to 64."""

Several = Annotated[int, Interval(ge=1, le=MOST)]
"""How many agents or episodes one question has."""


def check_rereading(reread: str, run: Any, *, remedy: str) -> Iterator[tuple[bool, str]]:
    """Hold that rereading and distillation go together, as :attr:`coterie.envs.EnvSpec.check` does.

    Args:
        reread: the environment's setting.
        run: all settings of a run.
        remedy: what has traces read again, as the message ends.
    """
    learned = {role: each.distillation for role, each in run.learned_by.items()}
    idle = next((role for role, each in learned.items() if each.from_itself), "")
    yield (
        reread == "none" and bool(idle),
        f"{run.algorithms.flag(idle, 'distillation.beta')} does nothing while no trace is read "
        f"again; set it to 0, or {remedy}",
    )
    yield (
        reread != "none" and not any(each.beta for each in learned.values()),
        f"--env.reread {reread} does nothing without --algo.distillation.beta, such as 1; without "
        "both: --env.reread none",
    )


def token_limit(settings: Any, *, training: bool) -> int:
    """Tokens of an answer: in evaluation ``eval_max_new_tokens``, unless that is 0."""
    longest = 0 if training else settings.eval_max_new_tokens
    return longest or settings.max_new_tokens
