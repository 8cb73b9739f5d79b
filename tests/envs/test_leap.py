"""Paths that read each other's summaries, played by hand."""

from typing import Any

import numpy as np
import pytest

import envs
from envs.leap import LeapEnv, LeapSettings
from envs.leap.routing import choose, levenshtein, similarity
from rewards.scorer import AnswerScorer
from vocabulary import Problem, UserError

RIGHT = "<think>!</think>\nAnswer: 2"


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("", "", 0), ("flaw", "lawn", 2)],
)
def test_edits(one: str, other: str, edits: int) -> None:
    assert levenshtein(one, other) == levenshtein(other, one) == edits


def test_edits_against_a_plain_table() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        one, other = ("".join(rng.choice(list("abé"), rng.integers(0, 9))) for _ in range(2))
        table = [[i + j if i * j == 0 else 0 for j in range(len(other) + 1)]
                 for i in range(len(one) + 1)]  # fmt: skip
        for i in range(1, len(one) + 1):
            for j in range(1, len(other) + 1):
                table[i][j] = min(
                    table[i - 1][j] + 1,
                    table[i][j - 1] + 1,
                    table[i - 1][j - 1] + (one[i - 1] != other[j - 1]),
                )
        assert levenshtein(one, other) == table[-1][-1]


def test_routers() -> None:
    assert similarity("", "") == 1.0
    assert similarity("abcd", "abcx") == 0.75
    # Path 0 is nearest to 1, then 2, then 3.
    near = np.array([[1, 0.9, 0.5, 0.1], [0.9, 1, 0, 0], [0.5, 0, 1, 0], [0.1, 0, 0, 1]])
    assert choose(near, 0, 2, "clustered", 0) == [1, 2]
    assert choose(near, 0, 2, "dispersed", 0) == [3, 2]
    assert choose(near, 0, 2, "hybrid", 0) == [1, 3]
    drawn = {tuple(choose(near, 0, 2, "random", seed)) for seed in range(40)}
    assert len(drawn) == 6
    assert choose(near, 3, 9, "clustered", 0) == [0, 1, 2]


def test_an_episode(problem: Problem) -> None:
    settings = LeapSettings(
        paths=3, block_tokens=40, summary_tokens=20, peers=1, max_new_tokens=900
    )
    env = LeapEnv(settings, scorer=AnswerScorer())
    observations, infos = env.reset(seed=0, options={"problem": problem})
    assert observations["policy_1"]["text"] == "Question: 7 + 8 - 3 =\nSolve:"
    assert infos["policy_1"]["max_new_tokens"] == 40
    # The first path answers, the other two pause.
    observations, *_, infos = env.step(
        {"policy_0": RIGHT, "policy_1": "<think> 7", "policy_2": "<think> 8"}
    )
    assert [observations[a]["active"] for a in env.agents] == [0, 1, 1]
    assert observations["policy_1"]["text"] == "\n<summarize>"
    assert infos["policy_1"]["stop"] == ["</summarize>"]
    assert infos["policy_1"]["max_new_tokens"] == 20
    observations, *_ = env.step(
        {"policy_1": "it is five</summarize>", "policy_2": "nothing yet </summarize>"}
    )
    # The least similar summary is the empty one of path 0.
    assert observations["policy_1"]["text"] == "\n<peer_summaries>\n\n</peer_summaries>\n"
    _, rewards, *_, infos = env.step({"policy_1": "</think>\nAnswer: 2", "policy_2": ""})
    assert not env.agents
    assert rewards == {"policy_0": 1.0, "policy_1": 1.0, "policy_2": 0.0}
    assert infos["policy_0"]["episode"]["pauses"] == 1
    assert infos["policy_1"]["response_tokens"] == len("<think> 7it is five</summarize>") + len(
        "</think>\nAnswer: 2"
    )


def test_pauses_come_to_an_end(problem: Problem) -> None:
    env = LeapEnv(LeapSettings(pauses=2, max_new_tokens=10_000), scorer=AnswerScorer())
    observations, _ = env.reset(seed=0, options={"problem": problem})
    steps = 0
    while env.agents:
        asked = [agent for agent in env.agents if observations[agent]["active"]]
        observations, *_ = env.step(dict.fromkeys(asked, "hm"))
        steps += 1
    # Block, summary, block, summary, last block.
    assert steps == 5


@pytest.mark.parametrize("view", ["text", "token"])
def test_our_own(view: Any, scorer: Any, sums: Any) -> None:
    env = envs.make("envs.leap:LeapEnv", view=view, scorer=scorer, source=sums)
    envs.check_env(env)


def test_mistakes() -> None:
    with pytest.raises(UserError, match="paths must be at least 2"):
        LeapSettings(paths=1)
    with pytest.raises(UserError, match="router 'near' is unknown"):
        LeapSettings(router="near")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="one role writes all paths"):
        LeapEnv(roles=("a", "b"))
