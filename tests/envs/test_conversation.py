import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from coterie.datatypes import Problem, ScoreRequests, UserError
from coterie.envs import Ask, ConversationEnv, Fresh, Outcome, Turn, check_env
from coterie.envs.token_view import TokenView


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


def saying(*asks: Any, end: Any = None) -> Two:
    """A conversation that asks what is given, in turn, and ends with ``end``."""

    def conversation(self: Any, problem: Problem, options: Any, random: Any) -> Any:
        for ask in asks:  # noqa: UP028 (the loop takes answers that a tuple would not)
            yield ask
        return Outcome({}) if end is None else end

    return type("Saying", (Two,), {"conversation": conversation})()


PROBLEM = Problem(id="p", question="1 + 1 =", gold="2")


def test_an_episode() -> None:
    env = Two()
    observations, infos = env.reset(seed=3, options={"problem": PROBLEM, "mode": "eval"})
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
    env.reset(seed=3, options={"problem": PROBLEM})
    env.step({"b_0": "x"})
    *_, infos = env.step({"a_0": "here"})
    assert infos["a_0"]["said"] == ["-", "here"]
    assert (infos["a_0"]["failed"], infos["b_0"]["failed"]) == (True, False)


def test_what_may_be_graded_is_asked_for_in_advance() -> None:
    env = Two()
    assert env.score_requests({"a_0": "early"}).checks == ()
    env.reset(seed=3, options={"problem": PROBLEM})
    asked = env.score_requests({"a_0": "2", "c_0": "nobody"})
    assert asked.checks == (("2", PROBLEM),)


def test_transcripts(capsys: pytest.CaptureFixture[str]) -> None:
    env = Two(render_mode="human")
    env.reset(seed=3, options={"problem": PROBLEM})
    env.step({"a_0": "two", "b_0": "x"})
    assert capsys.readouterr().out == ""
    env.step({})
    transcript = capsys.readouterr().out
    assert transcript.startswith("p: 1 + 1 =\ngold answer: 2\n\n== a_0 ==\n1 + 1 =\n--\ntwo\n")
    assert "== a_0 ==\nagain, None\n--\n(no answer)\n" in transcript
    earned = "a_0: reward +1.500; words +2.000, cost -0.500; failed\nb_0: reward +0.000\n"
    assert transcript.endswith(f"\n\n{earned}")


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"c_0": "who?"}, "{'c_0': 'who.'}"),
        (None, "None"),
        ({"a_0": Ask(piece="continuation")}, ""),
        (Turn({}), ""),
    ],
)
def test_a_conversation_asks_somebody_something(asked: Any, shown: str) -> None:
    sentence = rf"conversation\(\) asked {shown}.*; it must give at least one of a_0, b_0 a mess"
    with pytest.raises(UserError, match=sentence):
        saying(asked).reset(seed=0)


def test_numbers_of_numpy_may_be_measured() -> None:
    measured = {"a_0": {"words": np.int64(3), "right": np.bool_(True), "all": [np.float32(0.5)]}}
    env = saying({"a_0": "x"}, end=Outcome({}, measured, episode={"turns": np.int64(1)}))
    env.reset(seed=0)
    *_, infos = env.step({"a_0": "y"})
    shown = [*infos["a_0"]["all"], *map(infos["a_0"].get, ("words", "right"))]
    shown.append(infos["a_0"]["episode"]["turns"])
    assert (shown, [*map(type, shown)]) == ([0.5, 3, True, 1], [float, int, bool, int])


@pytest.mark.parametrize("asked", ["", Fresh("")])
def test_an_empty_message_is_named(asked: str) -> None:
    # Many a conversation hands on an answer as it is, and the check sends empty ones.
    sentence = r"conversation\(\) gave b_0 an empty message; an answer may be empty, so put words"
    with pytest.raises(UserError, match=sentence):
        saying({"a_0": "x", "b_0": asked}).reset(seed=0)


def test_an_outcome_is_returned() -> None:
    with pytest.raises(UserError, match=r"conversation\(\) yielded an Outcome; return it"):
        saying(Outcome(PAID)).reset(seed=0)


