"""The random player: every legal move, each as likely."""

from collections import Counter

import pytest

from coterie.datatypes import UserError
from coterie.experts.naming import read_player
from coterie.experts.scripted import random_move


def test_it_plays_the_moves_of_the_last_list() -> None:
    context = "Moves: 7 8 =\nand then\nMoves: 0 2 15 ="
    counts = Counter(random_move(context, seed) for seed in range(3000))
    # 3000 draws of three moves: 1000 each, within four standard deviations (26 each).
    assert set(counts) == {"0", "2", "15"}
    assert all(abs(count - 1000) < 104 for count in counts.values())
    assert random_move(context, 5) == random_move(context, 5)


def test_moves_of_several_words() -> None:
    words = {random_move("Moves: [roll twice] [hold] =", seed) for seed in range(50)}
    assert words == {"[roll twice]", "[hold]"}


def test_nothing_to_play() -> None:
    with pytest.raises(UserError, match="lists after 'Moves:', and here none are listed"):
        random_move("7 + 8 =", 0)
    assert read_player("scripted:random").kind == "random"  # type: ignore[union-attr]
