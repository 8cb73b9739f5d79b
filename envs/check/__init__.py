"""Tests an environment against the contract: ``check_env(make("mypkg.my:Env"))``.

PettingZoo's own tests take one step and ignore the content of observations. These tests play whole
episodes, several times, and with malformed answers such as language models give.
"""

import copy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pettingzoo import AECEnv, ParallelEnv

from coterie.datatypes import UserError, role_of
from coterie.envs.adapt import action_kind, adapt, plain_of
from coterie.envs.check.actions import ActionChooser, hostile_answers, plain_answers
from coterie.envs.check.play import PlayedEpisode, play, same
from coterie.envs.contract import roles_of, why_no_metadata

_SEEDS = 8


@dataclass(frozen=True)
class Report:
    """Rewards and roles of episodes with random, well-formed answers."""

    episodes: int
    rewards: Mapping[str, float]
    """Role -> mean reward of its agents."""
    signal: float
    """Share of the seeds on which two sets of answers got different rewards. Without differences
    nothing can be learned."""
    never_asked: tuple[str, ...]
    """Roles of which no agent was ever active."""
    same_every_time: bool
    """Whether all seeds give the same episode."""

    def __str__(self) -> str:
        means = ", ".join(f"{role} {mean:.3f}" for role, mean in self.rewards.items())
        same = " Every seed gives the same episode." if self.same_every_time else ""
        never = f" Never asked: {', '.join(self.never_asked)}." if self.never_asked else ""
        hopeless = "" if self.signal else ", so nothing can be learned from random answers"
        return (
            f"{self.episodes} episodes with random answers: mean reward {means}; with "
            f"{self.signal:.0%} of the seeds two sets of answers got different rewards{hopeless}."
            f"{same}{never}"
        )


def check_env(
    env: Any,
    *,
    seed: int = 0,
    options: dict[str, Any] | None = None,
    max_steps: int = 100,
    varied: bool = True,
    unasked: Collection[str] = (),
) -> Report:
    """Play episodes and raise an ``AssertionError`` for the first violation of the contract.

    Args:
        env: any view of this project's environments, or a ``ParallelEnv`` or ``AECEnv`` with text
            or token actions, which is wrapped by :func:`coterie.envs.adapt.adapt`.
        seed: the first seed of the episodes.
        options: passed to every reset.
        max_steps: a longer episode counts as endless.
        varied: whether episodes must depend on the seed.
        unasked: roles that random answers may never reach.

    Returns:
        Statistics of the episodes with well-formed answers.

    Raises:
        AssertionError: a violation, with the way to fix it.
        UserError: the actions are neither text nor tokens, or Python runs with ``-O``.
    """
    if not __debug__:
        raise UserError("check_env is made of assertions: run Python without -O.")
    if isinstance(env, AECEnv) or not _ours(env):
        env = adapt(env)
    _check_declaration(env)

    def game(seed: int, answers: ActionChooser, **flags: Any) -> PlayedEpisode:
        return play(env, seed, options, answers, max_steps, **flags)

    plain = plain_answers(env)
    first = game(seed, plain)
    again = game(seed, plain)
    assert same(first.record, again.record), (
        f"two episodes with seed {seed} and the same actions differ in "
        f"{_difference(first, again)}: draw every random number from the seed given to reset()"
    )
    with_requests = game(seed, plain, ask_requests=True)
    assert same(first.record, with_requests.record), (
        f"score_requests() changes {_difference(first, with_requests)}: it may only look"
    )
    everyone = game(seed, plain, idle_act=True)
    assert same(first.record, everyone.record), (
        f"the actions of agents that are not active change {_difference(first, everyone)}: "
        "ignore them"
    )
    _check_first_observations(plain_of(env), seed, options)
    report = _report(game, seed, plain, plain_answers(env, 1), env)
    assert not varied or not report.same_every_time, (
        f"{_SEEDS} seeds give the same episode: reset() ignores its seed (or say "
        "varied=False, and --same-every-time to coterie check)"
    )
    never = [role for role in report.never_asked if role not in unasked]
    assert not never or action_kind(env.action_space(env.possible_agents[0])) != "text", (
        f"{', '.join(never)} is never asked in {report.episodes} episodes: is a yield missing? (Or "
        f"say unasked={never}, and --unasked {' '.join(never)} to coterie check)"
    )
    for name, answers in hostile_answers(env).items():
        try:
            game(seed, answers)
        except (AssertionError, UserError) as error:
            raise AssertionError(f"with {name} as actions: {error}") from error
        except (Exception, SystemExit) as error:
            raise AssertionError(
                f"{name} as actions raised {type(error).__name__}: {error}; a bad action has its "
                "consequence in the environment, never an exception"
            ) from error
    after = game(seed, plain)
    assert same(first.record, after.record), (
        f"an earlier episode changes a later one in {_difference(first, after)}: reset() must "
        "forget everything"
    )
    return report


