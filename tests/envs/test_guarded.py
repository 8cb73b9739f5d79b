"""What environments of others get wrong, and the sentence that says so while they are played."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from coterie import envs
from coterie.datatypes import UserError
from coterie.envs.adapt import adapt
from coterie.envs.contract import why_no_info
from coterie.envs.guarded import Guarded
from coterie.envs.spaces import TextSpace
from coterie.envs.token_view import TokenView


class Plain(ParallelEnv):
    """One step for two guests; what it says of them is set from outside."""

    metadata: Any = {"name": "plain_v0"}  # noqa: RUF012
    render_mode = None
    info: Any = {}  # noqa: RUF012
    reward: Any = 1.0
    end: Any = True
    shown: Any = "say it"
    begun: Any = ("guest_0", "guest_1")
    left: Any = ()

    def __init__(self, **said: Any) -> None:
        self.possible_agents = ["guest_0", "guest_1"]
        self.agents: Any = []
        self.space: Any = spaces.Text(50)
        self.observed: Any = self.space
        vars(self).update(said)

    def observation_space(self, agent: str) -> Any:
        return self.observed

    def action_space(self, agent: str) -> Any:
        return self.space

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = self.begun
        return self.for_each(self.shown), self.for_each(self.info)

    def step(self, actions: dict[str, Any]) -> Any:
        result = [
            self.for_each(part) for part in (self.shown, self.reward, self.end, False, self.info)
        ]
        self.agents = self.left
        return tuple(result)

    def for_each(self, what: Any) -> dict[str, Any]:
        return dict.fromkeys(self.possible_agents, what)


def played(env: Plain) -> dict[str, Any]:
    view = adapt(env)
    view.reset(seed=1)
    *_, infos = view.step({})
    return infos["guest_0"]


LIMIT = "an int of at least 1"
STOP = "a list of non-empty strings"
TERMS = "a dictionary of finite numbers by name"
GROUPS = "a dictionary of non-empty strings by group key"
WEIGHT = "a finite number of at least 0"
WRONG = [
    *(("max_new_tokens", value, LIMIT) for value in (0, 2.5, True)),
    *(("stop", value, STOP) for value in ("abc", [""])),
    *(("reward_terms", value, TERMS) for value in ("x", {"a": np.inf}, {3: 1.0})),
    *(("groups", value, GROUPS) for value in (3, {"problem+role": {}}, {"problem": ""})),
    *(("loss_weight", value, WEIGHT) for value in (float("nan"), np.ones(2))),
    ("episode", "x", "a dictionary by name"),
    ("learned_after", 5, "text"),
    ("piece", "chat", "'message', 'continuation', 'fresh' or 'tools'"),
    ("texts", 5, "a list of strings"),
]


@pytest.mark.parametrize(("key", "value", "needed"), WRONG)
def test_an_info_that_breaks_the_contract(key: str, value: Any, needed: str) -> None:
    sentence = f"Plain: {key} of guest_0 is {value!r}: it must be {needed}; fix it, then run coter"
    with pytest.raises(UserError, match=re.escape(sentence)):
        played(Plain(info={"free": object(), key: value}))


def test_an_info_that_keeps_the_contract_passes_with_pythons_numbers() -> None:
    info = {
        "max_new_tokens": np.int64(4),
        "stop": ("\n",),
        "reward_terms": {"right": np.float32(1.5), "cost": -0.5},
        "groups": {"problem+role": "p/guest"},
        "loss_weight": np.float64(0.0),
        "episode": {"turns": 1},
    }
    kept = played(Plain(info=info))
    assert kept["max_new_tokens"] == 4
    assert kept["reward_terms"] == {"right": 1.5, "cost": -0.5}
    assert kept["loss_weight"] == 0.0
    numbers = (kept["max_new_tokens"], kept["reward_terms"]["right"], kept["loss_weight"])
    assert [type(number) for number in numbers] == [int, float, float]


def test_reward_terms_that_do_not_sum_to_the_reward_are_refused() -> None:
    sentence = "the reward_terms of guest_0 sum to 0.5, but it was paid 1.0; fix it, then run coter"
    with pytest.raises(UserError, match=re.escape(sentence)):
        played(Plain(info={"reward_terms": {"right": 0.5}}))


def test_who_is_not_asked_has_no_limits() -> None:
    idle = {"max_new_tokens": 0}
    assert why_no_info("a_0", idle, active=False) == ""
    assert why_no_info("a_0", idle) == "max_new_tokens of a_0 is 0: it must be an int of at least 1"


def test_ids_are_learned_after_where_ids_are_read() -> None:
    space = spaces.Sequence(spaces.Discrete(9))
    kept = played(Plain(space=space, shown=(1, 2), info={"learned_after": [3, 4]}))
    assert kept["learned_after"].tolist() == [3, 4]
    with pytest.raises(UserError, match="learned_after of guest_0 is 'x': it must be a list of to"):
        played(Plain(space=space, shown=(1, 2), info={"learned_after": "x"}))


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError


def refuse(error: Exception) -> Callable[..., Any]:
    def raising(*args: Any, **kwargs: Any) -> Any:
        raise error

    return raising


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"reward": np.array([1.0, 2.0])}, "the reward of guest_0 is array([1., 2.]), not a"),
        ({"reward": np.nan}, "the reward of guest_0 is nan, not a finite number."),
        ({"end": np.ones(2)}, "terminations['guest_0'] is array([1., 1.]): it must be True or Fal"),
        ({"info": "abc"}, "the info of guest_0 is 'abc': it must be a dictionary; fix it, then"),
        ({"shown": {"text": "x", "active": np.ones(2)}}, "'active' of guest_0 is array([1., 1.])"),
        ({"shown": [[1], [1, 2]]}, "guest_0 observes a list; with text actions it needs text"),
        ({"reset": lambda seed, options: ({}, {})}, "reset() gives guest_0, which is in agents,"),
        ({"step": lambda given: ({"zoe_0": ""}, {}, {}, {}, {})}, "after step() 'zoe_0' is there"),
        ({"step": refuse(StopIteration())}, "Plain: step() raised StopIteration; coterie check"),
        ({"step": refuse(ValueError("two\nlines"))}, "step() raised ValueError: two lines; coter"),
        ({"step": refuse(Unprintable())}, "step() raised Unprintable; coterie check says"),
        ({"begun": None}, "after reset() agents is None: it must be a list of names; fix it"),
        ({"begun": "guest_0"}, "after reset() agents is 'guest_0': it must be a list of names"),
        ({"left": ["guest_0"]}, "step() ends guest_0, who is still in agents: take out who has"),
        ({"metadata": None}, "Plain: metadata is None: it must be a dictionary; fix it, then run"),
        ({"metadata": {"replicas": "x"}}, "metadata['replicas'] is 'x': it must be an int of at"),
        ({"metadata": {"group_keys": 5}}, "metadata['group_keys'] is 5: it must be a tuple of"),
        ({"metadata": {"default_group": 5}}, "metadata['default_group'] is 5: it must be one of"),
    ],
)  # fmt: skip
def test_what_else_goes_wrong(said: dict[str, Any], sentence: str) -> None:
    said = {"agents": ["guest_0"], **said}
    with pytest.raises(UserError, match=re.escape(sentence)):
        played(Plain(**said))


def test_closing_may_fail_too() -> None:
    with pytest.raises(UserError, match=r"Plain: close\(\) raised OSError: gone; coterie check"):
        adapt(Plain(close=refuse(OSError("gone")))).close()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"shown": "x"}, "guest_0 observes 'x': it must be a dictionary of 'text', a string, and"),
        ({"shown": {"text": "x"}}, "guest_0 observes {'text': 'x'}: it must be a dictionary of"),
        ({"info": {"stop": "abc"}}, "stop of guest_0 is 'abc': it must be a list of non-empty str"),
    ],
)
def test_text_environments_are_held_to_it_as_well(said: dict[str, Any], sentence: str) -> None:
    attributes = {"shown": {"text": "say", "active": 1}, "space": TextSpace(), **said}
    observed = spaces.Dict({"text": TextSpace(), "active": spaces.Discrete(2)})
    view = TokenView(Guarded(Plain(observed=observed, **attributes), text=True))
    with pytest.raises(UserError, match=re.escape(sentence)):
        view.step(view.reset(seed=1)[1])


def test_only_environments_of_others_are_guarded() -> None:
    assert isinstance(envs.make("coterie.envs.solo:SoloEnv").env, Guarded)  # type: ignore[attr-defined]
    assert not isinstance(envs.make("core-teaching").env, Guarded)  # type: ignore[attr-defined]
