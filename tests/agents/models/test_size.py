"""How many weights a model has, without reading one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from coterie.agents.models.size import count_weights, is_tiny


def checkpoint(folder: Path, *files: dict[str, list[int]], config: Any = None) -> str:
    """A folder with these weights of 8 bits; each file: name -> shape."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config or {"model_type": "llama"}))
    for number, shapes in enumerate(files):
        tensors = {name: np.zeros(shape, np.int8) for name, shape in shapes.items()}
        save_file(tensors, folder / f"model-{number}.safetensors")
    return str(folder)


def test_weights_are_counted_over_all_files(tmp_path: Path) -> None:
    # 1,000 * 1,000 + 10 in the first, 3 * 4 * 5 in the second.
    both = checkpoint(tmp_path / "m", {"a": [1000, 1000], "b": [10]}, {"c": [3, 4, 5]})
    assert count_weights(both) == 1_000_070


def test_five_million_weights_are_tiny_no_more(tmp_path: Path) -> None:
    assert is_tiny(checkpoint(tmp_path / "below", {"a": [4_999_999]}))
    assert not is_tiny(checkpoint(tmp_path / "at", {"a": [5_000_000]}))
    assert is_tiny("tiny:alice")


def test_a_config_alone_says_it_about(tmp_path: Path) -> None:
    # SmolLM2-135M: 30 layers of 2 * 576 * 64 * (9 + 3) + 3 * 576 * 1536, a table of 49152 * 576;
    # its norms have 61 * 576 more, in all 134,515,008.
    config = {
        "num_hidden_layers": 30,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "vocab_size": 49152,
        "tie_word_embeddings": True,
    }
    assert count_weights(checkpoint(tmp_path / "m", config=config)) == 134_515_008 - 61 * 576


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("nobody/SmolLM2-135M-Instruct", 135_000_000),
        ("nobody/Qwen2.5-0.5B", 500_000_000),
        ("nobody/Phi-3b-chat", 3_000_000_000),
        ("nobody/model-v2", None),
        ("nobody/4bits", None),
        ("/no/such/folder", None),
    ],
)
def test_a_model_of_the_hub_that_is_not_here_goes_by_its_name(
    name: str, weights: int | None
) -> None:
    assert count_weights(name) == weights
    assert not is_tiny(name)


def test_an_adapter_has_the_size_of_its_base(tmp_path: Path) -> None:
    base = checkpoint(tmp_path / "base", {"a": [6_000_000]})
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    said = json.dumps({"base_model_name_or_path": base})
    (adapter / "adapter_config.json").write_text(said)
    (adapter / "adapter_model.safetensors").write_bytes(b"")
    assert count_weights(str(adapter)) == 6_000_000


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, (2).to_bytes(8, "little") + b"[]"])
def test_a_damaged_file_says_nothing(tmp_path: Path, content: bytes) -> None:
    folder = Path(checkpoint(tmp_path / "m"))
    (folder / "model.safetensors").write_bytes(content)
    assert count_weights(str(folder)) is None


def test_a_gguf_file_says_it_in_its_header(small_gguf) -> None:
    path, model = small_gguf.llama()
    # The head is the embedding.
    assert count_weights(str(path)) == sum(p.numel() for p in model.parameters())
    path.write_bytes(b"GGUF")
    assert count_weights(str(path)) is None
