"""What is loaded for a role."""

import json
from pathlib import Path

import pytest

from coterie.datatypes import UserError
from coterie.models.spec import LoraSpec, ModelSpec
from coterie.teams.models import model_spec
from coterie.teams.settings import AgentSettings


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
