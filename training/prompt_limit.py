"""The first prompts of episodes and their limit, ``--rollout.max-prompt-tokens``."""

from collections.abc import Callable
from typing import Any

from coterie.datatypes import Problem, role_of
from coterie.problems.stream import ProblemStream
from coterie.rollouts.collect import tasks_for


def prompt_tokens(env: Any, problem: Problem) -> int:
    """Tokens of the longest first prompt in an episode about ``problem``, with chat templates."""
    return max(map(len, _openings(env, problem).values()))


def opening_prompts(env: Any, problem: Problem) -> dict[str, Any]:
    """Role -> the ids of its prompt at the beginning of an episode about ``problem``; roles that
    act later are left out."""
    prompts: dict[str, Any] = {}
    for agent, tokens in _openings(env, problem).items():
        prompts.setdefault(role_of(agent), tokens)
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
    """Leave problems whose first prompt is longer than ``limit`` out of ``stream``.

    Args:
        stream: the training problems; those of a generator are checked when they are drawn.
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