PAID = {"a_0": {"right": 1.0}}


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        ("nothing", "ended with 'nothing'; let it return an Outcome, such as Outcome({'a_0': {'co"),
        ({"a_0": 1.0}, "ended with {'a_0': 1.0}; let it return an Outcome"),
        (Outcome({"a": {"right": 1.0}}), "ended with the terms {'a': {'right': 1.0}}; they"),
        (Outcome(PAID, {"b": {"x": 1}}), "ended with the measured {'b': {'x': 1}}; they"),
        (Outcome(PAID, {"a_0": {"stop": 3}}), "measured 'stop' of a_0, which is a key of the env"),
        (Outcome({"a_0": 1.0}), "ended with the terms {'a_0': 1.0}; they must be"),
        (Outcome({"a_0": {"x": "1"}}), "ended, and reward_terms of a_0 is {'x': '1'}: it must be"),
        (Outcome(PAID, episode=[1]), "ended with the episode [1]; it must be a dictionary"),
        (Outcome(PAID, groups={"a_0": {"pair": "x"}}), "ended, and the groups of a_0 are ['pair',"),
        (Outcome(PAID, groups={"a_0": 3}), "ended with the groups {'a_0': 3}; they must be a dict"),
        (Outcome(PAID, loss_weight={"a_0": -1}), "ended, and loss_weight of a_0 is -1: it must be"),
        (Outcome(PAID, loss_weight=2), "ended with loss_weight 2; it must be a dictionary by agen"),
        (Outcome(PAID, learned_after={"a_0": 5}), "ended, and learned_after of a_0 is 5: it must"),
        (Outcome(PAID, truncated="a_0"), "ended with truncated 'a_0'; it must be a list of agents"),
        (Outcome(PAID, truncated=["c_0"]), "ended with truncated ['c_0']; it must be a list of ag"),
        (Outcome(PAID, failed={"c_0": True}), "ended with failed {'c_0': True}; it must be a dict"),
    ],
)  # fmt: skip
def test_a_conversation_ends_with_what_its_own_agents_earned(end: Any, sentence: str) -> None:
    env = saying({"a_0": "?"}, end=end)
    env.reset(seed=0)
    with pytest.raises(UserError, match=re.escape(f"two: conversation() {sentence}")):
        env.step({"a_0": "!"})


def test_what_numpy_counted_is_paid() -> None:
    env = saying({"a_0": "?"}, end=Outcome({"a_0": {"right": np.float32(0.5)}}))
    env.reset(seed=0)
    assert env.step({"a_0": "!"})[1] == {"a_0": 0.5, "b_0": 0.0}


