"""Games by name on the command line: a frozen opponent, and one policy that plays itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.train import main
from coterie.training.config.preflight import preflight

pytest.importorskip("pygame", reason="pip install -e '.[games]'")
GAME = ("--env", "pettingzoo:classic/tictactoe_v3")
SMALL = (
    *("--steps", "2", "--rollout.problems-per-step", "2", "--rollout.replicas", "4"),
    *("--problems.held-out", "4", "--eval.resamples", "10", "--seed", "1"),
)


def trained(path: Path, *flags: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The summary, and every stored episode."""
    assert main([*GAME, *flags, *SMALL, "--run-dir", str(path)]) == 0
    episodes = (path / "episodes.jsonl").read_text().splitlines()
    return json.loads((path / "summary.json").read_text()), [json.loads(line) for line in episodes]


def test_a_frozen_opponent(tmp_path: Path) -> None:
    opponent = ("--train-role", "player_1", "--agents.player_2.model", "scripted:random")
    summary, episodes = trained(tmp_path / "run", *opponent)
    assert {"measured/player_1/won", "measured/player_1/illegal"} <= summary["after"].keys()
    assert (tmp_path / "run/final/player_1").is_dir()
    assert not (tmp_path / "run/final/player_2").exists()
    # Each position is a context of its own, and whoever made the first move was asked.
    rows = [row for row in episodes[0]["trajectories"] if row["agent"] == "player_1_0"]
    assert {row["info"]["outcome"] for row in rows} <= {"win", "draw", "loss"}


def test_self_play_trains_one_policy(tmp_path: Path) -> None:
    summary, _ = trained(tmp_path / "run", "--roles", "player")
    assert [folder.name for folder in (tmp_path / "run/final").iterdir()] == ["player"]
    assert "measured/player/lost" in summary["after"]


def test_a_wrong_number_of_roles_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [f"--agents.{role}.model=tiny:dora" for role in "abc"]
    assert main([*GAME, "--roles", *"abc", *models, "--run-dir", str(tmp_path / "run")]) == 2
    assert "3 roles; name 2, one for each player" in capsys.readouterr().err


def test_a_role_that_is_asked_later_has_nothing_to_imitate() -> None:
    models = ("--agents.player_1.model", "tiny:alice", "--agents.player_2.model", "tiny:alice")
    with pytest.raises(UserError, match="does not ask player_1 the problem directly"):
        preflight(parse([*GAME, "--warmup.steps", "2", *models]))
