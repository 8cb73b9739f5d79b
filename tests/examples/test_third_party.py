import ast
from pathlib import Path
from typing import Any

import pytest

from coterie import envs

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "third_party" / "nim_in_words.py"

pytestmark = pytest.mark.usefixtures("installed")


def texts(observations: Any) -> dict[str, str]:
    return {agent: shown["text"] for agent, shown in observations.items() if shown["active"]}


def test_it_imports_nothing_of_ours() -> None:
    tree = ast.parse(SOURCE.read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    assert imported == {"re", "string", "numpy", "gymnasium", "pettingzoo"}


def test_a_game_through_the_adapter() -> None:
    env = envs.make("nim", view="text")
    observations, infos = env.reset(seed=1)
    sticks = int(texts(observations)["player_0"].split()[0])
    assert (infos["player_0"]["max_new_tokens"], infos["player_0"]["stop"]) == (8, ["\n"])
    turn, rewards = 0, {}
    while env.agents:
        me = f"player_{turn % 2}"
        assert texts(observations) == {me: f"{sticks} sticks are left. Take 1, 2 or 3:\n"}
        take = min(3, sticks)
        observations, rewards, *_ = env.step({me: f"I take {take}."})
        sticks, turn = sticks - take, turn + 1
    winner = f"player_{(turn - 1) % 2}"
    assert rewards == {agent: float(agent == winner) for agent in ("player_0", "player_1")}


@pytest.mark.parametrize("move", ["none", "4", "0", ""])
def test_an_illegal_move_loses(move: str) -> None:
    env = envs.make("nim", view="text")
    env.reset(seed=1)
    _, rewards, ended, _, _ = env.step({"player_0": move})
    assert rewards == {"player_0": 0.0, "player_1": 1.0}
    assert all(ended.values())
