"""What cannot be loaded is told in one sentence: files that are missing or damaged, models that are
no such thing.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from coterie.datatypes import UserError
from coterie.models.checksums import write_checksums
from coterie.models.damage import all_finite
from coterie.models.loading import load_team
from coterie.models.locate import TINY, check_model
from coterie.models.spec import LoraSpec, ModelSpec


def spec(folder: Path, **settings) -> ModelSpec:
    return ModelSpec(str(folder), device="cpu", **settings)


def broken(checkpoint, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint("qwen3"), tmp_path / "broken"))


def test_what_cannot_be_loaded_is_reported_before_weights_are_read(
    checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = broken(checkpoint, tmp_path)

    def refused(match: str, model: str | None = None, **settings) -> None:
        with pytest.raises(UserError, match=match) as caught:
            check_model(ModelSpec(model or str(folder), **settings))
        assert "\n" not in str(caught.value)

    check_model(ModelSpec(str(folder)))
    refused("unknown tiny model 'tiny:zed'; known: ", "tiny:zed")
    refused("unknown tiny model 'tiny:../x'", "tiny:../x")
    refused("no model folder './nowhere'", "./nowhere")
    refused("no model folder 'a/b/c'", "a/b/c")
    refused("is a file", str(folder / "config.json"))
    refused("context is 1 tokens", context=1)
    with pytest.raises(UserError, match="LoRA rank is 0"):
        LoraSpec(rank=0)
    with pytest.raises(UserError, match="all-linear or names of layers, not both"):
        LoraSpec(targets=("all-linear", "q_proj"))
    refused("is not an adapter", lora=LoraSpec(adapter=str(folder)))
    for device in ("gpu", "mps", "meta", "xla", "", "cuda:99"):
        refused(f"there is no device {device!r} here; say auto or cpu", device=device)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    refused("not in the local cache and the hub is switched off", "no-such-owner/no-such-model")
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


def rewritten(checkpoint, tmp_path: Path, **tensors: torch.Tensor | None) -> Path:
    folder = broken(checkpoint, tmp_path)
    weights = load_file(folder / "model.safetensors") | {NAME: tensors["wrong"]}
    kept = {name: tensor for name, tensor in weights.items() if tensor is not None}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_weights_that_do_not_fit_are_reported(checkpoint, tmp_path: Path, capfd) -> None:
    folder = rewritten(checkpoint, tmp_path, wrong=None)
    assert refusal(folder).endswith(f"do not fit its config.json; missing: {NAME}")
    # The sentence is all that is said.
    assert "LOAD REPORT" not in capfd.readouterr().err
    assert "more than the 128 tokens" in refusal(checkpoint("qwen3"), context=129)
    with pytest.raises(UserError, match="no model is given for trained roles bob"):
        load_team({"a": spec(checkpoint("qwen3"))}, {"bob"})


def test_weights_of_another_shape_are_reported_by_their_file(checkpoint, tmp_path: Path) -> None:
    folder = rewritten(checkpoint, tmp_path, wrong=torch.zeros(7, 9))
    assert refusal(folder) == (
        f"{folder}/model.safetensors: the weights {NAME} are of shape (7, 9), and its config.json "
        "wants (48, 32)"
    )


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_that_are_no_numbers_are_reported_by_their_file(
    checkpoint, tmp_path: Path, value: str, dtype: torch.dtype
) -> None:
    wrong = torch.zeros(48, 32, dtype=dtype)
    wrong[47, 31] = float(value)
    folder = rewritten(checkpoint, tmp_path, wrong=wrong)
    file = folder / "model.safetensors"
    assert refusal(folder).startswith(f"{file}: the weights {NAME} are not finite; ")


def test_large_weights_are_numbers() -> None:
    """Their sum is none."""
    assert all_finite(torch.full((2, 9), 3e38))
    assert not all_finite(torch.tensor([3e38, 3e38, float("nan")]))


@pytest.mark.parametrize("value", [float("nan"), None])
def test_adapters_that_are_damaged_are_reported_by_their_file(
    checkpoint, tmp_path: Path, value: float | None
) -> None:
    role = load_team({"a": spec(checkpoint("qwen3"), lora=LoraSpec(rank=4))}, {"a"})["a"]
    role.handle.save(tmp_path)
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
    checkpoint, tmp_path: Path, lora: LoraSpec | None
) -> None:
    load_team({"a": spec(checkpoint("qwen3"), lora=lora)}, {"a"})["a"].handle.save(tmp_path)
    write_checksums(tmp_path)
    again = spec(tmp_path)
    if lora:
        again = spec(checkpoint("qwen3"), lora=LoraSpec(adapter=str(tmp_path)))
    (tmp_path / "README.md").write_text("mine")
    load_team({"a": again}, set())
    (path,) = tmp_path.glob("*.safetensors")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_team({"a": again}, set())
    assert str(caught.value).startswith(f"{path} does not match its checksum in SHA256SUMS")
    (tmp_path / "SHA256SUMS").unlink()
    load_team({"a": again}, set())


DAMAGED = {"empty": b"", "list": b"[]", "null": b"null", "bytes": b"\xff\xfe", "cut": None,
           "deep": b"[" * 100_000}  # fmt: skip


@pytest.mark.parametrize("content", DAMAGED)
@pytest.mark.parametrize(
    "name",
    ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
     "tokenizer_config.json"],
)  # fmt: skip
def test_a_damaged_file_is_named_before_weights_are_read(
    checkpoint, tmp_path: Path, name: str, content: str
) -> None:
    path = broken(checkpoint, tmp_path) / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content == "cut" else DAMAGED[content])
    with pytest.raises(UserError) as caught:
        check_model(ModelSpec(str(path.parent)))
    assert str(caught.value).startswith(f"{path} ")


def test_a_configuration_that_means_nothing_is_reported(checkpoint, tmp_path: Path) -> None:
    folder = broken(checkpoint, tmp_path)
    config = json.loads((folder / "config.json").read_text()) | {"hidden_size": "big"}
    (folder / "config.json").write_text(json.dumps(config))
    sentence = refusal(folder)
    assert sentence.startswith(f"the config.json of '{folder}' cannot be used (")
    assert "'hidden_size' expected int, got str" in sentence


@pytest.mark.parametrize("content", ["{}", '{"model": 5}', '{"added_tokens": 5}'])
def test_a_tokenizer_that_means_nothing_is_reported(
    checkpoint, tmp_path: Path, content: str
) -> None:
    folder = broken(checkpoint, tmp_path)
    (folder / "tokenizer.json").write_text(content)
    assert refusal(folder).startswith(f"the tokenizer of '{folder}' cannot be loaded (")


@pytest.mark.parametrize(
    "name", ["tiny:../tiny/alice", f"tiny:{TINY}/alice", "tiny:./alice", "tiny:alice/", "tiny:"]
)
def test_a_tiny_name_is_one_word(name: str) -> None:
    with pytest.raises(UserError, match="unknown tiny model"):
        check_model(ModelSpec(name))
