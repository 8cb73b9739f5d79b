"""Gymnasium's environments of one player."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from coterie import envs
from coterie.extras.games.gymnasium_game import observation_text

LAKE = "gymnasium:FrozenLake-v1?is_slippery=False"


def test_the_frozen_lake(play: Any) -> None:
    # SFFF / FHFH / FFFH / HFFG, fields counted in reading order; 0 left, 1 down, 2 right.
    shown, rewards, infos = play(LAKE, ["1", "1", "2", "2", "1", "2"])
    assert [text.split("\n")[0] for text in shown] == ["0", "4", "8", "9", "10", "14"]
    assert shown[0] == "0\nMoves: 0 1 2 3 ="
    assert rewards == {"player_0": 1.0}
    assert infos["player_0"]["moves"] == 6
    assert "outcome" not in infos["player_0"]


def test_an_unknown_action_ends_the_episode(play: Any) -> None:
    _, rewards, infos = play(LAKE, ["1", "7"])
    assert rewards == {"player_0": -1.0}
    assert infos["player_0"]["illegal"] == 1.0


def test_a_mask_limits_the_moves(play: Any) -> None:
    shown, _, _ = play("gymnasium:Taxi-v4", ["9"])
    # Seed 0 sets the taxi down where walls leave it fewer than its six actions.
    moves = shown[0].splitlines()[-1].removeprefix("Moves: ").removesuffix(" =").split()
    env: Any = gymnasium.make("Taxi-v4")
    _, info = env.reset(seed=0)
    assert moves == [str(k) for k in range(6) if info["action_mask"][k]]
    assert len(moves) < 6


class Echo(gymnasium.Env[Any, Any]):
    """Says a word, and pays for hearing it again."""

    observation_space = spaces.Dict({"word": spaces.Text(9), "at": spaces.Box(0, 1, (2,))})
    action_space = spaces.Text(9)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return {"word": "lake", "at": [0.25, 1.0]}, {}

    def step(self, action: str) -> Any:
        return {"word": "", "at": [0, 0]}, float(action == "lake"), True, False, {}


def test_whole_numbers_are_shown_to_the_last_digit() -> None:
    assert observation_text(np.array([[1234, 1235], [7, -40000]])) == "1234 1235\n7 -40000"
    assert observation_text(np.array([True, False])) == "True False"
    assert observation_text((12345, 0.123456)) == "12345 0.123"


def test_actions_in_text(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        gymnasium.registry, "Echo-v0", gymnasium.envs.registration.EnvSpec("Echo-v0", Echo)
    )
    shown, rewards, _ = play("gymnasium:Echo-v0", ["lake"])
    assert shown == ["word: lake\nat: 0.25 1 ="]
    assert rewards == {"player_0": 1.0}


def test_the_report_of_a_game_that_is_the_same_every_time() -> None:
    env = envs.make(LAKE, view="text")
    with pytest.raises(AssertionError, match="8 seeds give the same episode"):
        envs.check_env(env)
    report = envs.check_env(env, varied=False)
    assert report.same_every_time
    # Letters end the episode with -1; legal moves end in a hole or are cut off.
    assert (report.signal, report.rewards) == (1.0, {"player": -0.5})
    assert "Every seed gives the same episode." in str(report)
