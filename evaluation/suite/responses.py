"""What agents answered, as arrays."""

# Q questions, N samples of each; NaN marks a sample that does not exist

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.metrics.present import Floats, mean_present, ratio
from rewards.answers.votes import vote
from vocabulary import Problem

# Agent -> (Q, 2) prompt and sampled tokens.
Used = Mapping[str, Floats]


@dataclass(frozen=True)
class Responses:
    """One agent's (or workflow's) completions on one set of problems."""

    correct_QN: Floats
    confidence_QN: Floats
    """NaN also where none was stated."""
    votes: Sequence[Sequence[str | None]]
    """(Q, N) answers in normal form; None where there is none."""
    seconds_QN: Floats
    used_QN2: Mapping[str, Floats]
    """Agent -> (Q, N, 2) prompt and sampled tokens."""

    @property
    def samples(self) -> int:
        return self.correct_QN.shape[1]

    def used_by(self, count: int) -> Used:
        """What ``count`` completions cost on average."""
        return {name: count * mean_present(u, axis=1) for name, u in self.used_QN2.items()}

    def sampled_tokens(self) -> float:
        """Tokens of one completion, on average."""
        return float(sum(mean_present(used[..., 1]) for used in self.used_QN2.values()))

    def slowest_Q(self, count: int) -> Floats:
        """(Q,) seconds of the slowest of ``count`` completions: they are drawn side by side."""
        seconds_QN = self.seconds_QN[:, :count]
        missing = np.isnan(seconds_QN)
        slowest_Q = np.where(missing, -np.inf, seconds_QN).max(axis=1)
        return np.where(missing.all(axis=1), np.nan, slowest_Q)

    def agreement_QN(self) -> Floats:
        """Share of the question's other samples that give the same answer; NaN without an answer,
        or without others."""
        given = np.array([[v is not None for v in row] for row in self.votes], dtype=bool)
        same_QN = np.array(
            [[sum(v == w for w in row) - 1 for v in row] for row in self.votes], dtype=np.float64
        )
        others_Q = (~np.isnan(self.correct_QN)).sum(axis=1, keepdims=True) - 1
        shares_QN = ratio(same_QN, np.maximum(others_Q, 0))
        return np.where(given.reshape(shares_QN.shape), shares_QN, np.nan)


def responses(
    records: Mapping[tuple[str, int], Mapping[str, Any]],
    problems: Sequence[Problem],
    samples: int,
    agents: Sequence[str],
) -> Responses:
    """The first ``samples`` records of each problem, as arrays."""
    rows = [[records.get((problem.id, n)) for n in range(samples)] for problem in problems]

    def table(key: str) -> Floats:
        values = [[np.nan if r is None or r[key] is None else r[key] for r in row] for row in rows]
        return np.array(values, dtype=np.float64).reshape(len(problems), samples)

    def used(name: str) -> Floats:
        missing = [np.nan, np.nan]
        values = [[missing if r is None else r["used"].get(name, [0, 0]) for r in w] for w in rows]
        return np.array(values, dtype=np.float64).reshape(len(problems), samples, 2)

    return Responses(
        table("correct"),
        table("confidence"),
        [
            [None if r is None else vote(r["answer"], p.kind, p.choices) for r in row]
            for p, row in zip(problems, rows)
        ],
        table("seconds"),
        {name: used(name) for name in agents if np.nansum(used(name)) > 0},
    )
