"""Every way to break the contract is caught, and named."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from coterie.datatypes import ScoreRequests
from coterie.envs import check_env
from coterie.envs.spaces import TextSpace
from coterie.envs.token_view import TokenView


class Good(ParallelEnv):
    """Two turns: first ``a_0`` is asked, then ``b_0``; both are paid for the length."""

    extra: Callable[[str], dict[str, Any]] | None = None
    """Agent -> what else is in its infos."""

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {"group_keys": ("problem",), "default_group": "problem"}
        self.possible_agents = ["a_0", "b_0"]
        self.observed = {agent: self.space() for agent in self.possible_agents}
        self.acted = {agent: TextSpace() for agent in self.possible_agents}

    def space(self) -> Any:
        return spaces.Dict({"text": TextSpace(), "active": spaces.Discrete(2)})

    def observation_space(self, agent: str) -> Any:
        return self.observed[agent]

    def action_space(self, agent: str) -> Any:
        return self.acted[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = list(self.possible_agents)
        self.turn = 0
        self.said: dict[str, int] = dict.fromkeys(self.agents, 0)
        self.number = int(np.random.default_rng(seed).integers(1000))
        return self.show()

    def show(self) -> Any:
        asked = [*self.possible_agents, "nobody"][self.turn]
        observations = {agent: {"text": "", "active": int(agent == asked)} for agent in self.agents}
        if asked in observations:
            observations[asked]["text"] = f"say {self.number}"
        more = self.extra or (lambda agent: {})
        infos = {agent: {**self.info(agent), **more(agent)} for agent in self.agents}
        return observations, infos

    def info(self, agent: str) -> dict[str, Any]:
        if self.turn < 2:
            return {"max_new_tokens": 4, "stop": ["."], "piece": "message"}
        return {
            "reward_terms": {"length": float(self.said[agent])},
            "groups": {"problem": str(self.number)},
            "episode": {"total": sum(self.said.values())},
            "loss_weight": 1.0,
        }

    def hear(self, actions: dict[str, Any]) -> None:
        asked = self.possible_agents[self.turn]
        if isinstance(actions.get(asked), str):
            self.said[asked] = len(actions[asked])

    def ends(self, over: bool) -> tuple[Any, Any]:
        return dict.fromkeys(self.agents, over), dict.fromkeys(self.agents, False)

    def step(self, actions: dict[str, Any]) -> Any:
        self.hear(actions)
        self.turn += 1
        over = self.turn == 2
        observations, infos = self.show()
        rewards = {agent: float(self.said[agent]) if over else 0.0 for agent in self.agents}
        ends = self.ends(over)
        self.agents = [] if over else self.agents
        return observations, rewards, *ends, infos


def test_a_good_environment_passes() -> None:
    check_env(Good())
    check_env(TokenView(Good()))
    check_env(Good(), options={"step": 3}, seed=11)


INFOS: list[tuple[str, Callable[[str], dict[str, Any]]]] = [
    ("info of a_0 is not plain data: 'visits' is .* keys are", lambda agent: {"visits": {3: 1}}),
    ("info of a_0 is not plain data: .* int of at most 64 bits", lambda agent: {"x": 2**70}),
    (
        "info of a_0 is not plain data: 'x' is .*True.*, and .item.. of NumPy's scalars",
        lambda agent: {"right": 1, "x": np.bool_(True)},
    ),
    ("info of a_0 is not plain data: .*NaN|not JSON compliant", lambda agent: {"x": math.nan}),
    ("the reward_terms of a_0 sum to", lambda agent: {"reward_terms": {"length": 99.0}}),
    (
        "the groups of a_0 are ..role.*: they must be those of metadata..group_key",
        lambda agent: {"groups": {"role": "a"}},
    ),
    ("info..episode.. of b_0 and a_0 differ", lambda agent: {"episode": {"who": agent}}),
    ("max_new_tokens of a_0 is 0: it must be an int", lambda agent: {"max_new_tokens": 0}),
    ("turn_rewards of a_0 has 2 numbers, and it had 1", lambda agent: {"turn_rewards": [0.0, 0.0]}),
    ("trained_turns of a_0 names turn 1, and it had 1", lambda agent: {"trained_turns": [0, 1]}),
    ("infos of a_0 and b_0 share one object .info.'x'", lambda agent, x=[1]: {"x": x}),
    (
        "with seed 0 and the same actions differ in the infos of a_0 after 0 steps .number",
        lambda agent: {"number": float(np.random.default_rng().random())},
    ),
]


@pytest.mark.parametrize(("sentence", "extra"), INFOS)
def test_an_info_that_breaks_the_contract_is_named(
    sentence: str, extra: Callable[[str], dict[str, Any]]
) -> None:
    env = Good()
    env.extra = extra
    with pytest.raises(AssertionError, match=sentence):
        check_env(env)


BROKEN: list[tuple[str, type[Any]]] = []


def caught(sentence: str) -> Callable[[type[Any]], type[Any]]:
    def keep(broken: type[Any]) -> type[Any]:
        BROKEN.append((sentence, broken))
        return broken

    return keep


@caught("observation_space.'a_0'. builds a new space at every call")
class NewSpaces(Good):
    def observation_space(self, agent: str) -> Any:
        return self.space()


@caught("'default_group'. is 'role', which is none of")
class UnknownDefault(Good):
    def __init__(self) -> None:
        super().__init__()
        self.metadata["default_group"] = "role"


@caught("possible_agents names an agent twice")
class Twice(Good):
    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = ["a_0", "a_0", "b_0"]


@caught("8 seeds give the same episode")
class SeedIgnored(Good):
    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(3)


@caught("the observation of a_0 is not in its observation space")
class Outside(Good):
    def show(self) -> Any:
        observations, infos = super().show()
        observations["a_0"]["active"] = 2
        return observations, infos


@caught("the actions of agents that are not active change the")
class IdleHeard(Good):
    def hear(self, actions: dict[str, Any]) -> None:
        for agent in self.agents:
            if isinstance(actions.get(agent), str):
                self.said[agent] = len(actions[agent])


@caught("no actions as actions raised KeyError")
class NeedsEveryone(Good):
    def hear(self, actions: dict[str, Any]) -> None:
        self.said["a_0"] = len(str(actions[self.possible_agents[self.turn]]))


@caught("something that is no text as actions raised AttributeError")
class NeedsText(Good):
    def hear(self, actions: dict[str, Any]) -> None:
        for action in actions.values():
            action.strip()


@caught("a megabyte of text as actions raised MemoryError")
class NeedsShortText(Good):
    def hear(self, actions: dict[str, Any]) -> None:
        if any(isinstance(action, str) and len(action) > 10**5 for action in actions.values()):
            raise MemoryError


@caught("after 1 steps nobody is active and the episode is not over")
class Stuck(Good):
    def show(self) -> Any:
        observations, infos = super().show()
        observations["b_0"]["active"] = 0
        return observations, infos


@caught("the episode is not over after 100 steps: .* --max-steps to coterie check")
class Endless(Good):
    def step(self, actions: dict[str, Any]) -> Any:
        return *self.show()[:1], dict.fromkeys(self.agents, 0.0), *self.ends(False), self.show()[1]


@caught("a_0 ended and lives again")
class Revived(Good):
    def step(self, actions: dict[str, Any]) -> Any:
        if self.turn == 0:
            observations, rewards, terminated, truncated, infos = super().step(actions)
            self.agents = ["b_0"]
            return observations, rewards, {**terminated, "a_0": True}, truncated, infos
        self.agents = ["b_0", "a_0"]
        observations, infos = self.show()
        rewards = dict.fromkeys(self.agents, 0.0)
        return observations, rewards, *self.ends(False), infos


@caught("agents is .'a_0', 'b_0'.: it must be .. after a_0, b_0 ended")
class Undead(Good):
    def step(self, actions: dict[str, Any]) -> Any:
        result = super().step(actions)
        self.agents = list(self.possible_agents)
        return result


@caught("b_0 came after reset.*, and one that comes later is inactive until then")
class Joined(Good):
    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        observations, infos = super().reset(seed)
        self.agents = ["a_0"]
        return observations, infos

    def step(self, actions: dict[str, Any]) -> Any:
        self.agents = list(self.possible_agents)
        return super().step(actions)


@caught("terminations.'a_0'. is a int, not a bool")
class IntEnds(Good):
    def ends(self, over: bool) -> Any:
        return dict.fromkeys(self.agents, int(over)), dict.fromkeys(self.agents, False)


@caught("the reward of a_0 is inf")
class Infinite(Good):
    def step(self, actions: dict[str, Any]) -> Any:
        observations, rewards, *rest = super().step(actions)
        return observations, dict.fromkeys(rewards, float("inf")), *rest


@caught("an observation changed after it was given")
class Reused(Good):
    def show(self) -> Any:
        observations, infos = super().show()
        if self.turn == 0:
            self.kept = observations
        for agent, shown in observations.items():
            self.kept[agent].update(shown)
        return self.kept, infos


@caught("score_requests.. changes the observations of a_0 after 0 steps|an earlier")
class Remembers(Good):
    count = 0

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        Remembers.count += 1
        return super().reset(None if seed is None else seed + 1000 * (self.count > 2))


@caught("score_requests.. changes the")
class RequestsAct(Good):
    def score_requests(self, actions: Any) -> ScoreRequests:
        self.number += 1
        return ScoreRequests()


@caught("the context of a_0 does not begin with what it read")
class Rewriting(TokenView):
    def step(self, actions: Any) -> Any:
        observations, *rest = super().step(actions)
        observations["a_0"]["tokens"] = observations["a_0"]["tokens"][::-1].copy()
        return observations, *rest


@caught("a_0 is active and has an empty context")
class Silent(TokenView):
    def reset(self, *args: Any, **kwargs: Any) -> Any:
        observations, infos = super().reset(*args, **kwargs)
        for shown in observations.values():
            shown["tokens"] = shown["tokens"][:0]
        return observations, infos


@pytest.mark.parametrize(("sentence", "broken"), BROKEN, ids=[case[1].__name__ for case in BROKEN])
def test_a_broken_environment_is_told_what_to_mend(sentence: str, broken: type[Any]) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_env(broken(Good()) if issubclass(broken, TokenView) else broken())


def test_an_environment_without_chance_says_so() -> None:
    check_env(SeedIgnored(), varied=False)
