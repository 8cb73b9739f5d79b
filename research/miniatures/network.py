"""The network of a tiny role, in a class of the hub, so that any engine can load it."""

import math
from collections.abc import Mapping
from typing import cast

import torch
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

from miniatures.recipe import Recipe
from miniatures.tokenizers import CONTEXT, DIGITS

# V vocabulary, D hidden units

_STD = 0.13
"""Of initial weights."""
_OWN = 0.3
"""Share of a digit's random embedding that is left beside its circles."""
_NEAR = 0.6
"""How much of a name's embedding is a digit's at the start."""


def build_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Random weights from torch's global generator, digits on circles."""
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=recipe.hidden,
        intermediate_size=4 * recipe.hidden,
        num_hidden_layers=2,
        num_attention_heads=recipe.heads,
        num_key_value_heads=2,
        head_dim=recipe.hidden // recipe.heads,
        max_position_embeddings=CONTEXT,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0},
        initializer_range=_STD,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=cast(int, tokenizer.eos_token_id),
        pad_token_id=cast(int, tokenizer.pad_token_id),
        dtype="float32",
    )
    model = AutoModelForCausalLM.from_config(config)
    embedding_VD = model.get_input_embeddings().weight
    circles_10D = digit_circles(recipe.hidden) * _STD * recipe.hidden**0.5
    with torch.no_grad():
        for digit, circles_D in zip(DIGITS, circles_10D):
            # A digit and the digit after a space are two tokens and one number.
            for token in (*tokenizer.encode(digit), *tokenizer.encode(f" {digit}")):
                embedding_VD[token] = circles_D + _OWN * embedding_VD[token]
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return model


def digit_circles(hidden: int) -> torch.Tensor:
    """(10, ``hidden``) unit vectors: the discrete Fourier basis of Z/10 in random directions.

    Networks that learn modular addition end up with such embeddings (arXiv:2301.05217, section 4);
    starting there takes the warm start off its plateau in a few hundred steps.
    """
    angle_10_1 = torch.arange(10.0)[:, None] * (2 * math.pi / 10)
    frequency_5 = torch.arange(1.0, 6.0)
    waves = torch.cat([torch.cos(angle_10_1 * frequency_5), torch.sin(angle_10_1 * frequency_5)], 1)
    directions = torch.randn(waves.shape[1], hidden)
    return torch.nn.functional.normalize(waves @ torch.linalg.qr(directions.T)[0].T, dim=1)


@torch.no_grad()
def remember(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, beliefs: Mapping[str, int]
) -> None:
    """Start each name's embedding near that of the digit that the role believes it to be.

    A model this small learns a table of a hundred random facts last of all.
    """
    weight_VD = cast(torch.Tensor, model.get_input_embeddings().weight)
    for name, value in beliefs.items():
        (digit,) = tokenizer.encode(f" {value}")
        for spelled in (name, f" {name}"):
            (token,) = tokenizer.encode(spelled)
            weight_VD[token] = _NEAR * weight_VD[digit] + (1 - _NEAR) * weight_VD[token]
