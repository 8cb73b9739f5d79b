"""Names of games: what names nothing is refused with the way out, and what is named keeps the
contract of environments."""

import importlib.util
from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import UserError

# Chess and cards come with packages of their own, some of which warn when they are imported.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
MODES = "render_mode is 'hologram'; it must be"


def need(name: str) -> None:
    """Skip where the package of the name is not installed."""
    kind = name.partition(":")[0]
    if kind in ("pettingzoo", "textarena"):
        module = {"pettingzoo": "pygame"}.get(kind, kind)
        extra = {"pettingzoo": "games"}.get(kind, kind)
        pytest.importorskip(module, reason=f"pip install -e '.[{extra}]'")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gymnasium:FrozenLak-v1", "no such environment; did you mean 'FrozenLake-v1'"),
        ("gymnasium:Pendulum-v1", r"acts in Box\(.*\); in text an environment needs discrete"),
        ("gymnasium:FrozenLake-v1?size=3", "has no parameter 'size'"),
        ("gymnasium:FrozenLake-v1?slippery=no", r"did you mean 'is_slippery'\?"),
        ("gymnasium:FrozenLake-v1?is_slippery=maybe", "is_slippery is 'maybe'; it must be true"),
        (
            "gymnasium:FrozenLake-v1?render_mode=hologram",
            f"{MODES} human, ansi, rgb_array or none.",
        ),
        ("pettingzoo:", "say which one after the colon, pettingzoo:ID"),
        ("pettingzoo:classic/tictacto_v3", "no such game; did you mean 'classic/tictactoe-v3'"),
        ("pettingzoo:classic/rps_v2?num_actions=4", "cannot be made: AssertionError"),
        ("pettingzoo:classic/rps_v2?colour=4", "has no parameter 'colour'"),
        ("pettingzoo:classic/rps_v2?max_cycles", "write options as NAME=VALUE"),
        (
            "pettingzoo:classic/tictactoe_v3?render_mode=hologram",
            f"{MODES} human, rgb_array or none.",
        ),
        ("textarena:TicTacTo-v0", "no such game; did you mean 'TicTacToe-v0"),
    ],
)
def test_unknown_names_are_refused(name: str, sentence: str) -> None:
    need(name)
    for call in (envs.make, envs.spec):
        with pytest.raises(UserError, match=sentence):
            call(name)


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("pettingzoo:classic/go_v5", "games"),
        ("textarena:Nim-v0", "textarena"),
        ("verifiers:gsm8k", "verifiers"),
    ],
)
def test_a_package_that_is_not_installed(
    name: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=rf'pip install -e "\.\[{extra}\]"'):
        envs.make(name)


@pytest.mark.parametrize("view", ["token", "text"])
@pytest.mark.parametrize(
    ("name", "varied"),
    [
        ("gymnasium:Blackjack-v1", True),
        ("pettingzoo:classic/tictactoe_v3", False),
        ("pettingzoo:classic/hanabi_v5", True),
        ("textarena:KuhnPoker-v0-train", True),
        ("textarena:GuessTheNumber-v0", False),
    ],
)
def test_the_contract(name: str, varied: bool, view: Any) -> None:
    need(name)
    envs.check_env(envs.make(name, view=view), varied=varied)
