"""One episode: an environment against its policies."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from coterie.datatypes import (
    Completion,
    Episode,
    Policy,
    PolicyFailure,
    Problem,
    Prompt,
    Sampling,
    ScoreRequests,
    UserError,
    derive_seed,
)
from coterie.rollouts.recorder import Recorder

Prefetch = Callable[[ScoreRequests], Awaitable[None]]
AgentRequest = tuple[str, Prompt, Sampling]
"""(role, prompt, sampling parameters)"""
TurnAnswers = tuple[list[Completion | str], float]
"""(each request's completion or failure, seconds that count towards deadlines)"""

# A limit is divided into this many waits of at most one second.
_WAITS = 20


@dataclass(frozen=True)
class Deadlines:
    """Limits on waiting; None means no limit. A missed limit is recorded as a failure.

    Time in which the event loop is blocked does not count, because no answer can arrive while a
    local policy computes.
    """

    call_s: float | None = None
    """Seconds for one policy call."""
    episode_s: float | None = None
    """Seconds that one episode may wait for its policies; calls still pending then have failed."""
    turns: int = 256
    """Environment steps after which an episode is cut off, unless its environment names more."""


class TokenEnvironment(Protocol):
    """The part of the token view (a ``pettingzoo.ParallelEnv``) that rollouts use.

    Environments that wait for programs also have ``areset`` and ``astep``, which leave the event
    loop to other episodes. ``branches`` is true if agents return to earlier contexts
    (:class:`Recorder`). ``most_turns`` is the number of steps after which an environment ends every
    episode by itself.
    """

    agents: list[str]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any: ...

    def step(self, actions: dict[str, Any]) -> Any: ...


async def play(
    env: TokenEnvironment,
    policies: Mapping[str, Policy],
    *,
    seed: int,
    replica: int = 0,
    options: Mapping[str, Any],
    sampling: Sampling | Mapping[str, Sampling],
    deadlines: Deadlines = Deadlines(),
    prefetch: Prefetch | None = None,
) -> Episode:
    """Play one episode to its end.

    Args:
        env: a token view; no other episode may use it meanwhile.
        policies: role -> policy for every role that may act.
        seed: the environment's seed; together with ``replica`` it determines every random stream.
        replica: number of this copy of (problem, seed).
        options: the environment's reset options (``problem``, ``step``, ``epoch``, ``mode``).
        sampling: defaults for all roles or for each role. The environment overrides token limits
            and stop strings in each turn, and temperature and top-p outside of training.
        deadlines: limits on waiting for policies.
        prefetch: awaited with the score requests of the next step, so that many episodes can be
            scored in one batch.

    Raises:
        KeyError: an active agent's role has no policy.
        UserError: an agent appears that was absent at reset.
    """
    observations, infos = await _reset(env, seed, dict(options))
    branches = getattr(env, "branches", False)
    recorders = {agent: Recorder(agent, branches=branches) for agent in env.agents}
    rewards = dict.fromkeys(env.agents, 0.0)
    last_infos: dict[str, Mapping[str, Any]] = dict(infos)
    left_s, stream = deadlines.episode_s, (seed, replica)

    # Views do not repeat it.
    most_turns = getattr(getattr(env, "unwrapped", env), "most_turns", 0)
    turns = max(deadlines.turns, most_turns)
    for _ in range(turns):
        if not env.agents:
            break
        agents = [agent for agent in env.agents if observations[agent].get("active", 1)]
        requests = [
            _request(recorders[agent], observations[agent], infos[agent], sampling, stream, options)
            for agent in agents
        ]
        limit_s = min((s for s in (deadlines.call_s, left_s) if s is not None), default=None)
        answers, waited_s = [], 0.0
        if requests:
            answers, waited_s = await ask_policies(policies, requests, limit_s)
        actions: dict[str, Any] = {}
        for agent, answer in zip(agents, answers):
            if isinstance(answer, str):
                recorders[agent].fail(answer)
            else:
                recorders[agent].add(answer)
                actions[agent] = answer.tokens
        if left_s is not None:
            left_s = max(left_s - waited_s, 0.0)
        if prefetch is not None and hasattr(env, "score_requests"):
            await prefetch(env.score_requests(actions))  # pyright: ignore[reportAttributeAccessIssue]
        observations, step_rewards, _, _, infos = await _step(env, actions)
        _check_present_at_reset([*env.agents, *step_rewards], recorders)
        for agent, reward in step_rewards.items():
            rewards[agent] += float(reward)
        last_infos.update(infos)
    for agent in env.agents:
        recorders[agent].fail(f"episode cut off after {turns} turns")
    return _episode(recorders, rewards, last_infos, stream, options)


def _request(
    recorder: Recorder,
    observation: Mapping[str, Any],
    info: Mapping[str, Any],
    sampling: Sampling | Mapping[str, Sampling],
    stream: tuple[int, int],
    options: Mapping[str, Any],
) -> AgentRequest:
    """Record what an agent sees, and return what its policy is asked."""
    agent, context = recorder.agent, np.asarray(observation["tokens"], dtype=np.int64)
    recorder.show(context)
    prompt = Prompt(
        tokens=context,
        text=str(info.get("text", "")),
        agent=agent,
        seed=derive_seed(*stream, agent, recorder.turn),
        problem=options.get("problem"),
        continues=bool(info.get("continues", False)),
    )
    usual = sampling if isinstance(sampling, Sampling) else sampling[recorder.role]
    trains = options.get("mode", "train") == "train"
    return recorder.role, prompt, turn_sampling(agent, info, usual, trains=trains)


def _episode(
    recorders: Mapping[str, Recorder],
    rewards: dict[str, float],
    infos: Mapping[str, Mapping[str, Any]],
    stream: tuple[int, int],
    options: Mapping[str, Any],
) -> Episode:
    """What was recorded until the end; ``infos`` are the last of each agent."""
    problem, (seed, replica) = options.get("problem"), stream
    group = f"{_problem_id(problem)}@{seed}"
    trajectories = tuple(
        trajectory
        for agent, recorder in recorders.items()
        if recorder.turn > 0
        for trajectory in recorder.trajectories(rewards[agent], infos[agent], group, replica)
    )
    return Episode(
        problem_id=_problem_id(problem),
        seed=seed,
        step=int(options.get("step", 0)),
        mode=str(options.get("mode", "train")),
        trajectories=trajectories,
        rewards=rewards,
        info=next((info["episode"] for info in infos.values() if "episode" in info), {}),
        gold=None if problem is None else " or ".join(problem.golds),
        kind=None if problem is None else problem.kind,
        problem_shown=question_shown(problem, [text for row in trajectories for text in row.texts]),
    )


async def _reset(env: TokenEnvironment, seed: int, options: dict[str, Any]) -> Any:
    """Call ``reset``, preferring its async variant."""
    areset = getattr(env, "areset", None)
    if areset is not None:
        return await areset(seed=seed, options=options)
    return env.reset(seed=seed, options=options)


async def _step(env: TokenEnvironment, actions: dict[str, Any]) -> Any:
    """Call ``step``, preferring its async variant."""
    astep = getattr(env, "astep", None)
    if astep is not None:
        return await astep(actions)
    return env.step(actions)


def question_shown(problem: Problem | None, texts: Sequence[str]) -> bool:
    """Whether any of ``texts`` contains the question; white space is ignored.

    True for a problem without any text, False without a problem.
    """
    if problem is None or not any(texts):
        return problem is not None
    question = "".join(problem.question.split())
    return any(question in "".join(text.split()) for text in texts)


async def ask_policies(
    policies: Mapping[str, Policy], requests: Sequence[AgentRequest], limit_s: float | None
) -> TurnAnswers:
    """Call all policies of a turn concurrently.

    Args:
        policies: role -> policy.
        requests: the requests of a turn.
        limit_s: seconds after which a call has failed; None: no limit.

    Raises:
        KeyError: a role has no policy.
    """

    async def complete(role: str, prompt: Prompt, sampling: Sampling) -> Completion:
        return await policies[role](prompt, sampling)

    calls = [asyncio.ensure_future(complete(*request)) for request in requests]
    waited_s = 0.0
    try:
        waited_s = await wait_for_all(calls, limit_s)
    finally:
        # cancel() is true for calls that are still pending.
        pending = [call.cancel() for call in calls]
        results = await asyncio.gather(*calls, return_exceptions=True)
    answers: list[Completion | str] = []
    for result, cancelled in zip(results, pending):
        if isinstance(result, PolicyFailure):
            answers.append(str(result) or "no reason given")
        elif isinstance(result, TimeoutError) or (
            isinstance(result, asyncio.CancelledError) and cancelled
        ):
            answers.append("deadline")
        elif isinstance(result, BaseException):
            raise result
        else:
            answers.append(result)
    return answers, waited_s


async def wait_for_all(calls: Collection[asyncio.Future[Any]], limit_s: float | None) -> float:
    """Wait until all calls are done or the limit is over.

    Args:
        calls: at least one.
        limit_s: most seconds; None: no limit.

    Returns:
        The seconds that counted; time in which the event loop was blocked does not.
    """
    if limit_s is None:
        await asyncio.wait(calls)
        return 0.0
    loop, timeout, waited = asyncio.get_running_loop(), min(limit_s / _WAITS, 1.0), 0.0
    while True:
        start = loop.time()
        _, pending = await asyncio.wait(calls, timeout=timeout)
        # A blocked loop overruns the timeout; only the timeout itself counts.
        waited += min(loop.time() - start, timeout)
        if not pending or waited >= limit_s:
            return waited


def turn_sampling(
    agent: str, info: Mapping[str, Any], usual: Sampling, *, trains: bool
) -> Sampling:
    """Override ``usual`` by the environment's values for this turn.

    Args:
        agent: the agent, for messages.
        info: its info, which may have ``max_new_tokens``, ``stop``, ``temperature``, ``top_p``.
        usual: the parameters of its role.
        trains: whether the episode trains; temperature and top-p are then the run's.

    Raises:
        UserError: a value of the wrong type, or a temperature or top-p in training.
    """
    limit, stop = info.get("max_new_tokens", usual.max_new_tokens), info.get("stop", usual.stop)
    if not isinstance(limit, Integral):
        raise UserError(f"max_new_tokens of {agent} is {limit!r:.100}: it must be an int")
    # A string would pass as a sequence of letters.
    if not isinstance(stop, list | tuple):
        raise UserError(f"stop of {agent} is {stop!r:.100}: it must be a list of strings")
    overrides = {name: info[name] for name in ("temperature", "top_p") if name in info}
    for name, value in overrides.items():
        if trains:
            raise UserError(f"{name} of {agent} is the run's while it trains: leave it out there")
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < 1e3:
            raise UserError(
                f"{name} of {agent} is {value!r:.100}: it must be a number of at least 0"
            )
    return replace(usual, max_new_tokens=int(limit), stop=tuple(stop), **overrides)


def _check_present_at_reset(agents: list[str], recorders: Mapping[str, Recorder]) -> None:
    for agent in agents:
        if agent not in recorders:
            raise UserError(
                f"the agent {agent!r} was not there at reset; all agents of an episode live from "
                "its reset on, and one that comes later is inactive until then"
            )


def _problem_id(problem: Problem | None) -> str:
    return problem.id if problem is not None else "seeded"
