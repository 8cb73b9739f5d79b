"""The opening prompts of episodes; problems whose prompts are too long are left out and counted."""

from collections.abc import Callable
from typing import Any

from coterie.datatypes import Problem
from coterie.problems.stream import ProblemStream
from coterie.rollouts.collect import tasks_for


def prompt_tokens(env: Any, problem: Problem) -> int:
    """Tokens of the longest prompt with which an episode about ``problem`` begins, each in the
    vocabulary of its role and by its chat template."""
    return max(map(len, _openings(env, problem).values()))


def opening_prompts(env: Any, problem: Problem) -> dict[str, Any]:
    """Role -> the tokens with which it is asked first in an episode about ``problem``, as
    :func:`prompt_tokens` counts them; roles that are asked later are missing."""
    prompts: dict[str, Any] = {}
    for agent, tokens in _openings(env, problem).items():
        prompts.setdefault(agent.rpartition("_")[0] or agent, tokens)
    return prompts


def _openings(env: Any, problem: Problem) -> dict[str, Any]:
    [task] = tasks_for([problem], seed=0)
    observations, _ = env.reset(seed=task.seed, options=task.options())
    return {
        agent: observation["tokens"]
        for agent, observation in observations.items()
        if observation["active"]
    }


def drop_long_prompts(
    stream: ProblemStream, make_env: Callable[[], Any], limit: int | None, tell: Callable[..., None]
) -> int:
    """Leave problems out of ``stream`` whose opening prompt is longer than ``limit``.

    Args:
        stream: the training problems; those of a generator are checked as they come.
        make_env: builds the environment with the models' vocabularies.
        limit: in tokens; None: no limit.
        tell: shows a sentence on the dropped problems.

    Returns:
        The number of dropped problems of a finite source; 0 for a generator.

    Raises:
        UserError: no problem is left.
    """
    if limit is None:
        return 0
    env, before = make_env(), stream.available
    dropped = stream.leave_out(
        lambda problem: prompt_tokens(env, problem) > limit,
        f"none has a prompt of at most {limit} tokens: raise --rollout.max-prompt-tokens",
    )
    if dropped:
        tell(
            f"{dropped:,} of {before:,} training problems are left out: their prompts have more "
            f"than {limit:,} tokens (--rollout.max-prompt-tokens)"
        )
    return dropped
