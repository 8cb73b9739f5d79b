"""How many answers were cut off at the longest length, in a sentence that names the way out."""

from typing import Any

from coterie.training.config.run_settings import MAX_NEW_TOKENS

PAGE = "docs/my-model-does-not-learn.md"
FEWEST_ANSWERS = 16
"""Answers below which no share is reported."""
BROKE_OFF = 0.25
"""Share of the answers from which it is."""


def cut_off(broken_off: int, asked: int, limit: int, flag: str = "") -> str:
    """``37 of 96 answers broke off at 48 tokens: ...``; empty where too few did.

    Args:
        broken_off: answers that ended at the limit.
        asked: all answers.
        limit: the most tokens of an answer.
        flag: sets the limit; empty: none does.
    """
    if asked < FEWEST_ANSWERS or broken_off < BROKE_OFF * asked:
        return ""
    return (
        f"{broken_off} of {asked} answers broke off at {limit} tokens: {flag or 'its limit'} "
        f"{max(256, 2 * limit)} gives them room ({PAGE}#length)"
    )


def limit_of(env: Any, *, evaluated: bool) -> tuple[int, str]:
    """The most tokens of an answer, and the flag that sets it; no flag where the environment has
    no such setting.

    Args:
        env: the environment's settings, or None.
        evaluated: in an evaluation, which may have a limit of its own.
    """
    name = "eval_max_new_tokens" if evaluated else "max_new_tokens"
    if not getattr(env, name, 0):
        name = "max_new_tokens"
    flag = f"--env.{name.replace('_', '-')}" if hasattr(env, name) else ""
    return getattr(env, name, MAX_NEW_TOKENS), flag
