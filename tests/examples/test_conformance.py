"""PettingZoo's tests, TorchRL's and ours, on every example."""

from typing import Any

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from coterie import envs
from coterie.envs.check.__main__ import main as check

pytestmark = [
    pytest.mark.usefixtures("installed"),
    pytest.mark.filterwarnings(
        # PettingZoo's AEC test likes one of its own keys in observations, and boxes in spaces.
        "ignore:The observation space for the environment:UserWarning",
        "ignore:Observation space for each agent probably should be:UserWarning",
        "ignore:Action space for each agent probably should be:UserWarning",
        "ignore:Observation is not a NumPy array:UserWarning",
    ),
]

NAMES = ("examples.debate:SPEC", "examples.solver_verifier:SPEC", "nim")

each_example = pytest.mark.parametrize("name", NAMES)


@each_example
@pytest.mark.parametrize("view", ["token", "text", "padded"])
def test_the_tests_of_pettingzoo(name: str, view: Any) -> None:
    parallel_api_test(envs.make(name, view=view), num_cycles=20)
    parallel_seed_test(lambda: envs.make(name, view=view), num_cycles=20)


@pytest.mark.parametrize("name", NAMES[:2])
def test_the_tests_of_pettingzoo_in_turns(name: str) -> None:
    api_test(parallel_to_aec(envs.make(name)), num_cycles=20)


def test_the_plain_environment_is_one_of_pettingzoos() -> None:
    from nim_in_words import Nim  # pyright: ignore[reportMissingImports]

    api_test(Nim(), num_cycles=20)
    seed_test(Nim, num_cycles=20)


@each_example
def test_the_check_of_this_project(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert check([name]) == 0
    assert capsys.readouterr().out.startswith(f"{name} keeps the contract. Its roles: ")


def test_torchrl(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torchrl.envs")
    from examples.torchrl_rollout import main

    main(["examples.debate:SPEC"])
    # Two rounds and the judge.
    assert "judge (judge_0): tokens (3, 1, 256), reward" in capsys.readouterr().out
