from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    [({"c_0": "who?"}, "{'c_0': 'who.'}"), ({}, "{}"), ({"a_0": ""}, "{'a_0': ''}")],
)
def test_a_conversation_asks_somebody_something(asked: Any, shown: str) -> None:
    class Wrong(Two):
        def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
            yield asked
            return Outcome({})

    sentence = rf"two: conversation\(\) asked {shown}; it must give at least one of a_0, b_0 a mess"
    with pytest.raises(UserError, match=sentence):
        Wrong().reset(seed=0)


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
