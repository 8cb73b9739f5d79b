"""Stored episodes as a table of the ``datasets`` package, with a row for each trajectory.

Columns whose keys depend on the environment (reward terms, groups, measurements) are JSON text:
``json.loads(row["info"])``.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, List, Value

from coterie.datatypes import UserError

_EPISODE = {
    "step": Value("int64"),
    "problem": Value("string"),
    "gold": Value("string"),
    "kind": Value("string"),
    "seed": Value("int64"),
    "mode": Value("string"),
}
_ROW = {
    "agent": Value("string"),
    "status": Value("string"),
    "reward": Value("float64"),
    "advantage": Value("float64"),
    "loss_weight": Value("float64"),
    "weight_version": Value("int64"),
    "tokens": List(Value("int64")),
    "learned_after": List(Value("int64")),
    "turns": List(List(Value("int64"))),
    "finish": List(Value("string")),
    "logprobs": List(List(Value("float64"))),
    "texts": List(Value("string")),
}
# Keys that a row of the log may lack; such cells are null.
_OPTIONAL = {
    "reread_after": List(Value("int64")),
    "contrast_after": List(Value("int64")),
    "token_bonus": List(List(Value("float64"))),
    "untrained": List(List(Value("int64"))),
    "turn_rewards": List(Value("float64")),
}
_AS_JSON = ("reward_terms", "groups", "info")
_NUMBER, _EPISODE_INFO, _SHOWN = "episode", "episode_info", "problem_shown"
_FEATURES = Features(
    {
        _NUMBER: Value("int64"),
        **_EPISODE,
        _EPISODE_INFO: Value("string"),
        _SHOWN: Value("bool"),
        **_ROW,
        **_OPTIONAL,
        **dict.fromkeys(_AS_JSON, Value("string")),
    }
)


def read(run: Path) -> Dataset:
    """The training episodes of a run directory.

    Raises:
        UserError: it stored none.
    """
    path = run / "episodes.jsonl"
    if not path.is_file():
        raise UserError(f"{run} has no episodes.jsonl: it was trained with --no-episodes-log")
    with path.open(encoding="utf-8") as lines:
        return as_table(map(json.loads, lines))


def as_table(records: Iterable[Mapping[str, Any]]) -> Dataset:
    """A table of episodes.

    Args:
        records: lines of ``episodes.jsonl``
            (:func:`coterie.training.run.episode_records.episode_record`).
    """
    rows = [
        {
            _NUMBER: number,
            **{name: record[name] for name in _EPISODE},
            _EPISODE_INFO: json.dumps(record["info"]),
            _SHOWN: record.get(_SHOWN, True),
            **{name: row[name] for name in _ROW},
            **{name: row.get(name) for name in _OPTIONAL},
            **{name: json.dumps(row[name]) for name in _AS_JSON},
        }
        for number, record in enumerate(records)
        for row in record["trajectories"]
    ]
    columns = {name: [row[name] for row in rows] for name in _FEATURES}
    return Dataset.from_dict(columns, features=_FEATURES)


def as_records(table: Dataset) -> list[dict[str, Any]]:
    """The inverse of :func:`as_table`: one record for each episode that has a row in the table."""
    records: dict[int, dict[str, Any]] = {}
    for row in table:
        assert isinstance(row, dict)
        episode = {name: row[name] for name in _EPISODE}
        # As in the log, only a problem that is not shown has this key.
        episode |= {} if row[_SHOWN] else {_SHOWN: False}
        new = episode | {"info": json.loads(row[_EPISODE_INFO]), "trajectories": []}
        optional = {name: row[name] for name in _OPTIONAL if row[name] is not None}
        from_json = {name: json.loads(row[name]) for name in _AS_JSON}
        records.setdefault(row[_NUMBER], new)["trajectories"].append(
            {name: row[name] for name in _ROW} | optional | from_json
        )
    return list(records.values())
