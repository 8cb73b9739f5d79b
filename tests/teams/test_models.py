"""What is loaded for a role."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from coterie import train
from coterie.datatypes import UserError
from coterie.models.loading import number_format
from coterie.models.spec import LoraSpec, ModelSpec
from coterie.papers import PRESETS
from coterie.teams.models import model_spec
from coterie.teams.settings import AgentSettings
from coterie.training.command_line import parse


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    (tmp_path / "adapter_model.safetensors").touch()
    written = {"base_model_name_or_path": "tiny:policy"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(written))
    return tmp_path


@pytest.mark.parametrize("trained", [True, False])
def test_an_adapter_is_loaded_on_its_base(adapter: Path, trained: bool) -> None:
    spec = model_spec(AgentSettings(str(adapter), trained=trained))
    assert spec == ModelSpec("tiny:policy", lora=LoraSpec(adapter=str(adapter)))


def test_an_adapter_has_no_full_weights(adapter: Path) -> None:
    with pytest.raises(UserError, match="is an adapter"):
        model_spec(AgentSettings(str(adapter), tuning="full"))
    (adapter / "adapter_config.json").write_text("{}")
    with pytest.raises(UserError, match="does not say what model it belongs to"):
        model_spec(AgentSettings(str(adapter)))


def test_tiny_models_learn_whole_and_others_by_lora() -> None:
    assert model_spec(AgentSettings("tiny:policy")).lora is None
    assert model_spec(AgentSettings("tiny:policy", tuning="lora", lora_rank=4)).lora == LoraSpec(4)
    assert model_spec(AgentSettings("some/model", lora_alpha=8)).lora == LoraSpec(alpha=8)
    assert model_spec(AgentSettings("some/model", trained=False)).lora is None


@pytest.mark.parametrize("name", PRESETS)
def test_on_a_gpu_no_preset_holds_what_it_trains_as_a_whole_in_16_bits(name: str) -> None:
    for agent in parse(["--preset", name]).agents.values():
        if not agent.trained:
            continue
        spec = model_spec(dataclasses.replace(agent, device="cuda:0"))
        full = spec.lora is None
        held = number_format(spec, trained=True)
        assert held == (torch.float32 if full else torch.bfloat16)


def test_full_weights_in_bfloat16_are_refused_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coterie.training.session.Session.__init__", lambda *_: pytest.fail("was loaded")
    )
    narrow = ["--agents.alice.dtype", "bfloat16", "--run-dir", str(tmp_path / "run")]
    assert train.main(narrow) == 2
    said = capsys.readouterr().err
    assert "full weights do not learn in bfloat16" in said
    assert "leave out --agents.alice.dtype" in said
    assert "--agents.alice.tuning lora" in said
    assert not (tmp_path / "run").exists()
