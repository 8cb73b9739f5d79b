"""Responses: stored as JSON lines, read back as arrays.

A store has one JSON line per response, appended on arrival. Its first line records what was
sampled from which policies and how; this holds for all lines after it. A killed process leaves at
most an incomplete last line, which the next append cuts off.
"""

# Q questions, N samples of each; NaN marks a sample that does not exist

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coterie.datatypes import Problem, UserError, role_of
from coterie.evaluation.metrics.means import Floats, mean_present, ratio
from coterie.rewards.grading.answers.votes import vote
from coterie.training.run.durable_files import make_folder, sync

Record = dict[str, Any]
"""``problem``, ``sample``, ``correct``, ``answer``, ``confidence``, ``text``, ``used`` (policy ->
prompt and sampled tokens), ``seconds`` and the extra values of the lineup."""


@dataclass(frozen=True)
class Completions:
    """The stored completions of one lineup on one set of problems."""

    path: Path
    identity: Mapping[str, Any]
    """All settings that determine the response to a given problem, as JSON data."""

    def read(self) -> dict[tuple[str, int], Record]:
        """(problem, sample) -> its record; the first of duplicates counts.

        Raises:
            UserError: the file was sampled with other settings, or is damaged.
        """
        lines = self._whole_lines()
        if not lines:
            return {}
        records: dict[tuple[str, int], Record] = {}
        try:
            self._check(json.loads(lines[0])["identity"])
            for line in lines[1:]:
                record = json.loads(line)
                records.setdefault((record["problem"], int(record["sample"])), record)
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{self.path} is damaged; delete it to sample again") from None
        return records

    def append(self, records: Iterable[Record]) -> None:
        """Append records after the last complete line and sync them to disk."""
        make_folder(self.path.parent)
        whole = sum(len(line) + 1 for line in self._whole_lines())
        added = list(records) if whole else [{"identity": dict(self.identity)}, *records]
        # json, not orjson: model output may contain lone surrogates.
        text = "".join(json.dumps(record) + "\n" for record in added)
        with self.path.open("ab") as file:
            if file.tell() > whole:
                os.truncate(self.path, whole)
            file.write(text.encode("ascii"))
        # Sync the folder too: the entry of a new file may not be on disk yet.
        sync(self.path, self.path.parent)

    def _whole_lines(self) -> list[bytes]:
        content = self.path.read_bytes() if self.path.is_file() else b""
        return content.split(b"\n")[:-1]

    def _check(self, stored: Mapping[str, Any]) -> None:
        wanted = json.loads(json.dumps(dict(self.identity)))
        if differing := sorted(
            key for key in {*stored, *wanted} if stored.get(key) != wanted.get(key)
        ):
            raise UserError(
                f"{self.path} holds completions of other {', '.join(differing)}; name another "
                "folder with --out, or delete that file"
            )


# Policy -> (Q, 2) prompt and sampled tokens
Used = Mapping[str, Floats]

_NOT_MEASURED = {
    *("problem", "sample", "answer", "text", "used", "tokens", "turns"),
    *("earned", "scored", "outcome"),
}


@dataclass(frozen=True)
class Responses:
    """The responses of one lineup to one set of problems."""

    correct_QN: Floats
    confidence_QN: Floats
    """(Q, N) stated confidences; NaN also if none was stated."""
    votes: Sequence[Sequence[str | None]]
    """(Q, N) answers in normal form; None if there is no answer."""
    seconds_QN: Floats
    used_QN2: Mapping[str, Floats]
    """Policy -> (Q, N, 2) prompt and sampled tokens."""
    measured: Mapping[str, Floats] = field(default_factory=dict)
    """Name -> (Q, N) other measured values."""
    records: Sequence[Sequence[Mapping[str, Any] | None]] = ()
    """(Q, N) stored records."""

    @property
    def samples(self) -> int:
        """Number of responses per question, N."""
        return self.correct_QN.shape[1]

    @property
    def has_answers(self) -> bool:
        """Whether records contain answers that can be compared; those of a team may not."""
        return not self.records or any("answer" in r for row in self.records for r in row if r)

    def used_by(self, count: int) -> Used:
        """Policy -> (Q, 2) mean tokens of ``count`` responses."""
        return {name: count * mean_present(u, axis=1) for name, u in self.used_QN2.items()}

    def sampled_tokens(self) -> float:
        """Mean number of sampled tokens per response."""
        return float(sum(mean_present(used[..., 1]) for used in self.used_QN2.values()))

    def slowest_Q(self, count: int) -> Floats:
        """(Q,) seconds of the slowest of ``count`` responses, which are sampled in parallel."""
        seconds_QN = self.seconds_QN[:, :count]
        missing = np.isnan(seconds_QN)
        slowest_Q = np.where(missing, -np.inf, seconds_QN).max(axis=1)
        return np.where(missing.all(axis=1), np.nan, slowest_Q)

    def agreement_QN(self) -> Floats:
        """(Q, N) share of the question's other samples with the same answer; NaN without an answer
        or without other samples."""
        has_answer = np.array([[v is not None for v in row] for row in self.votes], dtype=bool)
        same_QN = np.array(
            [[sum(v == w for w in row) - 1 for v in row] for row in self.votes], dtype=np.float64
        )
        others_Q = (~np.isnan(self.correct_QN)).sum(axis=1, keepdims=True) - 1
        shares_QN = ratio(same_QN, np.maximum(others_Q, 0))
        return np.where(has_answer.reshape(shares_QN.shape), shares_QN, np.nan)


