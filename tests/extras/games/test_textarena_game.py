"""TextArena's games in their own words: rules, moves, mistakes and chance."""

import random
from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import UserError

pytest.importorskip("textarena", reason="pip install -e '.[textarena]'")
TICTACTOE = "textarena:TicTacToe-v0-train"
DICE = "textarena:PigDice-v0-short-train"


def settings(**chosen: Any) -> Any:
    return envs.spec(TICTACTOE).settings(**chosen)  # type: ignore[misc]


def test_a_game_in_the_package_s_own_words(play: Any) -> None:
    # A bare word is put in brackets; a longer answer is the package's to read.
    shown, rewards, infos = play(TICTACTOE, ["4", "I take [0].", "[3]", "1", "5"])
    assert shown[0].startswith("You are Player 0 in Tic Tac Toe.")
    assert shown[0].endswith("\nMoves: [0] [1] [2] [3] [4] [5] [6] [7] [8] =")
    assert shown[4].endswith("\nMoves: [2] [5] [6] [7] [8] =")
    assert rewards == {"player_0_0": 1.0, "player_1_0": -1.0}
    assert infos["player_0_0"]["outcome"] == "win"
    assert (infos["player_0_0"]["moves"], infos["player_0_0"]["illegal"]) == (3, 0.0)


def test_a_menu_and_positions_without_rules(play: Any) -> None:
    chosen = settings(menu=True, rules=False)
    shown, _, _ = play(DICE, ["0"], whole=False, settings=chosen)
    assert shown[0].startswith("Current Total Scores: Player 0: '0'; Player 1: '0'\n")
    assert shown[0].endswith("\n0 [roll]\n1 [hold]\nMoves: 0 1 =")


def test_the_second_mistake_in_a_row_loses(play: Any) -> None:
    shown, rewards, infos = play("textarena:TicTacToe-v0", ["4", "4", "0", "4", "9"])
    # O's mistake is told and forgotten; X makes two.
    assert "attempted an invalid move" in shown[2]
    assert rewards == {"player_0_0": -1.0, "player_1_0": 1.0}
    assert (infos["player_0_0"]["illegal"], infos["player_1_0"]["illegal"]) == (1.0, 1.0)
    assert (infos["player_0_0"]["outcome"], infos["player_1_0"]["outcome"]) == ("loss", "win")


def test_chance_is_each_game_s_own(play: Any) -> None:
    """The package draws from Python's global stream, and here it is left alone."""
    moves = ["[roll]", "[roll]", "[hold]"] * 8
    alone = play(DICE, moves, seed=5, whole=False)[0]
    random.seed(1)
    before = random.getstate()
    game, other_game = envs.make(DICE, view="text"), envs.make(DICE, view="text")
    shown, others = game.reset(seed=5)[0], other_game.reset(seed=6)[0]
    texts = []
    for move in moves:
        if not game.agents:
            break
        (agent,) = (agent for agent in game.agents if shown[agent]["active"])
        texts.append(shown[agent]["text"])
        shown = game.step({agent: move})[0]
        if other_game.agents:
            others = other_game.step({a: move for a in other_game.agents if others[a]["active"]})[0]
    assert texts == alone
    assert random.getstate() == before


def test_how_many_play() -> None:
    with pytest.raises(UserError, match="cannot be played by 5; say how many with"):
        envs.make(TICTACTOE, settings=settings(players=5))
    assert envs.spec("textarena:GuessTheNumber-v0").roles == ("player_0",)
