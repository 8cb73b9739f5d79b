"""The plainest environment: the contract, and one answer by hand."""

import pytest

from coterie import envs
from coterie.datatypes import Problem
from coterie.envs.solo import SoloSettings
from coterie.rewards.grading.scorer import AnswerScorer

PROBLEM = Problem("p", "What is {1} + 1?", "2", "number")


@pytest.mark.parametrize(
    ("text", "correct", "answer", "confidence"),
    [
        (r"So \boxed{2} \confidence{0.7}", True, "2", 0.7),
        (r"\boxed{3}", False, "3", None),
        ("", False, None, None),
        ("<html>" * 1000, False, None, None),
    ],
)
def test_one_answer(text: str, correct: bool, answer: str | None, confidence: float | None) -> None:
    env = envs.make("coterie.envs.solo:SoloEnv", view="text", scorer=AnswerScorer())
    observations, infos = env.reset(seed=0, options={"problem": PROBLEM, "mode": "eval"})
    assert observations["solver_0"]["text"].startswith("What is {1} + 1?\n\nPlease reason")
    assert infos["solver_0"]["max_new_tokens"] == 4096
    _, rewards, ended, _, infos = env.step({"solver_0": text})
    assert rewards == {"solver_0": float(correct)}
    assert ended == {"solver_0": True}
    info = infos["solver_0"]
    assert (info["correct"], info["answer"], info["confidence"]) == (correct, answer, confidence)


def test_nobody_answers() -> None:
    env = envs.make(
        "coterie.envs.solo:SoloEnv", view="text", settings=SoloSettings("Say {question}", 7)
    )
    _, infos = env.reset(seed=0, options={"problem": PROBLEM})
    assert infos["solver_0"]["max_new_tokens"] == 7
    _, rewards, _, _, infos = env.step({})
    assert rewards == {"solver_0": 0.0}
    assert infos["solver_0"]["failed"]
