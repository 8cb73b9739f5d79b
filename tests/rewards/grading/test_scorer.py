"""The scorer remembers, batches, and starts nothing that is not needed."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from coterie.datatypes import Problem, Scorer, ScoreRequests
from coterie.rewards.grading.answers.equality import Pair
from coterie.rewards.grading.answers.grammar import read
from coterie.rewards.grading.scorer import AnswerScorer

GOLD = Problem(id="p", question="", gold="2+2x")
NUMBER = Problem(id="n", question="", gold="4", kind="number")


class CountingEncoder:
    """Length and first letter, and how often it was asked."""

    dimensions = 2

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.batches.append(list(texts))
        angles_n = np.array([len(text) for text in texts])
        return np.stack([np.cos(angles_n), np.sin(angles_n)], axis=1).astype(np.float32)


def test_prefetch_computes_everything_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = CountingEncoder()
    scorer: Scorer = AnswerScorer(encoder=encoder)
    assert isinstance(scorer, AnswerScorer)
    batches: list[list[Pair]] = []

    def run(pairs: Sequence[Pair]) -> list[str]:
        if pairs:
            batches.append(list(pairs))
        return ["equal"] * len(pairs)

    monkeypatch.setattr(scorer._checker.pool, "run", run)
    right = r"\boxed{2(x+1)}"
    requests = [
        ScoreRequests(checks=((right, GOLD), (r"\boxed{4}", NUMBER)), embeddings=("a",)),
        ScoreRequests(checks=((r"\boxed{2+x}", GOLD), (right, GOLD))),
        ScoreRequests(embeddings=("bb", "a")),
    ]
    scorer.prefetch(requests)
    gold = read("2+2x")
    assert batches == [[(gold, read("2(x+1)")), (gold, read("2+x"))]]
    assert encoder.batches == [["a", "bb"]]
    assert scorer.check(right, GOLD).method == "algebra"
    assert scorer.check(r"\boxed{4}", NUMBER).correct
    vectors_nD = scorer.embed(["bb", "a", "bb"])
    assert len(batches) == 1
    assert len(encoder.batches) == 1
    np.testing.assert_array_equal(vectors_nD[0], vectors_nD[2])
    np.testing.assert_allclose(vectors_nD[:, 0], np.cos([2, 1, 2]), rtol=1e-6)
    # Three questions, each counted once.
    assert scorer.stats() == {"checks/algebra": 2, "checks/string": 1, "timeouts": 0}


def test_step_without_prefetch_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [r"\boxed{4}", "#### 4.0", "#### 5", "", "Final answer: x"]
    batched, single = AnswerScorer(), AnswerScorer()
    batched.prefetch([ScoreRequests(tuple((text, NUMBER) for text in texts), tuple(texts))])
    assert [batched.check(text, NUMBER) for text in texts] == [
        single.check(text, NUMBER) for text in texts
    ]
    np.testing.assert_array_equal(
        batched.embed(texts), np.concatenate([single.embed([text]) for text in texts])
    )
    assert batched.embed([]).shape == (0, 512)
    assert single.stats() == batched.stats()


def test_memory_is_bounded_and_forgets_the_oldest() -> None:
    encoder = CountingEncoder()
    scorer = AnswerScorer(encoder=encoder, remember_verdicts=2, remember_vectors=2)
    for text in ("a", "bb", "a", "ccc", "a", "bb"):
        scorer.embed([text])
    # "a" was used last when "ccc" came, so "bb" had to go.
    assert encoder.batches == [["a"], ["bb"], ["ccc"], ["bb"]]
    # One batch may be larger than the memory.
    assert scorer.embed(["d", "ee", "fff", "gggg"]).shape == (4, 2)
    checks = tuple((f"#### {i}", NUMBER) for i in range(6))
    scorer.prefetch([ScoreRequests(checks=checks)])
    assert [scorer.check(*check).correct for check in checks] == [i == 4 for i in range(6)]
    assert len(scorer._verdicts._values) == 2


def test_a_verdict_depends_on_the_whole_problem() -> None:
    scorer = AnswerScorer()
    percent = Problem(id="p", question="", gold="0.5", kind="number", percent=True)
    plain = Problem(id="p", question="", gold="0.5", kind="number")
    assert scorer.check(r"\boxed{50\%}", percent).correct
    assert not scorer.check(r"\boxed{50\%}", plain).correct
    near = replace(plain, tolerance=0.1)
    assert not scorer.check(r"\boxed{0.6}", plain).correct
    assert scorer.check(r"\boxed{0.6}", near).correct


_CHEAP = """
import sys
from coterie.rewards.grading.scorer import AnswerScorer
from coterie.datatypes import Problem, ScoreRequests
scorer = AnswerScorer()
number = Problem(id="n", question="", gold="4", kind="number")
math = Problem(id="m", question="", gold="4")
checks = tuple((f"Final answer: {a}", p) for a in ("4", "5", "1/2") for p in (number, math))
scorer.prefetch([ScoreRequests(checks=checks, embeddings=("some text",))])
heavy = {"mpmath", "sympy", "torch", "sentence_transformers", "transformers"}
print(sorted(heavy & set(sys.modules)), scorer._checker.pool.alive)
"""


def test_a_run_on_numbers_pays_for_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _CHEAP], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[] 0"
