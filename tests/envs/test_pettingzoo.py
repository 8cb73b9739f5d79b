"""PettingZoo's own tests, TorchRL's, and ours, on every view."""

from collections.abc import Callable
from typing import Any

import pettingzoo
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from coterie import envs
from coterie.envs.padded_view import PaddedView

pytestmark = pytest.mark.filterwarnings(
    # PettingZoo's AEC test likes one of its own keys in observations.
    "ignore:The observation space for the environment:UserWarning",
    "ignore:Observation space for each agent probably should be:UserWarning",
    "ignore:Action space for each agent probably should be:UserWarning",
    "ignore:Observation is not a NumPy array:UserWarning",
)

VIEWS = ("token", "text", "padded")
MakeView = Callable[..., Any]

each_env = pytest.mark.parametrize("name", ["core-teaching", "corea-deferral", "sd-e2"])


@pytest.fixture
def build(scorer: Any, sums: Any) -> MakeView:
    def make(view: str, name: str = "core-teaching") -> Any:
        return envs.make(name, view=view, scorer=scorer, source=sums)  # type: ignore[arg-type]

    return make


@each_env
@pytest.mark.parametrize("view", VIEWS)
def test_parallel_api(build: MakeView, view: str, name: str) -> None:
    parallel_api_test(build(view, name), num_cycles=20)


@each_env
@pytest.mark.parametrize("view", VIEWS)
def test_parallel_seeds(build: MakeView, view: str, name: str) -> None:
    parallel_seed_test(lambda: build(view, name), num_cycles=20)


@each_env
@pytest.mark.parametrize("view", VIEWS)
def test_aec_api(build: MakeView, view: str, name: str) -> None:
    api_test(parallel_to_aec(build(view, name)), num_cycles=20)


@each_env
@pytest.mark.parametrize("view", VIEWS)
def test_aec_seeds(build: MakeView, view: str, name: str) -> None:
    seed_test(lambda: parallel_to_aec(build(view, name)), num_cycles=20)


@each_env
@pytest.mark.parametrize("view", VIEWS)
def test_our_own(build: MakeView, view: str, name: str) -> None:
    # Confidences that nobody stated defer nothing in training.
    seldom = ["large"] if name == "corea-deferral" else []
    envs.check_env(build(view, name), unasked=seldom)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("core-teaching", "eval"),
        ("core-teaching", "probe"),
        ("corea-deferral", "eval"),
        ("corea-deferral", "responses"),
        ("sd-e2", "eval"),
    ],
)
def test_our_own_in_other_modes(build: MakeView, name: str, mode: str) -> None:
    envs.check_env(build("text", name), options={"mode": mode, "epoch": 2, "step": 3})


def test_made_by_pettingzoo(scorer: Any, sums: Any) -> None:
    env = pettingzoo.make("parallel", "core-teaching-v0", scorer=scorer, source=sums)
    observations, _ = env.reset(seed=1)
    assert observations["alice_0"]["tokens"].tolist()[:8] == list(b"Question")


@pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested:UserWarning")
def test_torchrl_drives_the_padded_view(build: MakeView) -> None:
    torchrl_envs = pytest.importorskip("torchrl.envs")
    from torchrl.envs.libs.pettingzoo import PettingZooWrapper

    env = PettingZooWrapper(
        env=PaddedView(build("token"), context_length=128, action_length=8), use_mask=False
    )
    assert env.group_map == {
        "alice": ["alice_0", "alice_1", "alice_2"],
        "bob": ["bob_0", "bob_1", "bob_2"],
    }
    torchrl_envs.check_env_specs(env)
    rollout = env.rollout(max_steps=5)
    assert rollout["alice", "observation", "active"][:, :, 0].tolist() == [[1, 1, 0], [0, 0, 1]]
    assert rollout["next", "done"].flatten().tolist() == [False, True]