def _ours(env: Any) -> bool:
    if not isinstance(env, ParallelEnv) or not env.possible_agents:
        return False
    space = env.observation_space(env.possible_agents[0])
    keys = set(getattr(space, "spaces", {}) or {})
    return "active" in keys and bool({"text", "tokens"} & keys)


def _check_declaration(env: Any) -> None:
    """Check agents, spaces and metadata before the first episode."""
    agents = env.possible_agents
    assert agents, "possible_agents is empty"
    assert len(set(agents)) == len(agents), "possible_agents names an agent twice"
    for agent in agents:
        for name in ("observation_space", "action_space"):
            space = getattr(env, name)
            assert space(agent) is space(agent), (
                f"{name}({agent!r}) builds a new space at every call: keep one per agent"
            )
    metadata = env.metadata
    broken = why_no_metadata(metadata)
    assert not broken, broken
    if "group_keys" in metadata or "default_group" in metadata:
        keys = tuple(metadata.get("group_keys", ()))
        assert metadata.get("default_group") in keys, (
            f"metadata['default_group'] is {metadata.get('default_group')!r}, which is none of "
            f"metadata['group_keys'] {keys}"
        )


def _check_first_observations(env: Any, seed: int, options: dict[str, Any] | None) -> None:
    """Check that the first observations of an environment that is adapted are in its own spaces.
    Later ones may hold answers, which need not be."""
    if env is None:
        return
    for agent, observation in env.reset(seed=seed, options=copy.copy(options))[0].items():
        space = env.observation_space(agent)
        assert space.contains(observation), (
            f"{agent} observes {observation!r:.100}, which is not in its observation space "
            f"{' '.join(str(space).split()):.100}"
        )


def _report(
    game: Callable[..., PlayedEpisode],
    seed: int,
    plain: ActionChooser,
    others: ActionChooser,
    env: Any,
) -> Report:
    """Play some seeds with two kinds of well-formed answers."""
    seeds = range(seed, seed + _SEEDS)
    plain_games, other_games = (
        [game(s, plain) for s in seeds],
        [game(s, others, moves=True) for s in seeds],
    )
    roles = roles_of(env.possible_agents)
    paid: dict[str, list[float]] = {role: [] for role in roles}
    for agent, reward in (
        item for each in (*plain_games, *other_games) for item in each.paid.items()
    ):
        paid[role_of(agent)].append(reward)
    active = set[str]().union(*(each.active for each in (*plain_games, *other_games)))
    return Report(
        episodes=2 * _SEEDS,
        rewards={role: sum(values) / len(values) for role, values in paid.items()},
        signal=sum(a.paid != b.paid for a, b in zip(plain_games, other_games)) / _SEEDS,
        never_asked=tuple(role for role in roles if role not in active),
        same_every_time=all(
            same(_without_infos(plain_games[0]), _without_infos(each)) for each in plain_games
        ),
    )


def _without_infos(game: PlayedEpisode) -> list[dict[str, Any]]:
    """An episode without its infos, which name the problem even if the episode ignores it."""
    return [{key: part for key, part in entry.items() if key != "infos"} for entry in game.record]


def _difference(first: PlayedEpisode, second: PlayedEpisode) -> str:
    """Where two episodes first differ, in words."""
    for number, (left, right) in enumerate(zip(first.record, second.record)):
        for part in left:
            for agent in sorted({*left[part], *right[part]}):
                mine, theirs = left[part].get(agent), right[part].get(agent)
                if not same(mine, theirs):
                    keys = ""
                    if isinstance(mine, dict) and isinstance(theirs, dict):
                        shared = [key for key in mine if not same(mine[key], theirs.get(key))]
                        keys = f" ({', '.join(map(str, shared)) or 'its keys'})"
                    return f"the {part} of {agent} after {number} steps{keys}"
    return f"length ({len(first.record) - 1} and {len(second.record) - 1} steps)"
