"""Paths that read each other's summaries, played by hand."""

from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from coterie import envs
from coterie.datatypes import Problem, UserError
from coterie.envs.bytes_codec import END, BytesCodec
from coterie.envs.token_view import TokenView
from coterie.extras.papers.leap import LeapEnv, LeapSettings
from coterie.extras.papers.leap.environment import choose, levenshtein, similarity
from coterie.rewards.grading.scorer import AnswerScorer

pytestmark = pytest.mark.filterwarnings(
    # PettingZoo's AEC test likes one of its own keys in observations.
    "ignore:The observation space for the environment:UserWarning",
    "ignore:Observation space for each agent probably should be:UserWarning",
    "ignore:Action space for each agent probably should be:UserWarning",
    "ignore:Observation is not a NumPy array:UserWarning",
)

RIGHT = "<think>!</think>\nAnswer: 2"


@pytest.fixture
def problem() -> Problem:
    return Problem(id="q", question="7 + 8 - 3 =", gold="2", kind="number")


def test_edits_against_a_plain_table() -> None:
    rng = np.random.default_rng(0)
    drawn = [
        ["".join(rng.choice(list("abé"), rng.integers(0, 9))) for _ in "ab"] for _ in range(50)
    ]
    for first, second in (*drawn, ("", "abc"), ("abc", ""), ("", "")):
        table = [[i + j if i * j == 0 else 0 for j in range(len(second) + 1)]
                 for i in range(len(first) + 1)]  # fmt: skip
        for i in range(1, len(first) + 1):
            for j in range(1, len(second) + 1):
                table[i][j] = min(
                    table[i - 1][j] + 1,
                    table[i][j - 1] + 1,
                    table[i - 1][j - 1] + (first[i - 1] != second[j - 1]),
                )
        assert levenshtein(first, second) == table[-1][-1]


def test_routers() -> None:
    assert similarity("", "") == 1.0
    assert similarity("abcd", "abcx") == 0.75
    # From "abcd" b is three quarters the same, c a half, d nothing.
    others = {"b": "abcx", "c": "abxy", "d": "wxyz"}
    assert choose("abcd", others, 2, "clustered", 0) == ["b", "c"]
    assert choose("abcd", others, 2, "dispersed", 0) == ["d", "c"]
    assert choose("abcd", others, 2, "hybrid", 0) == ["b", "d"]
    assert choose("abcd", others, 3, "hybrid", 0) == ["b", "c", "d"]
    assert choose("abcd", others, 9, "clustered", 0) == ["b", "c", "d"]
    assert choose("abcd", {}, 2, "dispersed", 0) == []
    drawn = {tuple(choose("abcd", others, 2, "random", seed)) for seed in range(40)}
    assert len(drawn) == 6


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
    assert [observations[agent]["active"] for agent in env.agents] == [0, 1, 1]
    assert observations["policy_1"]["text"] == "\n<summarize>"
    assert infos["policy_1"]["stop"] == ["</summarize>"]
    assert infos["policy_1"]["max_new_tokens"] == 20
    observations, *_, infos = env.step(
        {"policy_1": "it is five</summarize>", "policy_2": "nothing yet </summarize>"}
    )
    # Each reads the other's: path 0 has written none.
    assert observations["policy_1"]["text"] == (
        "\n<peer_summaries>\nnothing yet\n</peer_summaries>\n"
    )
    assert infos["policy_1"]["stop"] == []
    _, rewards, done, cut, infos = env.step({"policy_1": "</think>\nAnswer: 2", "policy_2": ""})
    assert not env.agents
    assert rewards == {"policy_0": 1.0, "policy_1": 1.0, "policy_2": 0.0}
    assert (done["policy_1"], cut["policy_1"]) == (True, False)
    assert (done["policy_2"], cut["policy_2"]) == (False, True)
    assert infos["policy_0"]["episode"]["pauses"] == 1
    assert infos["policy_1"]["response_tokens"] == len("<think> 7it is five</summarize>") + len(
        "</think>\nAnswer: 2"
    )


def test_a_path_that_fails_is_left_behind(problem: Problem) -> None:
    env = LeapEnv(LeapSettings(paths=2, max_new_tokens=500), scorer=AnswerScorer())
    env.reset(seed=0, options={"problem": problem})
    observations, *_ = env.step({"policy_0": "<think> 7"})
    assert [observations[agent]["active"] for agent in env.agents] == [1, 0]
    observations, *_ = env.step({"policy_0": "seven</summarize>"})
    assert observations["policy_0"]["text"] == "\n<peer_summaries>\n</peer_summaries>\n"
    _, rewards, *_, infos = env.step({"policy_0": "</think>\nAnswer: 2"})
    assert rewards == {"policy_0": 1.0, "policy_1": 0.0}
    assert [infos[agent]["failed"] for agent in infos] == [False, True]


