"""Games by name, played by hand."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import pytest

from coterie import envs


def _play(
    game: Any, answers: Iterable[str], seed: int = 0, *, whole: bool = True, **options: Any
) -> tuple[list[str], Any, Any]:
    env: Any = envs.make(game, view="text", **options) if isinstance(game, str) else game
    observations, infos = env.reset(seed=seed)
    left, shown, rewards = iter(answers), [], {}
    while asked := [agent for agent in env.agents if observations[agent]["active"]]:
        if not (actions := dict(zip(asked, islice(left, len(asked))))):
            break
        shown += [observations[agent]["text"] for agent in actions]
        assert all(infos[agent]["piece"] == "fresh" for agent in actions)
        observations, rewards, _, _, infos = env.step(actions)
    assert not whole or (not env.agents and next(left, None) is None)
    return shown, rewards, infos


@pytest.fixture
def play() -> Callable[..., Any]:
    """(a name or an environment, the answers in the order of the players, a seed) -> (what was
    shown for each answer, the last rewards, the last infos). The answers are all of the game,
    unless ``whole`` is false."""
    return _play
