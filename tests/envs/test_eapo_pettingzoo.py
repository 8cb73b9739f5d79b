"""PettingZoo's own tests, TorchRL's, and ours, with policies that really call."""

from typing import Any

import pettingzoo
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from coterie import envs
from coterie.envs.eapo_consultation import EapoConsultationSettings
from coterie.envs.padded_view import PaddedView
from coterie.envs.spaces import TextSpace

pytestmark = pytest.mark.filterwarnings(
    # PettingZoo's AEC test likes one of its own keys in observations.
    "ignore:The observation space for the environment:UserWarning",
    "ignore:Observation space for each agent probably should be:UserWarning",
    "ignore:Action space for each agent probably should be:UserWarning",
    "ignore:Observation is not a NumPy array:UserWarning",
)

VIEWS = ("token", "text", "padded")
CALL = '<agent_calls>[{"expert_id": 2, "input_parameters": {"query": "1 + 1 ="}}]</agent_calls>'


@pytest.fixture
def build(scorer: Any, sums: Any) -> Any:
    def make(view: str, **settings: Any) -> Any:
        settings = {"max_new_tokens": 1000, "budget": 3, **settings}
        return envs.make(
            "eapo-consultation",
            view=view,  # type: ignore[arg-type]
            settings=EapoConsultationSettings(**settings),
            scorer=scorer,
            source=sums,
        )

    return make


@pytest.mark.parametrize("view", VIEWS)
def test_parallel_api(build: Any, view: str) -> None:
    parallel_api_test(build(view), num_cycles=20)


@pytest.mark.parametrize("view", VIEWS)
def test_parallel_seeds(build: Any, view: str) -> None:
    parallel_seed_test(lambda: build(view), num_cycles=20)


@pytest.mark.parametrize("view", VIEWS)
def test_aec_api(build: Any, view: str) -> None:
    api_test(parallel_to_aec(build(view)), num_cycles=20)


@pytest.mark.parametrize("view", VIEWS)
def test_aec_seeds(build: Any, view: str) -> None:
    seed_test(lambda: parallel_to_aec(build(view)), num_cycles=20)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("mode", ["train", "eval", "assisted", "workflow"])
def test_our_own(build: Any, view: str, mode: str) -> None:
    envs.check_env(build(view), options={"mode": mode, "step": 3, "replica": 2}, unasked=["expert"])


@pytest.mark.parametrize("consult", ["free", "always"])
def test_our_own_with_calls(build: Any, monkeypatch: Any, consult: str) -> None:
    sample = TextSpace.sample
    monkeypatch.setattr(TextSpace, "sample", lambda space: CALL + sample(space).replace(":", ""))
    env = build("text", consult=consult, schedule="const", accept_rate=0.5)
    envs.check_env(env, options={"step": 3}, unasked=["expert"])
    monkeypatch.undo()
    env.reset(seed=0)
    env.step({"policy_0": CALL})
    assert env.render_mode is None


def test_made_by_pettingzoo(scorer: Any, sums: Any) -> None:
    env = pettingzoo.make("parallel", "eapo-consultation-v0", scorer=scorer, source=sums)
    observations, _ = env.reset(seed=1)
    assert observations["policy_0"]["tokens"].tolist()[:8] == list(b"Question")
    assert env.possible_agents == ["policy_0", "expert_0", "expert_1", "expert_2"]


@pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested:UserWarning")
def test_torchrl_drives_the_padded_view(build: Any) -> None:
    torchrl_envs = pytest.importorskip("torchrl.envs")
    from torchrl.envs.libs.pettingzoo import PettingZooWrapper

    env = PettingZooWrapper(
        env=PaddedView(build("token"), context_length=128, action_length=8), use_mask=False
    )
    assert env.group_map == {
        "policy": ["policy_0"],
        "expert": ["expert_0", "expert_1", "expert_2"],
    }
    torchrl_envs.check_env_specs(env)
