"""A sentence on answers that were cut off at the limit of tokens, with the flag that raises it."""

from typing import Any

from coterie.datatypes import Trajectory
from coterie.training.config.run_settings import MAX_NEW_TOKENS

PAGE = "docs/my-model-does-not-learn.md"
FEWEST_ANSWERS = 16
"""Fewest answers for which a share is reported."""
BROKE_OFF = 0.25
"""Smallest share of cut-off answers that is reported."""


def cut_off(broken_off: int, answers: int, limit: int, flag: str = "") -> str:
    """``37 of 96 answers broke off at 48 tokens: ...``; empty if few did.

    Args:
        broken_off: number of answers that ended at the limit.
        answers: number of all answers.
        limit: of tokens in an answer.
        flag: sets the limit; empty: no flag does.
    """
    if answers < FEWEST_ANSWERS or broken_off < BROKE_OFF * answers:
        return ""
    way = flag or "a setting max_new_tokens of"
    return (
        f"{broken_off} of {answers} answers broke off at {limit} tokens: {way} "
        f"{max(256, 2 * limit)} gives them room ({PAGE}#length)"
    )


def is_cut_off(row: Trajectory, limit: int, ids_per_token: int = 1) -> bool:
    """Whether the agent was cut off after at least ``limit`` tokens. A turn that ends earlier ended
    at a shorter limit of its own, as that of a stated confidence."""
    written = 0
    for how, (start, end), (_, sampled) in zip(row.finish, row.turns, row.usage, strict=True):
        written += max(end - start, sampled * ids_per_token)
        if how == "length" and written >= limit * ids_per_token:
            return True
    return False


def limit_of(env: Any, *, evaluated: bool) -> tuple[int, str]:
    """(limit of tokens in an answer, the flag that sets it); the flag is empty if the environment
    has no such setting.

    Args:
        env: the environment's settings, or None.
        evaluated: whether to return the limit of evaluations, which may differ.
    """
    name = "eval_max_new_tokens" if evaluated else "max_new_tokens"
    if not getattr(env, name, 0):
        name = "max_new_tokens"
    flag = f"--env.{name.replace('_', '-')}" if hasattr(env, name) else ""
    return getattr(env, name, MAX_NEW_TOKENS), flag
