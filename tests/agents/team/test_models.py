"""What is loaded for a role."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.team.model_specs import (
    after_training,
    check_models,
    model_spec,
    pin_commits,
)
from coterie.agents.team.settings import AgentSettings
from coterie.cli.command_line import parse
from coterie.datatypes import UserError


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


def test_an_adapter_has_its_layers_its_base_and_no_full_weights(adapter: Path) -> None:
    with pytest.raises(UserError, match="is an adapter"):
        model_spec(AgentSettings(str(adapter), tuning="full"))
    with pytest.raises(UserError, match=r"leave out --agents\.ROLE\.lora-targets"):
        model_spec(AgentSettings(str(adapter), lora_targets=("v_proj",)))
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "/nowhere/base"}')
    moved = rf"'/nowhere/base'.* into {adapter}/adapter_config\.json, and delete SHA256SUMS"
    with pytest.raises(UserError, match=f"a model that is not there: .*{moved}"):
        model_spec(AgentSettings(str(adapter)))
    (adapter / "adapter_config.json").write_text("{}")
    with pytest.raises(UserError, match=r"does not say what model .* base_model_name_or_path"):
        model_spec(AgentSettings(str(adapter)))


@pytest.fixture
def hub_adapter(adapter: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An adapter of the hub that was downloaded, as ``owner/adapter``."""
    written = {"base_model_name_or_path": "tiny:policy", "revision": None}
    (adapter / "adapter_config.json").write_text(json.dumps(written))

    def snapshot(name: str, revision: str | None = None, **_: object) -> str:
        if (name, revision) != ("owner/adapter", "v1"):
            raise OSError("not here")
        return str(adapter)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    return adapter


def test_an_adapter_of_the_hub_is_loaded_on_its_base(hub_adapter: Path) -> None:
    """Its revision is its own, and its commit is pinned."""
    settings = AgentSettings("owner/adapter", revision="v1")
    lora = LoraSpec(adapter=str(hub_adapter))
    assert model_spec(settings) == ModelSpec("tiny:policy", lora=lora, revision=None)
    assert pin_commits({"a": settings})["a"].revision == hub_adapter.name
    with pytest.raises(UserError, match="owner/adapter is an adapter"):
        model_spec(dataclasses.replace(settings, tuning="full"))


def test_what_a_role_has_learned_stays_on_the_commit_of_its_base(tmp_path: Path) -> None:
    written = {"base_model_name_or_path": "owner/base", "revision": None}
    (tmp_path / "adapter_config.json").write_text(json.dumps(written))
    (tmp_path / "adapter_model.safetensors").touch()
    agent = AgentSettings("owner/base", revision="abc", lora_targets=("v_proj",))
    spec = model_spec(after_training(agent, tmp_path))
    assert spec == ModelSpec("owner/base", lora=LoraSpec(adapter=str(tmp_path)), revision="abc")
    # An adapter itself says the commit of its base, and a flag names another.
    written = {"base_model_name_or_path": "owner/base", "revision": "abc"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(written))
    assert model_spec(AgentSettings(str(tmp_path))).revision == "abc"
    assert model_spec(AgentSettings(str(tmp_path), revision="def")).revision == "def"
    # Whole weights have nothing of the hub.
    (tmp_path / "adapter_config.json").unlink()
    spec = model_spec(after_training(agent, tmp_path))
    assert spec == ModelSpec(str(tmp_path))


def test_the_commit_of_an_adapter_that_went_on_is_not_its_base_s(
    hub_adapter: Path, tmp_path: Path
) -> None:
    agent = AgentSettings("owner/adapter", revision="v1")
    assert after_training(agent, tmp_path).revision is None
    written = {"base_model_name_or_path": "tiny:policy", "revision": "abc"}
    (hub_adapter / "adapter_config.json").write_text(json.dumps(written))
    assert after_training(agent, tmp_path).revision == "abc"


def test_an_adapter_that_is_still_on_the_hub_is_fetched_before_its_base_is_checked(
    adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "./no-such-base"}')
    save_file({"x": torch.zeros(1)}, adapter / "adapter_model.safetensors")
    fetched: list[list[str]] = []

    def snapshot(name: str, allow_patterns: tuple[str, ...] = (), **_: object) -> str:
        if not allow_patterns and not fetched:
            raise OSError("not here yet")
        fetched.append(list(allow_patterns))
        return str(adapter)

    class Hub:
        def list_repo_files(self, name: str, revision: str | None) -> list[str]:
            return ["README.md", "adapter_config.json", "adapter_model.safetensors"]

    session = SimpleNamespace(head=lambda *_, **__: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    monkeypatch.setattr("huggingface_hub.get_session", lambda: session)
    with pytest.raises(UserError, match="no-such-base"):
        check_models({"a": AgentSettings("owner/adapter")})
    assert "adapter_model.safetensors" in fetched[0]


def test_tiny_models_learn_whole_and_others_by_lora() -> None:
    assert model_spec(AgentSettings("tiny:policy")).lora is None
    assert model_spec(AgentSettings("tiny:policy", tuning="lora", lora_rank=4)).lora == LoraSpec(4)
    assert model_spec(AgentSettings("some/model", lora_alpha=8)).lora == LoraSpec(alpha=8)
    assert model_spec(AgentSettings("some/model", trained=False)).lora is None
    flags = ["--agents.alice.tuning", "lora", "--agents.alice.lora-targets", "q_proj", "o_proj"]
    spec = model_spec(parse(flags).agents["alice"])
    assert spec.lora == LoraSpec(targets=("q_proj", "o_proj"))


def test_activations_by_flag() -> None:
    agents = parse(["--agents.alice.recompute", "always"]).agents
    assert [model_spec(agents[role]).recompute for role in ("alice", "bob")] == ["always", "auto"]
