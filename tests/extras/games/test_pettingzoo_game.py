"""PettingZoo's own games, told in digits: positions, moves and results by hand."""

from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import UserError
from coterie.extras.games.game import GameSettings

pytest.importorskip("pygame", reason="pip install -e '.[games]'")

TICTACTOE = "pettingzoo:classic/tictactoe_v3"
# Chess and cards come with packages of their own, some of which warn when they are imported.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_a_game_of_tic_tac_toe(play: Any) -> None:
    # 0 | 1 | 2      X takes 0, 1 and 2 in its three moves; O takes 4 and 8.
    # 3 | 4 | 5
    # 6 | 7 | 8
    shown, rewards, infos = play(TICTACTOE, ["0", " 4", "1 =", "Move 8", "2"])
    assert shown[0] == "0 0 0\n0 0 0\n0 0 0\nMoves: 0 1 2 3 4 5 6 7 8 ="
    # O's own stones are 1 as well.
    assert shown[3] == "2 2 0\n0 1 0\n0 0 0\nMoves: 2 3 5 6 7 8 ="
    assert shown[4] == "1 1 0\n0 2 0\n0 0 2\nMoves: 2 3 5 6 7 ="
    assert rewards == {"player_1_0": 1.0, "player_2_0": -1.0}
    won, lost = infos["player_1_0"], infos["player_2_0"]
    assert won["reward_terms"] == {"game": 1.0}
    assert (won["outcome"], won["won"], won["drawn"], won["lost"]) == ("win", 1.0, 0.0, 0.0)
    assert (lost["outcome"], lost["won"], lost["lost"]) == ("loss", 0.0, 1.0)
    assert (won["moves"], lost["moves"], won["illegal"]) == (3, 2, 0.0)


def test_a_draw(play: Any) -> None:
    # X O X / X O O / O X X
    _, rewards, infos = play(TICTACTOE, ["0", "1", "2", "4", "3", "5", "7", "6", "8"])
    assert set(rewards.values()) == {0.0}
    assert {info["outcome"] for info in infos.values()} == {"draw"}


@pytest.mark.parametrize("move", ["0", "9", "", "no number"])
def test_an_illegal_move_has_the_consequence_of_the_package(play: Any, move: str) -> None:
    _, rewards, infos = play(TICTACTOE, ["0", move])
    assert rewards == {"player_1_0": 0.0, "player_2_0": -1.0}
    assert (infos["player_1_0"]["outcome"], infos["player_2_0"]["outcome"]) == ("win", "loss")
    assert (infos["player_1_0"]["illegal"], infos["player_2_0"]["illegal"]) == (0.0, 1.0)


def test_rock_paper_scissors(play: Any) -> None:
    # Nobody sees the other's choice of the same round. 1 (paper) beats 0 (rock).
    name = "pettingzoo:classic/rps_v2?max_cycles=2"
    shown, rewards, _ = play(name, ["0", "1", "0", "0"])
    seen = [text.splitlines()[0] for text in shown]
    assert seen == ["Seen: 3", "Seen: 3", "Seen: 1", "Seen: 0"]
    assert rewards == {"player_0_0": -1.0, "player_1_0": 1.0}
    # Every move of the space is legal there, so the package has no word on what is none.
    _, rewards, infos = play(name, ["0", "1", "7"])
    assert rewards == {"player_0_0": -2.0, "player_1_0": 1.0}
    assert infos["player_0_0"]["illegal"] == 1.0


def test_connect_four_is_shown_from_above(play: Any) -> None:
    shown, _, infos = play("pettingzoo:classic/connect_four_v3", list("3434343"))
    assert shown[2].splitlines()[-2:] == ["0 0 0 1 2 0 0", "Moves: 0 1 2 3 4 5 6 ="]
    assert infos["player_0_0"]["outcome"] == "win"


def test_hanabi_hides_one_s_own_hand_and_has_no_winner(play: Any) -> None:
    name = "pettingzoo:classic/hanabi_v5?colors=2&ranks=2&hand_size=2&max_life_tokens=1"
    # Nothing can be thrown away while all hints are left.
    shown, rewards, infos = play(name, ["0"], seed=1)
    head, own = shown[0].split("Cur player\n")
    assert head.startswith("Life tokens: 1\nInfo tokens: 8")
    assert own.startswith("XX || XX|RY12\nXX || XX|RY12\n-----\nR1 ")
    assert "\n2 (Play 0)\n" in shown[0]
    assert shown[0].splitlines()[-1] == "Moves: 2 3 4 5 6 ="
    assert rewards == {"player_0_0": -1.0, "player_1_0": 0.0}
    assert "outcome" not in infos["player_0_0"]


def test_other_games_list_the_entries_that_are_not_zero(play: Any) -> None:
    shown, _, _ = play("pettingzoo:classic/leduc_holdem_v4", ["3"], seed=0)
    assert shown[0].startswith("Seen: ")


def test_players_are_roles_or_one_role_plays_itself(play: Any) -> None:
    assert envs.spec(TICTACTOE).roles == ("player_1", "player_2")
    _, rewards, _ = play(TICTACTOE, ["0", "0"], roles=("player",))
    assert rewards == {"player_0": 0.0, "player_1": -1.0}
    with pytest.raises(UserError, match="3 roles; name 2, one for each player, or a single one"):
        envs.make(TICTACTOE, roles=("a", "b", "c"))


def test_seats_change_with_the_seed_where_that_is_wanted() -> None:
    env: Any = envs.make(TICTACTOE, view="text", settings=GameSettings(rotate=True))
    first = []
    for seed in range(12):
        observations, _ = env.reset(seed=seed)
        first += [agent for agent in env.agents if observations[agent]["active"]]
    assert set(first) == {"player_1_0", "player_2_0"}
    assert env.reset(seed=3)[0][first[3]]["active"]


def test_a_long_game_is_cut_off_as_it_stands() -> None:
    env: Any = envs.make(TICTACTOE, view="text", settings=GameSettings(max_moves=1))
    env.reset(seed=0)
    _, rewards, terminations, truncations, infos = env.step({"player_1_0": "4"})
    assert not any(terminations.values())
    assert all(truncations.values())
    assert set(rewards.values()) == {0.0}
    assert infos["player_1_0"]["outcome"] == "draw"


def test_invalid_settings_are_refused() -> None:
    for settings in ({"max_new_tokens": 0}, {"max_moves": 0}):
        with pytest.raises(UserError, match="is 0; it must be at least 1"):
            GameSettings(**settings)
