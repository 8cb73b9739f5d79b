"""Moments in 8 bits: they learn as far, and a checkpoint of them goes on bit for bit."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from coterie.agents.models.saving import store
from coterie.agents.team.trained_role import OtherFormat, TrainedRole
from coterie.algorithms import LearnerSettings, get
from coterie.algorithms.learner import Learner
from coterie.algorithms.settings import check_moments
from coterie.datatypes import UserError

EIGHT = LearnerSettings(moments="8bit")
ADVANTAGES = np.array([1.0, -1.0, 0.5, -0.5, 1.0, -1.0, 0.3, -0.3])


@pytest.fixture
def library() -> None:
    pytest.importorskip("bitsandbytes", reason="not run: bitsandbytes is not installed")


def learn(learner: Learner, make_rows, steps: range) -> torch.Tensor:
    """All weights after these steps."""
    for step in steps:
        learner.update(make_rows(8, seed=step), ADVANTAGES)
    return torch.cat([p.detach().flatten() for p in learner.model.parameters().values()])


@pytest.mark.usefixtures("library")
def test_they_go_where_moments_in_float32_go(tiny, make_rows) -> None:
    start = torch.cat([p.detach().flatten() for p in tiny().parameters().values()])
    ways = []
    for settings in (LearnerSettings(), EIGHT):
        learner = Learner(tiny(), get("grpo"), settings)
        ways.append(learn(learner, make_rows, range(20)) - start)
    assert float(ways[1].norm()) == pytest.approx(float(ways[0].norm()), rel=0.1)
    assert torch.cosine_similarity(*ways, dim=0) > 0.9
    # A weight takes a byte in each moment, but for small tensors, and 4 bytes for each 256.
    tensors, _ = learner.state_dict()
    for name, weight in learner.model.parameters().items():
        small = weight.numel() < 4096
        assert tensors[f"state1/{name}"].dtype == (torch.float32 if small else torch.uint8)
        assert small or len(tensors[f"absmax2/{name}"]) == weight.numel() // 256
    reached = dict(learner.reached())
    assert reached.keys() == learner.model.parameters().keys()
    assert torch.cat([where.flatten() for where in reached.values()]).float().mean() > 0.5


@pytest.mark.usefixtures("library")
def test_a_checkpoint_goes_on_bit_for_bit(tiny, make_rows, tmp_path) -> None:
    whole, broken = (Learner(tiny(), get("grpo"), EIGHT) for _ in range(2))
    learn(whole, make_rows, range(2))
    learn(broken, make_rows, range(2))
    tensors, plain = broken.state_dict()
    store(tensors, tmp_path / "optimizer.safetensors")
    model = tiny()
    model.module.load_state_dict(broken.model.module.state_dict())
    again = Learner(model, get("grpo"), EIGHT)
    again.load_state_dict(load_file(tmp_path / "optimizer.safetensors"), plain)
    ends = [learn(learner, make_rows, range(2, 4)) for learner in (whole, again)]
    assert torch.equal(*ends)
    states = [learner.state_dict()[0] for learner in (whole, again)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_without_the_library_they_are_refused(tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.algorithms.settings.find_spec", lambda name: None)
    check_moments(LearnerSettings(), "cpu")
    with pytest.raises(UserError, match=r'not installed: pip install -e "\.\[8bit\]"'):
        check_moments(EIGHT, "cpu")
    with pytest.raises(UserError, match=r"--learner\.moments 8bit needs bitsandbytes"):
        Learner(tiny(), get("grpo"), EIGHT)


def test_pages_are_for_a_gpu(tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.algorithms.settings.find_spec", lambda name: True)
    paged = dataclasses.replace(EIGHT, moments="paged-8bit")
    with pytest.raises(UserError, match="this model is on cpu: say 8bit"):
        Learner(tiny(), get("grpo"), paged)


def test_a_run_goes_on_with_the_moments_that_it_has() -> None:
    loaded = SimpleNamespace(handle=SimpleNamespace(dtype=torch.float32))
    learner = SimpleNamespace(settings=EIGHT, state_dict=lambda: ({}, {}))
    role = TrainedRole(loaded, learner)  # type: ignore[arg-type]
    assert role.state_dict()[1] == {"dtype": "float32", "moments": "8bit"}
    with pytest.raises(OtherFormat, match="moments are stored in float32, not in 8bit"):
        role.load_state_dict({}, {"dtype": "float32", "moments": "float32"})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: there is no GPU")
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("moments", ["8bit", "paged-8bit", "paged-float32"])
def test_on_a_gpu(tiny, make_rows, moments) -> None:
    settings = dataclasses.replace(EIGHT, moments=moments)
    models = [tiny(), tiny()]
    for model in models:
        model.module.cuda()
        model.device = torch.device("cuda")
    learner, again = (Learner(model, get("grpo"), settings) for model in models)
    learn(learner, make_rows, range(2))
    again.load_state_dict(*learner.state_dict())
    again.model.module.load_state_dict(learner.model.module.state_dict())
    assert torch.equal(*(learn(each, make_rows, range(2, 3)) for each in (learner, again)))
