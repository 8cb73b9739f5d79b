"""Small GGUF files, written with llama.cpp's own package."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
)

from coterie.agents.models import int8
from coterie.datatypes import UserError

from .quantized_models import exact

CORPUS = ["In 1998 the 12 cats ate 3 fish.\n\n1. Then 45  more,\n 678 in all. don't"] * 8
CONTROL, NORMAL, BYTE = 3, 1, 6
_SHAPE = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
}


class SmallGguf:
    """Writes models with random weights; each method returns the file and the model."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def llama(self, *, pre: str = "smollm", rounded: bool = False, **more: Any) -> tuple[Path, Any]:
        """Byte-level tokens that were learned digit by digit; ``rounded``: matrices hold numbers of
        bfloat16; ``more``: further metadata."""
        backend = Tokenizer(models.BPE())
        digits = pre_tokenizers.Digits(individual_digits=True)
        letters = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.pre_tokenizer = pre_tokenizers.Sequence([digits, letters])
        trainer = trainers.BpeTrainer(
            vocab_size=320,
            show_progress=False,
            special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        )
        backend.train_from_iterator(CORPUS, trainer)
        tokens = [backend.id_to_token(i) for i in range(backend.get_vocab_size())]
        config = LlamaConfig(
            **_SHAPE, vocab_size=len(tokens), num_key_value_heads=2, tie_word_embeddings=True
        )
        module = _random(LlamaForCausalLM(config))
        for weight in module.parameters():
            if rounded and weight.ndim == 2:
                weight.copy_(weight.bfloat16())
        writer = self._writer("llama", config, tokens, [CONTROL] * 3)
        writer.add_rope_dimension_count(16)
        writer.add_rope_freq_base(10000.0)
        writer.add_vocab_size(len(tokens))
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        merges = json.loads(backend.to_str())["model"]["merges"]
        writer.add_token_merges([" ".join(pair) for pair in merges])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        for key, weight in _stored(module):
            if ".q_proj." in key or ".k_proj." in key:
                heads = 4 if ".q_proj." in key else 2
                # llama.cpp turns neighbouring pairs, transformers one half with the other.
                rows = weight.reshape(heads, 2, 8, 64)
                weight = rows.transpose(1, 2).reshape(weight.shape)
            writer.add_tensor(_renamed(key, _COMMON | _LLAMA), weight.numpy())
        return self._written(writer, "llama", more), module

    def gemma(self, *, quantized: bool = False, **more: Any) -> tuple[Path, Any]:
        """Pieces with scores, a BOS in front; matrices in Q8_0 where ``quantized``."""
        marks = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
        words = ["in", "on", "the", "▁the", "at", "▁cat", "ca", "▁c", "th", "▁t", "12", "▁▁"]
        letters = sorted(set("".join(words) + "eInsfi1234567890.,'"))
        tokens = [*marks, *(f"<0x{n:02X}>" for n in range(256)), *words, *letters]
        tokens = list(dict.fromkeys(tokens))
        config = Gemma3TextConfig(
            **_SHAPE,
            vocab_size=len(tokens),
            num_key_value_heads=1,
            head_dim=32,
            sliding_window=16,
            query_pre_attn_scalar=32,
        )
        module = _random(Gemma3ForCausalLM(config))
        writer = self._writer("gemma3", config, tokens, [CONTROL] * 5 + [BYTE] * 256)
        writer.add_key_length(32)
        writer.add_value_length(32)
        writer.add_rope_freq_base(1e6)
        writer.add_sliding_window(16)
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_scores([-float(i) for i in range(len(tokens))])
        writer.add_bos_token_id(2)
        writer.add_eos_token_id(1)
        writer.add_pad_token_id(0)
        writer.add_unk_token_id(3)
        writer.add_add_space_prefix(False)
        for key, weight in _stored(module):
            name = _renamed(key, _COMMON | _GEMMA)
            numbers = (weight + 1 if key.endswith("norm.weight") else weight).numpy()
            if quantized and weight.ndim == 2:
                kind = GGMLQuantizationType.Q8_0
                writer.add_tensor(name, quantize(numbers, kind), raw_dtype=kind)
            else:
                writer.add_tensor(name, numbers)
        more = {"tokenizer.ggml.add_bos_token": True} | more
        return self._written(writer, "gemma3", more), module

    def _writer(self, kind: str, config: Any, tokens: list[str], special: list[int]) -> GGUFWriter:
        writer = GGUFWriter(self._folder / f"{kind}.gguf", kind)
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_block_count(config.num_hidden_layers)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_token_list(tokens)
        writer.add_token_types(special + [NORMAL] * (len(tokens) - len(special)))
        return writer

    def _written(self, writer: GGUFWriter, kind: str, more: dict[str, Any]) -> Path:
        adders = {bool: writer.add_bool, str: writer.add_string, int: writer.add_uint32}
        for key, value in more.items():
            adders[type(value)](key, value)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return self._folder / f"{kind}.gguf"


def _stored(module: Any) -> list[tuple[str, torch.Tensor]]:
    """All weights but the head, which is tied."""
    return [(key, w) for key, w in module.state_dict().items() if key != "lm_head.weight"]


def _random(module: Any) -> Any:
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.2)
    return module.requires_grad_(False)


_COMMON = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "model.layers": "blk",
}
_LLAMA = {"post_attention_layernorm": "ffn_norm"}
_GEMMA = {
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def _renamed(key: str, names: dict[str, str]) -> str:
    for theirs, ours in names.items():
        key = key.replace(theirs, ours)
    return key


@pytest.fixture
def small_gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallGguf:
    """Writes GGUF files beside a cache of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return SmallGguf(tmp_path)


@pytest.fixture(scope="session")
def llama64(tmp_path_factory: pytest.TempPathFactory, write_shaped: Callable[..., Path]) -> Path:
    """A Llama with biases, whose widths are multiples of 64."""
    target = tmp_path_factory.mktemp("wide") / "llama"
    return write_shaped(target, "llama", spread=0.1, hidden_size=64, intermediate_size=128)


@pytest.fixture
def any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the kernel for 8 bits on processors on which it is refused."""
    try:
        int8.check_kernel(torch.device("cpu"))
    except UserError:
        monkeypatch.setattr(int8, "integer_product", exact)
