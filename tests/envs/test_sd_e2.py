"""Several strategies in one answer, with numbers that can be followed by hand."""

import math

import numpy as np
import pytest

from coterie.envs.sd_e2 import SdE2Env, SdE2Settings
from coterie.envs.sd_e2.scoring import MOST_STRATEGIES, parse


def block(reasoning: str, result: str) -> str:
    return f"<strategy><reasoning>{reasoning}</reasoning><result>{result}</result></strategy>"


def final(answer: str) -> str:
    return f"<final_answer>{answer}</final_answer>"


@pytest.fixture
def begin(problem, scorer):
    """Settings and mode -> (environment, observations, infos) of a fresh episode."""

    def start(mode="train", roles=("alice",), **settings):
        env = SdE2Env(SdE2Settings(**settings), scorer=scorer, roles=roles)
        return env, *env.reset(seed=1, options={"problem": problem, "mode": mode})

    return start


# Right; wrong with one of two strategies right; wrong with two different ones; nothing at all.
# The test scorer's embeddings are one-hot by the first letter.
TEXTS = {
    "alice_0": block("add, then take away", "2") + final("2"),
    "alice_1": block("add, then take away", "2") + block("count on fingers", "3") + final("3"),
    "alice_2": block("add, then take away", "5") + block("count on fingers", "3") + final("3"),
    "alice_3": "I do not know.",
}
# outcome: 1 0 0 0; exploration: 1, 1, .1 * 2 * 1 = .2, 0; exploitation: 1, .5, 0, 0;
# format: .2 + .3 + .1, .4 + .3 + .1 twice, 0
RAW = {
    "outcome": [1, 0, 0, 0],
    "exploration": [1, 1, 0.2, 0],
    "exploitation": [1, 0.5, 0, 0],
    "format": [0.6, 0.8, 0.8, 0],
}


def test_four_rewards_by_hand(begin):
    env, observations, infos = begin(traces=4, normalise=False, w_exploit=2.0)
    assert [seen["active"] for seen in observations.values()] == [1] * 4
    assert observations["alice_0"]["text"].startswith("Question: 7 + 8 - 3 =\n")
    assert infos["alice_0"]["max_new_tokens"] == 48
    _, rewards, done, _, infos = env.step(TEXTS)
    assert all(done.values())
    assert env.agents == []
    for place, agent in enumerate(TEXTS):
        expected = {name: values[place] for name, values in RAW.items()}
        assert {name: infos[agent][f"raw_{name}"] for name in RAW} == pytest.approx(expected)
        expected["exploitation"] *= 2
        assert infos[agent]["reward_terms"] == pytest.approx(expected)
        assert rewards[agent] == pytest.approx(sum(expected.values()))
    assert [infos[agent]["strategies"] for agent in TEXTS] == [1, 2, 2, 0]
    assert [infos[agent]["distinct"] for agent in TEXTS] == [1, 2, 2, 0]
    assert [infos[agent]["strategies_right"] for agent in TEXTS] == [1, 1, 0, 0]


def test_terms_are_put_on_one_scale(begin):
    env, *_ = begin(traces=4)
    *_, infos = env.step(TEXTS)
    for name, values in RAW.items():
        scores = [infos[agent]["reward_terms"][name] for agent in TEXTS]
        np.testing.assert_allclose(scores, (values - np.mean(values)) / np.std(values))
    # One right of four: (1 - .25) / sqrt(.1875)
    assert infos["alice_0"]["reward_terms"]["outcome"] == pytest.approx(math.sqrt(3))


def test_what_failed_counts_in_no_mean(begin):
    env, *_ = begin(traces=5)
    *_, infos = env.step(TEXTS)
    assert infos["alice_0"]["reward_terms"]["outcome"] == pytest.approx(math.sqrt(3))
    assert infos["alice_4"]["failed"]
    assert set(infos["alice_4"]["reward_terms"].values()) == {0.0}
    assert infos["alice_0"]["episode"]["failed"] == 1


def test_roles_have_nothing_to_do_with_each_other(begin):
    env, *_ = begin(traces=4, roles=("alice", "bob"))
    wrong = {f"bob_{place}": final("9") for place in range(4)}
    *_, infos = env.step(TEXTS | wrong)
    assert infos["alice_0"]["reward_terms"]["outcome"] == pytest.approx(math.sqrt(3))
    assert set(infos["bob_0"]["reward_terms"].values()) == {0.0}
    assert infos["alice_0"]["groups"]["problem+role"] == "q/alice"
    assert infos["bob_0"]["episode"]["right"] == {"alice": 1, "bob": 0}


def test_evaluation_pays_for_being_right(begin):
    env, observations, infos = begin(mode="eval", traces=4, eval_traces=3, eval_max_new_tokens=9)
    assert [seen["active"] for seen in observations.values()] == [1, 1, 1, 0]
    assert infos["alice_0"]["max_new_tokens"] == 9
    _, rewards, _, _, infos = env.step(TEXTS)
    assert list(rewards.values()) == [1, 0, 0, 0]
    assert infos["alice_1"]["reward_terms"] == {"correct": 0.0}


def test_requests_name_all_that_is_asked(begin, scorer):
    env, *_ = begin(traces=4)
    requests = env.score_requests(TEXTS)
    env.step(TEXTS)
    assert {text for text, _ in requests.checks} == set(scorer.checked)
    assert set(requests.embeddings) == set(scorer.embedded)


def test_the_parts_of_a_text() -> None:
    whole = parse("<think>" + block("not this one at all", "1") + "</think>" + TEXTS["alice_1"])
    assert whole.reasonings == ("add, then take away", "count on fingers")
    assert (whole.answered, whole.complete) == (True, True)
    # The answer stands before the block: nothing follows it.
    assert not parse(final("2") + block("add, then take away", "2")).answered
    # No reasoning tag: the block itself is its reasoning, and the form is incomplete.
    bare = parse("<strategy>add, then take away <result>2</result></strategy>" + final("2"))
    assert bare.reasonings == ("add, then take away <result>2</result>",)
    assert (bare.answered, bare.complete) == (True, False)
    # Ten characters are no reasoning, and a block that is not closed is none.
    assert parse(block("0123456789", "2")).reasonings == ()
    assert parse("<strategy>add, then take away").blocks == ()


def test_garbage_is_bounded() -> None:
    assert len(parse(block("add, then take away", "2") * 1000).blocks) == MOST_STRATEGIES
    parse("<strategy><reasoning>" * 50_000)
    parse("<reasoning>" * 50_000 + "</strategy>" * 50_000)