def test_pauses_come_to_an_end(problem: Problem) -> None:
    env = LeapEnv(
        LeapSettings(pauses=2, block_tokens=3, max_new_tokens=10_000), scorer=AnswerScorer()
    )
    observations, infos = env.reset(seed=0, options={"problem": problem})
    steps = 0
    while env.agents:
        asked = [agent for agent in env.agents if observations[agent]["active"]]
        limits = {infos[agent]["max_new_tokens"] for agent in asked}
        # Block, summary, block, summary, and the rest.
        assert limits == {[3, 16, 3, 16, 10_000 - 8][steps]}
        observations, *_, infos = env.step(dict.fromkeys(asked, "hm"))
        steps += 1
    assert steps == 5


def test_paths_end_with_their_tokens(problem: Problem) -> None:
    env = LeapEnv(LeapSettings(block_tokens=8, max_new_tokens=10), scorer=AnswerScorer())
    _, infos = env.reset(seed=0, options={"problem": problem})
    assert infos["policy_0"]["max_new_tokens"] == 8
    _, _, _, _, infos = env.step(dict.fromkeys(env.agents, "12345678"))
    assert infos["policy_0"]["max_new_tokens"] == 2
    env.step(dict.fromkeys(env.agents, "12"))
    assert not env.agents


def test_the_scorer_is_told_beforehand(problem: Problem) -> None:
    env = LeapEnv(LeapSettings(paths=2), scorer=AnswerScorer())
    env.reset(seed=0, options={"problem": problem})
    assert env.score_requests({"policy_0": RIGHT}).checks == (("Answer: 2", problem),)
    assert env.score_requests({"policy_0": "no"}).checks == ()


@pytest.mark.parametrize("view", ["text", "token", "padded"])
def test_conformance(view: Any) -> None:
    def build() -> Any:
        settings = LeapSettings(max_new_tokens=300, block_tokens=30)
        return envs.make(
            "coterie.extras.papers.leap:LeapEnv",
            view=view,
            settings=settings,
            scorer=AnswerScorer(),
        )

    envs.check_env(build())
    parallel_api_test(build(), num_cycles=20)
    parallel_seed_test(build, num_cycles=20)
    api_test(parallel_to_aec(build()), num_cycles=20)


def test_mistakes() -> None:
    with pytest.raises(UserError, match="paths is 1; it must be 2 to 4096"):
        LeapSettings(paths=1)
    with pytest.raises(UserError, match="router is 'near'; it must be one of"):
        LeapSettings(router="near")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="one role writes all paths"):
        LeapEnv(roles=("a", "b"))


def test_a_chat_model_is_asked_for_a_form_that_the_checker_reads(problem: Problem) -> None:
    settings = LeapSettings(prompt_style="answer")
    env: Any = LeapEnv(settings=settings, scorer=AnswerScorer())
    shown, _ = env.reset(seed=1, options={"problem": problem})
    asked = [agent for agent in env.possible_agents if shown[agent]["active"]]
    assert asked
    assert all("Answer: " in shown[agent]["text"] for agent in asked)
    infos: dict[str, Any] = {}
    while env.agents:
        *_, infos = env.step(dict.fromkeys(asked, "Think.\nAnswer: 2"))
    assert all(infos[agent]["correct"] for agent in asked)


def test_an_answer_in_a_thought_that_the_template_opened_ends_no_path(problem: Problem) -> None:
    """Models that always think are interrupted in their thought, and go on after the summaries."""

    class Thinking(BytesCodec):
        def open(self, message: str) -> list[int]:
            return super().open(f"{message}<think>\n")

    codecs = {"policy": Thinking()}
    settings = LeapSettings(block_tokens=60, summary_tokens=40, max_new_tokens=400, pauses=1)
    env = TokenView(LeapEnv(settings), codecs)
    env.reset(seed=0, options={"problem": problem})
    turns = ("is it Answer: 2? ", "two</summarize>", "no: 3 </think>\nAnswer: 3")
    infos: Any = {}
    for turn in turns:
        assert env.agents
        action = np.array([*turn.encode(), END], dtype=np.int64)
        *_, infos = env.step(dict.fromkeys(env.agents, action))
    assert not env.agents
    assert [info["answer"] for info in infos.values()] == ["3"] * 4
    assert next(iter(infos.values()))["episode"]["pauses"] == 1
