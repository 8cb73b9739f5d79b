"""A scorer and problems small enough to follow by hand."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from coterie.datatypes import Problem, ScoreRequests, Verdict


class TagScorer:
    """The last ``<final_answer>`` or ``<result>`` is the answer, compared as a string; embeddings
    are one-hot by the first character, so texts are at distance 0 or 1. Counts what it is asked."""

    def __init__(self) -> None:
        self.checked: list[str] = []
        self.embedded: list[str] = []
        self.prefetched: list[ScoreRequests] = []

    def check(self, response: str, problem: Problem) -> Verdict:
        self.checked.append(response)
        matches = re.findall(r"<(?:final_answer|result)>([^<>]{0,50})</", response)
        answer = matches[-1].strip() if matches else None
        return Verdict(answer in problem.golds, answer, "string" if matches else "none")

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.embedded += texts
        vectors = np.zeros((len(texts), 128), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row, ord(text[0]) % 128 if text else 0] = 1
        return vectors

    def prefetch(self, requests: Sequence[ScoreRequests]) -> None:
        self.prefetched += requests


class Sums:
    """Problem i is ``i + 1 =``."""

    name = "sums"
    size = None
    fingerprint = "0" * 64

    def __getitem__(self, index: int) -> Problem:
        return Problem(id=f"sums:{index}", question=f"{index} + 1 =", gold=str(index + 1))


@pytest.fixture
def scorer() -> TagScorer:
    return TagScorer()


@pytest.fixture
def sums() -> Sums:
    return Sums()


@pytest.fixture
def problem() -> Problem:
    return Problem(id="q", question="7 + 8 - 3 =", gold="2", kind="number")