def responses(
    records: Mapping[tuple[str, int], Mapping[str, Any]],
    problems: Sequence[Problem],
    samples: int,
    policies: Sequence[str],
) -> Responses:
    """The stored records as arrays.

    Args:
        records: (problem, sample) -> record.
        problems: the rows, Q.
        samples: samples of each problem, N; a missing one is NaN.
        policies: policies whose tokens are counted.
    """
    rows = [[records.get((problem.id, n)) for n in range(samples)] for problem in problems]

    def table(key: str) -> Floats:
        values = [[None if r is None else r.get(key) for r in row] for row in rows]
        return np.array(values, dtype=np.float64).reshape(len(problems), samples)

    def used(name: str) -> Floats:
        missing = [np.nan, np.nan]
        values = [[missing if r is None else r["used"].get(name, [0, 0]) for r in w] for w in rows]
        return np.array(values, dtype=np.float64).reshape(len(problems), samples, 2)

    first: Mapping[str, Any] = next((r for row in rows for r in row if r is not None), {})
    tokens = {name: used(name) for name in policies}
    return Responses(
        table("correct"),
        table("confidence"),
        [
            [None if r is None else vote(r.get("answer"), p.kind, p.choices) for r in row]
            for p, row in zip(problems, rows)
        ],
        table("seconds"),
        {name: used_QN2 for name, used_QN2 in tokens.items() if np.nansum(used_QN2) > 0},
        {name: table(name) for name in first if name not in _NOT_MEASURED},
        rows,
    )


def score_team(record: Mapping[str, Any], role: str, title: str) -> float:
    """Whether ``role``'s answer in a team's episode is right; without a role, the mean reward over
    roles (:func:`mean_reward`).

    Args:
        record: record of one episode.
        role: role whose answer counts; empty: the reward counts.
        title: prefix of the message.

    Raises:
        UserError: nothing says whether the answer is right, or the game has wins and losses.
    """
    if role and record["correct"] is None:
        raise UserError(
            f"{title}: nothing there says whether {role} is right; without --role the team's "
            "reward counts"
        )
    if record["outcome"] and not role:
        raise UserError(
            f"{title}: it ends in wins and losses; name its players with --cross-play A=RUN B=RUN"
        )
    return record["correct"] if role else mean_reward(record)


def mean_reward(record: Mapping[str, Any]) -> float:
    """Mean over roles of the mean reward of each role's agents.

    Only the agents in ``scored`` count. If there are none, as in records from before 30 November
    2026, all agents count.
    """
    by_role: dict[str, list[float]] = {}
    for agent in record.get("scored") or record["earned"]:
        by_role.setdefault(role_of(agent), []).append(record["earned"][agent])
    return float(np.mean([np.mean(rewards) for rewards in by_role.values()]))


def pool(parts: Sequence[Responses]) -> Responses:
    """Concatenate the responses to several sets."""
    if len(parts) == 1:
        return parts[0]

    def joined(by_part: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
        shapes = {name: table.shape[1:] for tables in by_part for name, table in tables.items()}
        # A policy costs nothing on questions that it did not answer.
        return {
            name: np.concatenate(
                [
                    tables.get(name, np.zeros((len(part.votes), *shape)))
                    for part, tables in zip(parts, by_part)
                ]
            )
            for name, shape in shapes.items()
        }

    return Responses(
        np.concatenate([part.correct_QN for part in parts]),
        np.concatenate([part.confidence_QN for part in parts]),
        [row for part in parts for row in part.votes],
        np.concatenate([part.seconds_QN for part in parts]),
        joined([part.used_QN2 for part in parts]),
        joined([part.measured for part in parts]),
        [row for part in parts for row in part.records],
    )
