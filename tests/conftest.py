"""Checkpoints with random weights, written to disk in the hub's format."""

from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

VOCAB = 320

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_SMALL = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "eos_token_id": None,
    "bos_token_id": None,
    "pad_token_id": None,
}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 100.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
_HALF = {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}
_BIASED = {"rope_parameters": _LLAMA3, "attention_bias": True, "mlp_bias": True}
_LONG = {
    "rope_type": "longrope",
    "rope_theta": 100.0,
    "partial_rotary_factor": 0.5,
    "original_max_position_embeddings": 16,
    "short_factor": [1.0, 1.0],
    "long_factor": [2.0, 5.0],
}
CONFIGS = {
    "qwen3": ("Qwen3Config", {"head_dim": 16, "tie_word_embeddings": True}),
    # The second layer looks back over 8 positions only.
    "qwen2": (
        "Qwen2Config",
        {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
    ),
    "llama": (
        "LlamaConfig",
        {"rope_parameters": _LLAMA3, "attention_bias": True, "mlp_bias": True},
    ),
    "mistral": ("MistralConfig", {"sliding_window": 6, "head_dim": 8}),
    "phi3": ("Phi3Config", {"rope_parameters": _HALF}),
    # Contexts beyond 16 tokens use the other set of frequencies.
    "phi3-long": (
        "Phi3Config",
        {"rope_parameters": _LONG, "original_max_position_embeddings": 16},
    ),
    # No fused decoder: capped logits, other norms.
    "gemma2": (
        "Gemma2Config",
        {"head_dim": 8, "sliding_window": 8, "final_logit_softcapping": 3.0},
    ),
}


def byte_tokenizer(**kwargs: object) -> PreTrainedTokenizerFast:
    """A byte-level BPE with ChatML marks."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=["<|im_start|>", "<|im_end|>"],
    )
    backend.train_from_iterator(["Question: 7 + 8 - 3 = the answer is 12"] * 4, trainer)
    settings = {"eos_token": "<|im_end|>", "chat_template": CHATML} | kwargs
    return PreTrainedTokenizerFast(tokenizer_object=backend, **settings)


def write_checkpoint(folder: Path, name: str) -> Path:
    """A model with weights large enough that every part of it matters."""
    kind, settings = CONFIGS[name]
    config = getattr(transformers, kind)(**(_SMALL | settings))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(config)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn_like(p) * 0.3 + (p.ndim == 1))
    model.save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory):
    """name -> folder of its checkpoint; written once."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = write_checkpoint(tmp_path_factory.mktemp(name), name)
        return made[name]

    return get
