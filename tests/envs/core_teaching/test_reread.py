"""Which traces name the prompt with a peer's hint, to be read again after it."""

import dataclasses
from typing import Any, get_args

import pytest

from coterie import envs
from coterie.datatypes import Problem
from coterie.envs.bytes_codec import BytesCodec
from coterie.envs.core_teaching import CoreTeachingSettings
from coterie.envs.core_teaching.settings import TeacherChoice

from .scripted import COLD, HINTED, PLAIN, RIGHT, WRONG, Played, trace

ALONE = dataclasses.replace(PLAIN, k_cold=2, k_hinted=0, teacher="prefer-peer")
BOTH = {"alice_0": WRONG, "alice_1": WRONG, "bob_0": WRONG, "bob_1": RIGHT}
MIXED = {"alice_0": RIGHT, "alice_1": WRONG, "bob_0": WRONG, "bob_1": RIGHT}


def hinted(work: str) -> str:
    return HINTED.replace("7 + 8 = 5 - 3 =", work)


def reread(env: Any, answers: dict[str, str], **options: Any) -> dict[str, str]:
    infos = Played(env, answers, **options).infos
    return {agent: info["reread_after"] for agent, info in infos.items() if "reread_after" in info}


@pytest.mark.parametrize(
    ("which", "answers", "reread_agents"),
    [
        ("none", BOTH, []),
        # Bob's right trace is its own: nobody else's teaches it.
        ("wrong", BOTH, ["alice_0", "alice_1"]),
        ("unsolved", BOTH, ["alice_0", "alice_1"]),
        ("wrong", MIXED, ["alice_1", "bob_0"]),
        ("unsolved", MIXED, []),
        ("all", BOTH, ["alice_0", "alice_1"]),
        ("alike", BOTH, ["alice_0", "alice_1"]),
        ("alike", MIXED, []),
        ("all", MIXED, list(MIXED)),
        ("alike", dict.fromkeys(BOTH, RIGHT), list(BOTH)),
        ("wrong", dict.fromkeys(BOTH, WRONG), []),
        ("wrong", dict.fromkeys(BOTH, RIGHT), []),
    ],
)
def test_wrong_traces_of_questions_that_a_peer_solved(
    which: Any, answers: dict[str, str], reread_agents: list[str], make: Any
) -> None:
    # Whoever teaches in the second round: here it is a peer.
    for teacher in get_args(TeacherChoice):
        env = make(ALONE, reread=which, teacher=teacher)
        assert reread(env, answers) == dict.fromkeys(reread_agents, HINTED)
        for mode in ("eval", "probe"):
            assert reread(env, answers, mode=mode) == {}


@pytest.mark.parametrize(
    ("least", "hint", "answers", "reread_agents"),
    [
        # Bob is right once in twice, which may be luck.
        (0.5, "peer", BOTH, ["alice_0", "alice_1"]),
        (0.51, "peer", BOTH, []),
        (1.0, "peer", {**BOTH, "bob_0": RIGHT}, ["alice_0", "alice_1"]),
        # One's own right trace stands beside bob's wrong one, and beside none of alice's.
        (0.0, "own", BOTH, ["bob_0"]),
        (0.5, "own", MIXED, ["alice_1", "bob_0"]),
        (0.51, "own", MIXED, []),
    ],
)
def test_hints_of_roles_that_are_right_often_enough(
    least: float, hint: Any, answers: dict[str, str], reread_agents: list[str], make: Any
) -> None:
    env = make(ALONE, reread="wrong", reread_hint=hint, reread_least=least)
    assert reread(env, answers) == dict.fromkeys(reread_agents, HINTED)


THREE = {"alice_0": RIGHT, "alice_1": WRONG, "bob_0": RIGHT, "bob_1": RIGHT}
THREE |= {"carol_0": WRONG, "carol_1": WRONG}
TRIO = {"reread": "wrong", "teacher": "best", "roles": ("alice", "bob", "carol")}


def test_the_best_of_those_that_are_sure_enough_teaches(make: Any) -> None:
    """Alice's one right trace pays most, and is left out."""
    env = make(ALONE, reread_least=0.6, lambda_ta=0.0, **TRIO)
    assert [*reread(env, THREE)] == ["alice_1", "carol_0", "carol_1"]


@pytest.mark.parametrize(
    ("hint", "least", "teachers"),
    [
        # Alice's first trace is right, too, and she is right too seldom.
        ("peer", 0.6, {"alice": "bob_0", "carol": "bob_0"}),
        ("peer", 0.5, {"alice": "bob_0", "carol": "alice_0"}),
        ("own", 0.5, {"alice": "alice_0"}),
        # Bob has nothing to read again.
        ("own", 0.6, {}),
    ],
)
def test_the_log_has_the_hints_that_traces_are_read_behind(
    hint: Any, least: float, teachers: dict[str, str], make: Any
) -> None:
    played = Played(make(ALONE, reread_hint=hint, reread_least=least, **TRIO), THREE)
    assert played.episode["reread_teachers"] == teachers
    assert {*played.episode["reread_hints"]} == {*teachers}
    # Of a second round there is none.
    assert played.episode["teachers"] == played.episode["hints"] == {}
    taught = {agent for agent, info in played.infos.items() if info.get("teacher")}
    assert taught == {*teachers.values()}


def test_contrast_with_a_wrong_trace_of_somebody_else(make: Any, problem: Problem) -> None:
    """Alice's own wrong traces serve where bob has none; a trace's own never does."""
    env = make(ALONE, reread="wrong", reread_contrast=True)

    def contrasts(answers: dict[str, str]) -> dict[str, str]:
        infos = Played(env, answers, problem=problem).infos
        assert all(("reread_after" in i) == ("contrast_after" in i) for i in infos.values())
        return {a: i["contrast_after"] for a, i in infos.items() if "contrast_after" in i}

    worked = {"alice_0": trace(5), "alice_1": trace(6, "7 + 8 = 9 - 3 =")}
    assert contrasts({**worked, "bob_0": RIGHT, "bob_1": RIGHT}) == {
        "alice_0": hinted("7 + 8 = 9 - 3 ="),
        "alice_1": hinted("7 + 8 = 5 - 3 ="),
    }
    # A peer's wrong trace comes first; the only wrong trace has nothing to be compared with.
    from_bob = contrasts({**BOTH, "bob_0": worked["alice_1"]})
    assert from_bob["alice_0"] == hinted("7 + 8 = 9 - 3 =")
    assert contrasts({**dict.fromkeys(BOTH, RIGHT), "alice_0": WRONG}) == {}


def test_nothing_is_sampled_under_the_hint_and_rewards_are_the_same(make: Any) -> None:
    played = Played(make(ALONE, reread="wrong"), BOTH)
    assert played.rounds == [["alice_0", "alice_1", "bob_0", "bob_1"]]
    assert set(played.prompts.values()) == {COLD}
    assert played.rewards == Played(make(ALONE), BOTH).rewards


def test_the_context_is_told_in_the_tokens_of_its_author(scorer: Any, problem: Problem) -> None:
    settings: CoreTeachingSettings = dataclasses.replace(ALONE, reread="wrong")
    env = envs.make("core-teaching", settings=settings, scorer=scorer)
    env.reset(seed=0, options={"problem": problem})
    codec = BytesCodec()
    said = {agent: codec.extend(text) for agent, text in BOTH.items()}
    *_, infos = env.step({agent: said[agent] for agent in env.agents if agent in said})
    assert infos["alice_0"]["reread_after"].tolist() == list(codec.open(HINTED))
