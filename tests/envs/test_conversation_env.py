import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from envs import check_env
from envs.conversation_env import ConversationEnv, Fresh, Outcome
from envs.token_view import TokenView
from vocabulary import Problem, UserError


@dataclass(frozen=True)
class Settings:
    max_new_tokens: int = 5


class Two(ConversationEnv):
    """a is asked twice, the second time afresh; b once, with whatever chance says."""

    title = "two"
    metadata = {**ConversationEnv.metadata, "name": "two_v0", "replicas": 3}  # noqa: RUF012
    settings_class = Settings
    default_roles = ("a", "b")

    def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
        first = yield {"a_0": problem.question, "b_0": f"draw {random.integers(100)}"}
        second = yield {"a_0": Fresh(f"again, {options.get('mode')}")}
        said = [first.get("a_0", "-"), second.get("a_0", "-")]
        return Outcome(
            terms={"a_0": {"words": float(len(said)), "cost": -0.5}},
            measured={"a_0": {"said": said}},
            episode={"said": said},
        )


def problem() -> Problem:
    return Problem(id="p", question="1 + 1 =", gold="2")


def test_an_episode() -> None:
    env = Two()
    observations, infos = env.reset(seed=3, options={"problem": problem(), "mode": "eval"})
    assert observations["a_0"] == {"text": "1 + 1 =", "active": 1}
    assert infos["a_0"] == {"piece": "message", "max_new_tokens": 5}
    observations, rewards, ended, _, infos = env.step({"a_0": "two", "b_0": "x"})
    assert observations["a_0"] == {"text": "again, eval", "active": 1}
    assert infos["a_0"] == {"piece": "fresh", "max_new_tokens": 5}
    assert (observations["b_0"], infos["b_0"]) == ({"text": "", "active": 0}, {})
    assert (rewards["a_0"], ended["a_0"]) == (0.0, False)
    # Something that is no text is an empty answer; b is not asked and not heard.
    _, rewards, ended, _, infos = env.step({"a_0": 17, "b_0": "y"})
    assert rewards == {"a_0": 1.5, "b_0": 0.0}
    assert ended == {"a_0": True, "b_0": True}
    assert env.agents == []
    assert infos["a_0"] == {
        "reward_terms": {"words": 2.0, "cost": -0.5},
        "groups": {"problem+role": "p/a", "problem": "p"},
        "episode": {"problem": "p", "said": ["two", ""]},
        "failed": False,
        "said": ["two", ""],
    }
    assert infos["b_0"]["reward_terms"] == {}
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_who_fails_once_has_failed() -> None:
    env = Two()
    env.reset(seed=3, options={"problem": problem()})
    env.step({"b_0": "x"})
    *_, infos = env.step({"a_0": "here"})
    assert infos["a_0"]["said"] == ["-", "here"]
    assert (infos["a_0"]["failed"], infos["b_0"]["failed"]) == (True, False)


def test_what_may_be_graded_is_asked_for_in_advance() -> None:
    env = Two()
    assert env.score_requests({"a_0": "early"}).checks == ()
    env.reset(seed=3, options={"problem": problem()})
    asked = env.score_requests({"a_0": "2", "c_0": "nobody"})
    assert asked.checks == (("2", problem()),)


def test_it_keeps_the_contract() -> None:
    check_env(Two())
    check_env(TokenView(Two()))


def test_transcripts(capsys: pytest.CaptureFixture[str]) -> None:
    env = Two(render_mode="human")
    env.reset(seed=3, options={"problem": problem()})
    env.step({"a_0": "two", "b_0": "x"})
    assert capsys.readouterr().out == ""
    env.step({})
    told = capsys.readouterr().out
    assert told.startswith("p: 1 + 1 =\n\n== a_0 ==\n1 + 1 =\n--\ntwo\n")
    assert "== a_0 ==\nagain, None\n--\n(no answer)\n" in told
    assert told.endswith("a_0: reward +1.500\nb_0: reward +0.000\n")


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"c_0": "who?"}, "{'c_0': 'who.'}"),
        ({}, "{}"),
        ({"a_0": ""}, "{'a_0': ''}"),
        ({"a_0": 5}, "{'a_0': 5}"),
        (None, "None"),
    ],
)
def test_a_conversation_asks_somebody_something(asked: Any, shown: str) -> None:
    class Wrong(Two):
        def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
            yield asked
            return Outcome({})

    sentence = rf"two: conversation\(\) asked {shown}; it must give at least one of a_0, b_0 a mess"
    with pytest.raises(UserError, match=sentence):
        Wrong().reset(seed=0)


PAID = {"a_0": {"right": 1.0}}


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        (None, "ended with None; let it return an Outcome, such as Outcome({'a_0': {'co"),
        ({"a_0": 1.0}, "ended with {'a_0': 1.0}; let it return an Outcome"),
        (Outcome({"a": {"right": 1.0}}), "ended with the terms {'a': {'right': 1.0}}; they"),
        (Outcome(PAID, {"b": {"x": 1}}), "ended with the measured {'b': {'x': 1}}; they"),
        (Outcome({"a_0": 1.0}), "ended with the terms {'a_0': 1.0}; they must be"),
        (Outcome({"a_0": {"x": "1"}}), "ended, and reward_terms of a_0 is {'x': '1'}: it must be"),
        (Outcome({"a_0": {"x": float("nan")}}), "ended, and reward_terms of a_0 is {'x': nan}: it"),
        (Outcome(PAID, episode=[1]), "ended with the episode [1]; it must be a dictionary"),
    ],
)  # fmt: skip
def test_a_conversation_ends_with_what_its_own_agents_earned(end: Any, sentence: str) -> None:
    class Wrong(Two):
        def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
            yield {"a_0": "?"}
            return end

    env = Wrong()
    env.reset(seed=0)
    with pytest.raises(UserError, match=re.escape(f"two: conversation() {sentence}")):
        env.step({"a_0": "!"})


def test_what_numpy_counted_is_paid() -> None:
    class Counted(Two):
        def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
            yield {"a_0": "?"}
            return Outcome({"a_0": {"right": np.float32(0.5)}})

    env = Counted()
    env.reset(seed=0)
    assert env.step({"a_0": "!"})[1] == {"a_0": 0.5, "b_0": 0.0}


def test_a_conversation_that_fails_says_so_and_one_that_asks_nobody_too() -> None:
    class Failing(Two):
        def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
            answers = yield {"a_0": "?"}
            yield answers["b_0"]

    class Silent(Two):
        def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
            return Outcome(PAID)

    class Short(Two):
        def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
            yield from ()
            return Outcome(PAID)

    env = Failing()
    env.reset(seed=0)
    with pytest.raises(
        UserError, match=r"two: conversation\(\) raised KeyError: 'b_0'; python -m en"
    ):
        env.step({"a_0": "!"})
    with pytest.raises(UserError, match=r"two: conversation\(\) is no generator: ask with"):
        Silent().reset(seed=0)
    with pytest.raises(UserError, match=r"two: conversation\(\) ended before it asked anybody"):
        Short().reset(seed=0)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Two(roles=("a",)), "two: 1 roles; name 2, such as a b"),
        (lambda: Two(roles=("a", "b", "c")), "two: 3 roles; name 2, such as a b"),
        (lambda: Two(roles=("a", "a")), "must be names that all differ"),
        (lambda: Two(render_mode="rgb"), "render mode 'rgb' is unknown"),
    ],
)
def test_what_cannot_be_built(build: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        build()
