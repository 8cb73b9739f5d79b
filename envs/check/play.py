"""Plays one episode and checks everything that the environment returns."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.datatypes import role_of, why_not_of_turns
from coterie.envs.check.actions import MISSING, ActionChooser, legal_answer
from coterie.envs.contract import (
    CONTEXTS,
    why_no_agents,
    why_no_info,
    why_no_result,
    why_no_reward,
    why_not_grouped,
    why_not_paid,
    why_not_plain,
)


@dataclass
class PlayedEpisode:
    """The record of one episode, with an entry for the reset and for each step."""

    record: list[dict[str, Any]] = field(default_factory=list)
    active: set[str] = field(default_factory=set)
    """Roles whose agents were active."""
    paid: dict[str, float] = field(default_factory=dict)
    """Agent -> the sum of its rewards."""


def play(
    env: Any,
    seed: int,
    options: dict[str, Any] | None,
    answers: ActionChooser,
    max_steps: int,
    *,
    ask_requests: bool = False,
    idle_act: bool = False,
    moves: bool = False,
) -> PlayedEpisode:
    """Play to the end and check every step.

    Args:
        ask_requests: call ``score_requests``, if it exists, before each step.
        idle_act: send actions of inactive agents, too.
        moves: answer with one of the moves that a text names, if it names any.
    """
    game = PlayedEpisode()
    result = env.reset(seed=seed, options=copy.copy(options))
    _hold(why_no_result("reset", result))
    observations, infos = result
    live = _living(env, "reset", observations)
    assert live, "after reset() no agent is there"
    shown = _History(env)
    shown.look(live, observations, infos)
    _keep(game, observations=observations, infos=infos)
    dead: set[str] = set()
    turns: dict[str, list[bool]] = {agent: [] for agent in env.possible_agents}
    paid = game.paid = dict.fromkeys(env.possible_agents, 0.0)
    for step in range(max_steps):
        active = [agent for agent in live if _active(observations[agent])]
        assert active, f"after {step} steps nobody is active and the episode is not over"
        game.active |= set(map(role_of, active))
        actions = {
            agent: copy.copy(action)
            for agent in (live if idle_act else active)
            if (action := answers(agent, step)) is not MISSING
        }
        if moves:
            for agent in active:
                legal = legal_answer(observations[agent].get("text", ""), seed, agent, step)
                if legal is not None:
                    actions[agent] = legal
        for agent in active:
            turns[agent].append(agent in actions)
        if ask_requests and hasattr(env, "score_requests"):
            env.score_requests(actions)
        result = env.step(copy.copy(actions))
        _hold(why_no_result("step", result))
        observations, rewards, terminations, truncations, infos = result
        shown.note_answers({agent: actions[agent] for agent in active if agent in actions})
        over = _check_ends(live, terminations, truncations)
        now = _living(env, "step", observations)
        _check_living(live, now, over, dead)
        dead |= over
        for agent in live:
            assert agent in rewards, f"{agent} was alive and has no reward"
            _hold(why_no_reward(agent, rewards[agent]))
            paid[agent] += float(rewards[agent])
        shown.look(live, observations, infos, over=over)
        for agent in sorted(over):
            _check_last_info(env, agent, infos[agent], paid[agent])
            if turns[agent] and all(turns[agent]):  # who failed learns from no turn
                _hold(why_not_of_turns(agent, infos[agent], len(turns[agent])))
        _check_episode_infos(infos, over)
        _keep(
            game,
            observations=observations,
            rewards=rewards,
            terminations=terminations,
            truncations=truncations,
            infos=infos,
        )
        live = now
        if not live:
            shown.check_kept()
            return game
    raise AssertionError(
        f"the episode is not over after {max_steps} steps: end it (or say max_steps, and "
        "--max-steps to coterie check)"
    )


def same(first: Any, second: Any) -> bool:
    """Deep equality, with arrays by value and NaN equal to itself."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return set(first) == set(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return False
    return first == second or (first != first and second != second)


