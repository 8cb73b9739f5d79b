"""What cannot be loaded is told in one sentence: files that are missing or damaged, models that are
no such thing.
"""

import functools
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from coterie.agents.models.checksums import write_checksums
from coterie.agents.models.damage import all_finite
from coterie.agents.models.loading import load_team
from coterie.agents.models.locate import TINY, check_model
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.datatypes import UserError


@pytest.fixture
def folder(checkpoint, tmp_path: Path) -> Path:
    """A checkpoint to break."""
    return Path(shutil.copytree(checkpoint("qwen3"), tmp_path / "broken"))


@pytest.fixture
def refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Refuses a model without a hub, before weights are read."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    check_model(ModelSpec(str(folder)))

    def check(match: str, model: str | None = None, **settings) -> None:
        with pytest.raises(UserError, match=match) as caught:
            check_model(ModelSpec(model or str(folder), **settings))
        assert "\n" not in str(caught.value)

    return check


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("tiny:zed", "unknown tiny model 'tiny:zed'; known: "),
        *((f"tiny:{name}", "unknown tiny") for name in ("../tiny/alice", "")),
        (f"tiny:{TINY}/alice", "unknown tiny"),
        ("./nowhere", "no model folder './nowhere'"),
        ("a/b/c", "no model folder 'a/b/c'"),
        ("http://h/v1", "http://h/v1 is an address; name a hub id as ORG/NAME, or for .*server:"),
        (str(TINY / "alice" / "config.json"), "is a file"),
        ("no-such-owner/no-such-model", "not in the local cache and the hub is switched off"),
    ],
)
def test_names_that_are_no_model_are_refused(refused, model: str, sentence: str) -> None:
    refused(sentence, model)


def test_targets_are_all_layers_or_names_of_some() -> None:
    with pytest.raises(UserError, match="all-linear or names of layers, not"):
        LoraSpec(targets=("all-linear", "q_proj"))


@pytest.mark.parametrize("device", ["gpu", "meta", "cuda:99"])
def test_devices_that_are_not_here_are_refused(refused, device: str) -> None:
    refused(f"there is no device {device!r} here; say auto or cpu", device=device)


def test_folders_that_are_no_checkpoint_are_refused(folder: Path, refused) -> None:
    refused("is not an adapter", lora=LoraSpec(adapter=str(folder)))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused("weights as pickles.*save them as safetensors")
    (folder / "pytorch_model.bin").unlink()
    refused("model.safetensors is missing")
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "x.safetensors"}})
    )
    refused("lacks weight files that its index names: x.safetensors")
    (folder / "config.json").write_text("{")
    refused("cannot be read as JSON")
    (folder / "config.json").unlink()
    refused("has no config.json")
    (folder / "adapter_config.json").write_text("{}")
    refused(r"is not an adapter: it needs adapter_config.json and adapter_model\.safetensors")


NAME = "model.layers.1.mlp.up_proj.weight"


def refusal(folder: Path, **settings) -> str:
    with pytest.raises(UserError) as caught:
        load_team({"a": ModelSpec(str(folder), device="cpu", **settings)}, {"a"})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rewrite(folder: Path, tensor: torch.Tensor | None) -> None:
    """Put a tensor in the place of a weight, or leave the weight out."""
    weights = load_file(folder / "model.safetensors") | {NAME: tensor}
    kept = {name: tensor for name, tensor in weights.items() if tensor is not None}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def test_weights_that_do_not_fit_are_reported(folder: Path, capfd) -> None:
    assert "more than the 128 tokens" in refusal(folder, context=129)
    with pytest.raises(UserError, match="no model is given for trained roles bob"):
        load_team({"a": ModelSpec(str(folder))}, {"bob"})
    rewrite(folder, None)
    assert refusal(folder).endswith(f"do not fit its config.json; missing: {NAME}")
    # The sentence is all that is said.
    assert "LOAD REPORT" not in capfd.readouterr().err


def test_weights_of_another_shape_are_reported_by_their_file(folder: Path) -> None:
    rewrite(folder, torch.zeros(7, 9))
    assert refusal(folder) == (
        f"{folder}/model.safetensors: the weights {NAME} are of shape (7, 9), and its config.json "
        "wants (48, 32)"
    )


@pytest.mark.parametrize("value", ["nan", "inf"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_that_are_no_numbers_are_reported_by_their_file(
    folder: Path, value: str, dtype: torch.dtype
) -> None:
    wrong = torch.zeros(48, 32, dtype=dtype)
    wrong[47, 31] = float(value)
    rewrite(folder, wrong)
    assert refusal(folder).startswith(
        f"{folder}/model.safetensors: the weights {NAME} are not finite; "
    )


def test_large_weights_are_numbers() -> None:
    """Their sum is none."""
    assert all_finite(torch.full((2, 9), 3e38))
    assert not all_finite(torch.tensor([3e38, 3e38, float("nan")]))


@pytest.mark.parametrize("value", [float("nan"), None])
def test_adapters_that_are_damaged_are_reported_by_their_file(
    checkpoint, load_role, tmp_path: Path, value: float | None
) -> None:
    load_role("qwen3", lora=LoraSpec(rank=4)).handle.save(tmp_path)
    path = tmp_path / "adapter_model.safetensors"
    weights = load_file(path)
    first = min(weights)
    if value is None:
        path.write_bytes(path.read_bytes()[:-8])
    else:
        save_file(weights | {first: torch.full_like(weights[first], value)}, path)
    sentence = refusal(checkpoint("qwen3"), lora=LoraSpec(adapter=str(tmp_path)))
    assert sentence.startswith(f"{path}")
    assert (first in sentence) == (value is not None)


@pytest.mark.parametrize("lora", [None, LoraSpec(rank=4)])
def test_a_trained_model_in_which_a_bit_has_flipped_is_reported(
    load_role, tmp_path: Path, lora: LoraSpec | None
) -> None:
    load_role("qwen3", lora=lora).handle.save(tmp_path)
    write_checksums(tmp_path)
    (tmp_path / "README.md").write_text("mine")
    adapter = LoraSpec(adapter=str(tmp_path)) if lora else None
    again = functools.partial(load_role, "qwen3" if lora else tmp_path, lora=adapter)
    again()
    (path,) = tmp_path.glob("*.safetensors")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        again()
    assert str(caught.value).startswith(f"{path} does not match its checksum in SHA256SUMS")
    (tmp_path / "SHA256SUMS").unlink()
    again()


DAMAGED = {"empty": b"", "list": b"[]", "bytes": b"\xff\xfe", "cut": None}


@pytest.mark.parametrize("content", DAMAGED)
@pytest.mark.parametrize(
    "name",
    ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
     "tokenizer_config.json"],
)  # fmt: skip
def test_a_damaged_file_is_named_before_weights_are_read(
    folder: Path, name: str, content: str
) -> None:
    path = folder / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content == "cut" else DAMAGED[content])
    with pytest.raises(UserError) as caught:
        check_model(ModelSpec(str(folder)))
    assert str(caught.value).startswith(f"{path} ")


def test_a_configuration_that_means_nothing_is_reported(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text()) | {"hidden_size": "big"}
    (folder / "config.json").write_text(json.dumps(config))
    sentence = refusal(folder)
    assert sentence.startswith(f"the config.json of '{folder}' cannot be used (")
    assert "'hidden_size' expected int, got str" in sentence


@pytest.mark.parametrize("content", ["{}", '{"model": 5}'])
def test_a_tokenizer_that_means_nothing_is_reported(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    assert refusal(folder).startswith(f"the tokenizer of '{folder}' cannot be loaded (")
