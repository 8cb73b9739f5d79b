"""Stored episodes through a table and back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.datatypes import UserError
from coterie.training.run.episode_table import as_records, as_table, read
from coterie.training.session import Session


def test_there_and_back(opened: Callable[..., Session], train: Any, tmp_path: Path) -> None:
    session = opened("--steps", "1")
    train(session)
    lines = (session.run.path / "episodes.jsonl").read_text().splitlines()
    stored = [json.loads(line) for line in lines]
    table = read(session.run.path)
    assert len(table) == sum(len(episode["trajectories"]) for episode in stored)
    assert as_records(table) == stored
    assert any("token_bonus" in row for episode in stored for row in episode["trajectories"])
    # As a table of datasets', it can be filtered, stored and read.
    right = table.filter(lambda row: row["agent"] == "alice_0")
    assert {row["agent"] for episode in as_records(right) for row in episode["trajectories"]} == {
        "alice_0"
    }
    table.to_parquet(tmp_path / "episodes.parquet")
    assert as_records(type(table).from_parquet(str(tmp_path / "episodes.parquet"))) == stored
    game = [{**stored[0], "problem_shown": False}]
    assert as_records(as_table(game)) == game
    first, *others = stored[0]["trajectories"]
    paid = {**first, "untrained": [[2, 3]], "turn_rewards": [0.5, 0.0]}
    by_turns = [{**stored[0], "trajectories": [paid, *others]}]
    assert as_records(as_table(by_turns)) == by_turns


def test_nothing_stored(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="it was trained with --no-episodes-log"):
        read(tmp_path)
    assert len(as_table([])) == 0
