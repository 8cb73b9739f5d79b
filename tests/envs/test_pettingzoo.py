"""PettingZoo's own tests, TorchRL's, and ours, on every view."""

from collections.abc import Callable
from typing import Any

import pettingzoo
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from coterie import envs
from coterie.envs.core_teaching import CoreTeachingEnv
from coterie.envs.corea_deferral import CoreaDeferralSettings
from coterie.envs.eapo_consultation import EapoConsultationSettings
from coterie.envs.padded_view import PaddedView
from coterie.envs.sd_e2 import SdE2Settings
from coterie.envs.spaces import TextSpace
from coterie.rewards.grading.scorer import AnswerScorer

pytestmark = pytest.mark.filterwarnings(
    # PettingZoo's AEC test likes one of its own keys in observations.
    "ignore:The observation space for the environment:UserWarning",
    "ignore:Observation space for each agent probably should be:UserWarning",
    "ignore:Action space for each agent probably should be:UserWarning",
    "ignore:Observation is not a NumPy array:UserWarning",
)

VIEWS = ("token", "text", "padded")
MakeView = Callable[..., Any]
CALL = '<agent_calls>[{"expert_id": 2, "input_parameters": {"query": "1 + 1 ="}}]</agent_calls>'
EAPO, COREA = "eapo-consultation", "corea-deferral"
ALL = ["core-teaching", COREA, "sd-e2", EAPO]

each_env = pytest.mark.parametrize("name", ALL)


@pytest.fixture
def build(scorer: Any, sums: Any) -> MakeView:
    def make(view: Any, name: str = "core-teaching", **changed: Any) -> Any:
        # Two rounds, so that agents come and go.
        preset = "core-gated" if name == "core-teaching" else None
        settings = None
        if name == EAPO:
            settings = EapoConsultationSettings(**{"max_new_tokens": 1000, "budget": 3, **changed})
        options = {"settings": settings, "preset": preset}
        return envs.make(name, view=view, scorer=scorer, source=sums, **options)

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


# Who is not asked: a confidence that nobody states defers nothing in training, and no expert is
# called by what is drawn by chance.
SELDOM = {COREA: ["large"], EAPO: ["expert"]}
MODES = {"core-teaching": ["eval", "probe"], COREA: ["eval", "responses"], "sd-e2": ["eval"]}
OTHERS = [
    (COREA, CoreaDeferralSettings()),
    (COREA, CoreaDeferralSettings(learners=("small", "large"), ask_large=True)),
    (COREA, CoreaDeferralSettings(ask_large=True, traces=1)),
    ("sd-e2", SdE2Settings(traces=2)),
    ("sd-e2", SdE2Settings(traces=2, prompt_style="strategies", normalise=False)),
]


@pytest.mark.parametrize("name", [*ALL, "coterie.envs.solo:SoloEnv"])
@pytest.mark.parametrize("view", VIEWS)
def test_our_own(build: MakeView, view: str, name: str) -> None:
    envs.check_env(build(view, name), unasked=SELDOM.get(name, []))


@pytest.mark.parametrize(("name", "settings"), OTHERS)
def test_our_own_with_other_settings_and_real_checks(name: str, settings: Any) -> None:
    scorer = AnswerScorer()
    envs.check_env(envs.make(name, settings=settings, scorer=scorer))
    scorer.close()


@pytest.mark.parametrize(
    ("name", "mode"), [(name, m) for name, modes in MODES.items() for m in modes]
)
def test_our_own_in_other_modes(build: MakeView, name: str, mode: str) -> None:
    envs.check_env(build("text", name), options={"mode": mode, "epoch": 2, "step": 3})


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("mode", ["train", "eval", "assisted", "workflow"])
def test_consultation_in_all_modes(build: MakeView, view: str, mode: str) -> None:
    options = {"mode": mode, "step": 3, "replica": 2}
    envs.check_env(build(view, EAPO), options=options, unasked=["expert"])


@pytest.mark.parametrize("consult", ["free", "always"])
def test_consultation_with_calls(
    build: MakeView, monkeypatch: pytest.MonkeyPatch, consult: str
) -> None:
    sample = TextSpace.sample
    monkeypatch.setattr(TextSpace, "sample", lambda space: CALL + sample(space).replace(":", ""))
    env = build("text", EAPO, consult=consult, schedule="const", accept_rate=0.5)
    envs.check_env(env, options={"step": 3}, unasked=["expert"])
    monkeypatch.undo()
    env.reset(seed=0)
    env.step({"policy_0": CALL})
    assert env.render_mode is None


@pytest.mark.parametrize(("name", "asked"), [("core-teaching", "alice_0"), (EAPO, "policy_0")])
def test_made_by_pettingzoo(scorer: Any, sums: Any, name: str, asked: str) -> None:
    env = pettingzoo.make("parallel", f"{name}-v0", scorer=scorer, source=sums)
    observations, _ = env.reset(seed=1)
    assert observations[asked]["tokens"].tolist()[:8] == list(b"Question")
    if name == EAPO:
        experts = [f"expert_{place}" for place in range(3)]
        assert env.possible_agents == ["policy_0", "policy_1", *experts]


@pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested:UserWarning")
@pytest.mark.parametrize(
    ("name", "groups"),
    [
        (
            "core-teaching",
            {"alice": ["alice_0", "alice_1", "alice_2"], "bob": ["bob_0", "bob_1", "bob_2"]},
        ),
        (
            EAPO,
            {"policy": ["policy_0", "policy_1"], "expert": ["expert_0", "expert_1", "expert_2"]},
        ),
    ],
)
def test_torchrl_drives_the_padded_view(
    build: MakeView, name: str, groups: dict[str, list[str]]
) -> None:
    torchrl_envs = pytest.importorskip("torchrl.envs")
    from torchrl.envs.libs.pettingzoo import PettingZooWrapper

    env = PettingZooWrapper(
        env=PaddedView(build("token", name), context_length=128, action_length=8), use_mask=False
    )
    assert env.group_map == groups
    torchrl_envs.check_env_specs(env)
    if name == EAPO:
        return
    rollout = env.rollout(max_steps=5)
    assert rollout["alice", "observation", "active"][:, :, 0].tolist() == [[1, 1, 0], [0, 0, 1]]
    assert rollout["next", "done"].flatten().tolist() == [False, True]


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_unwraps_to_the_environment(build: MakeView, view: str) -> None:
    env = build(view)
    assert isinstance(env.unwrapped, CoreTeachingEnv)
    assert parallel_to_aec(env).unwrapped is env.unwrapped
    with pytest.raises(NotImplementedError, match="state"):
        env.state()
