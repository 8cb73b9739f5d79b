"""Parameters after the question mark of a name."""

import pytest

from coterie.datatypes import UserError
from coterie.extras.games.gymnasium_game import GymnasiumGame
from coterie.extras.games.options import read_parameters


def taker(truth: bool = True, count: int = 3, share: float = 0.5, word: str = "a", free=None,
          bound=5, maybe: int | None = None, late: "float | None" = None): ...  # fmt: skip


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("truth", "False", False),
        ("truth", "NO", False),
        ("truth", "0", False),
        ("truth", "yes", True),
        ("count", "4", 4),
        ("share", "1", 1),
        ("word", "8", "8"),
        ("free", "[1, 2]", [1, 2]),
        ("free", "TRUE", True),
        ("free", "none", None),
        ("free", "8x8", "8x8"),
        ("bound", "0.5", 0.5),  # a whole number as a default, and no annotation
        ("maybe", "None", None),
        ("maybe", "7", 7),
        ("late", "0.25", 0.25),
    ],
)
def test_values_are_read_as_the_parameters_type(key: str, text: str, value: object) -> None:
    read = read_parameters({key: text}, taker, title="env x")[key]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("truth", "maybe", "truth is 'maybe'; it must be true or false."),
        ("count", "2.5", "count is '2.5'; it must be a whole number."),
        ("share", "much", "share is 'much'; it must be a number."),
        ("late", "x", "late is 'x'; it must be a number."),
        ("conut", "3", "has no parameter 'conut'; did you mean 'count'? known: bound, count, "),
    ],
)
def test_an_invalid_parameter_is_refused(key: str, text: str, sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        read_parameters({key: text}, taker, title="env x")
    assert sentence in str(refused.value)


@pytest.mark.parametrize(("text", "slips"), [("no", False), ("TRUE", True)])
def test_a_lake_that_does_not_slip(text: str, slips: bool) -> None:
    game = GymnasiumGame("x", "FrozenLake-v1", {"is_slippery": text, "max_episode_steps": "9"})
    # Where it slips, a step goes one of three ways: to the left or the right as well.
    assert len(game.env.unwrapped.P[0][1]) == (3 if slips else 1)
    assert game.env.spec.max_episode_steps == 9