class _History:
    """All observations so far, to check that contexts only grow and nothing changes later."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self._contexts: dict[str, Any] = {}
        self._kept: list[tuple[Any, Any]] = []

    def look(
        self,
        live: list[str],
        observations: Mapping[str, Any],
        infos: Mapping[str, Any],
        over: set[str] = frozenset(),  # pyright: ignore[reportArgumentType]
    ) -> None:
        for agent in live:
            assert agent in observations, f"{agent} is alive and observes nothing"
            assert agent in infos, f"{agent} is alive and has no info"
            observation = observations[agent]
            space = self.env.observation_space(agent)
            assert space.contains(observation), (
                f"the observation of {agent} is not in its observation space {space}: "
                f"{_brief(observation)}"
            )
            active = agent not in over and _active(observation)
            _check_info(agent, infos[agent], active=active, tokens="tokens" in observation)
            self._check_context(agent, observation, fresh=bool(infos[agent].get("fresh")))
        _check_aliases({agent: infos[agent] for agent in live})
        self._kept.append((observations, copy.deepcopy(observations)))

    def note_answers(self, actions: Mapping[str, Any]) -> None:
        """From now on the context must contain these sampled ids, if they are valid."""
        for agent, action in actions.items():
            if agent in self._contexts and self.env.action_space(agent).contains(action):
                self._contexts[agent] = np.concatenate([self._contexts[agent], action])

    def check_kept(self) -> None:
        for observations, copies in self._kept:
            assert same(observations, copies), (
                "an observation changed after it was given: hand out copies"
            )

    def _check_context(self, agent: str, observation: Any, *, fresh: bool) -> None:
        if "tokens" not in observation or "length" in observation:
            return
        tokens, before = observation["tokens"], self._contexts.get(agent)
        if before is not None and not fresh and getattr(self.env, "append_only", True):
            assert np.array_equal(tokens[: len(before)], before), (
                f"the context of {agent} does not begin with what it read and sampled before: a "
                "context only grows at its end"
            )
        self._contexts[agent] = tokens.copy()
        if _active(observation):
            assert len(tokens), f"{agent} is active and has an empty context: say what it is asked"


def _active(observation: Any) -> bool:
    return bool(np.any(observation.get("active", 1)))


def _hold(why: str) -> None:
    """Raise for a sentence of :mod:`coterie.envs.contract`, if there is one."""
    assert not why, why


def _living(env: Any, method: str, observations: Mapping[str, Any]) -> list[str]:
    _hold(why_no_agents(method, env.agents, env.possible_agents, observations))
    return list(env.agents)


def _keep(game: PlayedEpisode, **parts: Any) -> None:
    game.record.append({name: copy.deepcopy(dict(part)) for name, part in parts.items()})


def _check_ends(live: list[str], terminations: Any, truncations: Any) -> set[str]:
    over: set[str] = set()
    for name, ends in (("terminations", terminations), ("truncations", truncations)):
        for agent in live:
            assert agent in ends, f"{name} says nothing about {agent}, which was alive"
            assert isinstance(ends[agent], bool), (
                f"{name}[{agent!r}] is a {type(ends[agent]).__name__}, not a bool"
            )
            if ends[agent]:
                over.add(agent)
    return over


def _check_living(live: list[str], now: list[str], over: set[str], dead: set[str]) -> None:
    """Check who lives after a step.

    Args:
        live: who lived before it.
        now: who lives after it.
        over: who ended in it.
        dead: who ended in earlier steps.
    """
    revived = dead & set(now)
    assert not revived, f"{_listed(revived)} ended and lives again"
    came = set(now) - set(live)
    assert not came - over, (
        f"{_listed(came)} came after reset(): all agents of an episode live from its reset on, "
        "and one that comes later is inactive until then"
    )
    left = [agent for agent in live if agent not in over]
    assert set(now) == set(left), (
        f"agents is {now}: it must be {left} after {_listed(over) or 'nobody'} ended"
    )


def _check_info(agent: str, info: Any, *, active: bool, tokens: bool) -> None:
    assert isinstance(info, dict), f"the info of {agent} is a {type(info).__name__}"
    # A token view gives contexts as ids.
    ids = CONTEXTS if tokens else set()
    for key, value in info.items():
        error = why_not_plain({key: value}) if key not in ids else ""
        assert not error, (
            f"the info of {agent} is not plain data: {key!r} is {_brief(value)} ({error}); use "
            "str, int of at most 64 bits, float, bool, None, lists, dictionaries whose keys are "
            "strings, and .item() of NumPy's scalars"
        )
    _hold(why_no_info(agent, info, active=active, tokens=tokens))


def _check_last_info(env: Any, agent: str, info: Mapping[str, Any], paid: float) -> None:
    if "reward_terms" in info:
        _hold(why_not_paid(agent, info["reward_terms"], paid))
    if "groups" in info:
        _hold(why_not_grouped(agent, info["groups"], env.metadata.get("group_keys", ())))


def _check_episode_infos(infos: Mapping[str, Any], over: set[str]) -> None:
    episodes = [
        (agent, infos[agent]["episode"]) for agent in sorted(over) if "episode" in infos[agent]
    ]
    for _, info in episodes:
        unpaid = isinstance(info, Mapping) and info.get("unpaid")
        assert not unpaid, f"an episode paid nobody: {info.get('failure')}"
    for agent, episode in episodes[1:]:
        assert same(episode, episodes[0][1]), (
            f"info['episode'] of {agent} and {episodes[0][0]} differ: it is the same for everyone"
        )


def _check_aliases(infos: Mapping[str, Any]) -> None:
    """Infos of different agents may not share mutable objects."""
    owners: dict[int, str] = {}

    def visit(agent: str, path: str, value: Any) -> None:
        if not isinstance(value, dict | list):
            return
        owner = owners.setdefault(id(value), agent)
        assert owner == agent, (
            f"the infos of {owner} and {agent} share one object ({path}): give each a copy"
        )
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            visit(agent, f"{path}[{key!r}]", inner)

    for agent, info in infos.items():
        visit(agent, "info", info)


def _listed(agents: set[str]) -> str:
    return ", ".join(sorted(agents))


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