def test_a_conversation_that_asks_nobody_says_so() -> None:
    silent = type("Silent", (Two,), {"conversation": lambda *given: Outcome(PAID)})()
    with pytest.raises(UserError, match=r"two: conversation\(\) is no generator: ask with"):
        silent.reset(seed=0)
    with pytest.raises(UserError, match=r"two: conversation\(\) ended before it asked anybody"):
        saying().reset(seed=0)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Two(roles=("a",)), "two: 1 roles; name 2, such as a b"),
        (lambda: Two(roles=("a", "b", "c")), "two: 3 roles; name 2, such as a b"),
        (lambda: Two(roles=("a", "a")), "must be names that all differ"),
        (lambda: Two(render_mode="rgb"), "render mode 'rgb' is unknown"),
        (lambda: Bare(), "two: metadata lacks group_keys; begin with those of the base class: me"),
        (lambda: Team({"max_new_tokens": 3}), "team: its settings are {'max_new_tokens': 3}; give"),
        (lambda: Team(Settings("many")), "max_new_tokens is 'many'; it must be a whole number"),
    ],
)
def test_what_cannot_be_built(build: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        build()


class Bare(Two):
    """With metadata as PettingZoo's own environments have them."""

    metadata = {"name": "bare_v0"}  # noqa: RUF012


class Team(ConversationEnv):
    """Two writers and a reader, with all that a conversation may say."""

    title = "team"
    metadata = {  # noqa: RUF012
        **ConversationEnv.metadata,
        "name": "team_v0",
        "group_keys": ("problem", "problem+role", "pair"),
        "default_group": "pair",
    }
    settings_class = Settings
    default_roles = ("writer", "reader")
    modes = ("train", "eval")

    def places(self) -> dict[str, int]:
        return {"writer": 2, "reader": 1}

    def replicas(self) -> int:
        return 4

    def check_roles(self) -> None:
        if self.roles != ("writer", "reader"):
            raise UserError("team: writer and reader, no others.")

    def conversation(self, problem: Problem, options: Any, random: Any) -> Any:
        if options.get("step") == 0:
            raise UserError("team: steps count from 1.")
        writers = self.agents_of("writer")

        def needed(answers: Any) -> ScoreRequests:
            return ScoreRequests(tuple((text + "!", problem) for text in answers.values()))

        ask = Ask(problem.question, max_new_tokens=7, stop=("x",))
        said = yield Turn(dict.fromkeys(writers, ask), needed)
        more = yield {"writer_0": Ask(piece="continuation"), "writer_1": Ask(" so", "continuation")}
        read = yield {"reader_0": Ask("?", "fresh")}
        grades = {agent: self.scorer.check(text + "!", problem) for agent, text in said.items()}
        return Outcome(
            terms={agent: {"right": float(grade.correct)} for agent, grade in grades.items()},
            measured={"reader_0": {"read": [*more.values(), *read.values()]}},
            groups={agent: {"pair": f"{problem.id}/pair"} for agent in self.possible_agents},
            loss_weight={"writer_1": 0.5},
            learned_after={"writer_0": "another question"},
            truncated=["writer_1"],
            failed={"reader_0": "reader_0" not in read},
        )


def test_several_agents_of_a_role_with_limits_stops_and_pieces() -> None:
    env = Team()
    assert env.possible_agents == ["writer_0", "writer_1", "reader_0"]
    assert (env.metadata["replicas"], Team.metadata["replicas"]) == (4, 8)
    observations, infos = env.reset(seed=3, options={"problem": PROBLEM})
    assert env.episode_seed == 3
    asked = {"piece": "message", "max_new_tokens": 7, "stop": ["x"]}
    assert infos == {"writer_0": asked, "writer_1": asked, "reader_0": {}}
    observations, *_, infos = env.step({"writer_0": "1", "writer_1": "2"})
    # An agent may go on with its own turn without another word.
    assert observations["writer_0"] == {"text": "", "active": 1}
    assert observations["writer_1"] == {"text": " so", "active": 1}
    assert infos["writer_0"] == {"piece": "continuation", "max_new_tokens": 5}
    *_, infos = env.step({"writer_0": "a"})
    assert infos["reader_0"]["piece"] == "fresh"
    _, rewards, ended, cut, infos = env.step({"reader_0": "b"})
    assert set(rewards.values()) == {0.0}
    assert ended == {"writer_0": True, "writer_1": False, "reader_0": True}
    assert cut == {"writer_0": False, "writer_1": True, "reader_0": False}
    groups = {"problem": "p", "problem+role": "p/writer", "pair": "p/pair"}
    assert infos["writer_0"] == {
        "reward_terms": {"right": 0.0},
        "groups": groups,
        "episode": {"problem": "p"},
        "learned_after": "another question",
    }
    assert infos["writer_1"]["loss_weight"] == 0.5
    assert infos["reader_0"]["read"] == ["a", "b"]
    assert infos["reader_0"]["failed"] is False


def test_a_turn_foretells_what_its_answers_will_be_scored_by(scorer: Any) -> None:
    env = Team(scorer=scorer)
    env.reset(seed=3, options={"problem": PROBLEM})
    answers = {"writer_0": "1", "reader_0": "idle"}
    foretold = env.score_requests(answers)
    assert foretold.checks == (("1!", PROBLEM),)
    env.step(answers)
    # A turn that foretells nothing has each answer graded.
    assert env.score_requests({"writer_1": "2"}).checks == (("2", PROBLEM),)
    env.step({})
    env.step({})
    assert scorer.checked == ["1!"]


@pytest.mark.parametrize("env", [Two, Team])
def test_it_keeps_the_contract(env: Any) -> None:
    check_env(env())
    check_env(TokenView(env()))


def test_what_a_conversation_refuses_is_refused_at_reset() -> None:
    env = Team()
    env.reset(seed=3)
    with pytest.raises(UserError, match="mode 'probe' is unknown; choose one of train, eval"):
        env.reset(options={"mode": "probe"})
    with pytest.raises(UserError, match="team: steps count from 1"):
        env.reset(options={"step": 0})
    # Nothing of an episode that never began is left to go on with.
    assert env.step({"writer_0": "1"}) == ({}, {}, {}, {}, {})
    with pytest.raises(UserError, match="writer and reader, no others"):
        Team(roles=("reader",))


def test_limits_that_make_no_sense_are_named() -> None:
    with pytest.raises(AssertionError, match="stop of a_0 is 'abc': it must be a list of non-empt"):
        check_env(saying({"a_0": Ask("?", stop="abc")}))


def test_scores_that_are_none_are_named() -> None:
    env = saying(Turn({"a_0": "?"}, lambda answers: answers["a_0"]))  # type: ignore[arg-type]
    env.reset(seed=0)
    with pytest.raises(UserError, match="has scores that give '!'; they must give ScoreRequests"):
        env.score_requests({"a_0": "!"})
