"""Fused copies of a Llama-like decoder's weights, for sampling."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from coterie.agents.models.family import window
from coterie.agents.models.nf4 import dequantized

# D model width, H query heads, J key-value heads, E head width, R rotary width, F feed-forward


@dataclass
class LayerWeights:
    """A decoder layer. Matrices are (in, out): rows of activations multiply from the left."""

    input_norm_D: Tensor
    qkv: Tensor
    """(D, (H + 2J) E); within each query and key head, rotary pairs are adjacent."""
    qkv_bias: Tensor | None
    qk_norm: Tensor | None
    """(H + J, E) weights of the query and key norms."""
    out: Tensor
    out_bias: Tensor | None
    post_norm_D: Tensor
    gate_up: Tensor
    """(D, 2F)"""
    gate_up_bias: Tensor | None
    down: Tensor
    down_bias: Tensor | None
    window: int | None
    """Number of latest positions that a token attends to, itself included."""


class FusedWeights:
    """A model's weights and constants, which are fixed while a batch is sampled."""

    def __init__(self, model: Any, adapter: str | None, dtype: torch.dtype) -> None:
        config = model.config
        self.layers: list[LayerWeights] = [
            layer_weights(layer, config, adapter, dtype) for layer in model.model.layers
        ]
        attention = model.model.layers[0].self_attn
        self.embedding = model.model.embed_tokens.weight.detach().to(dtype)
        self.norm_D = model.model.norm.weight.detach().to(dtype, copy=True)
        self.eps: float = model.model.norm.variance_epsilon
        self.eps_tensor = torch.tensor(self.eps, device=self.norm_D.device)
        self.head = model.lm_head.weight.detach().to(dtype).t()
        bias = model.lm_head.bias
        self.head_bias = None if bias is None else bias.detach().to(dtype)
        self.act = model.model.layers[0].mlp
        self.act = getattr(self.act, "act_fn", None) or self.act.activation_fn
        self.heads: int = config.num_attention_heads
        self.kv_heads: int = config.num_key_value_heads
        self.width: int = attention.head_dim
        self.scale: float = attention.scaling
        self.rotary = model.model.rotary_emb
        self.dtype = self.embedding.dtype
        self.device = self.embedding.device

    def turns(self, length: int) -> Tensor:
        """Return complex rotations of positions 0..T-1, (T, R/2), by the model's rotary module."""
        positions = torch.arange(length, device=self.device)[None]
        like = torch.empty(0, dtype=torch.float32, device=self.device)
        cos, sin = self.rotary(like, positions)
        half = cos.shape[-1] // 2
        return torch.complex(cos[0, :, :half].contiguous(), sin[0, :, :half].contiguous())


def layer_weights(layer: Any, config: Any, adapter: str | None, dtype: torch.dtype) -> LayerWeights:
    """Return fused copies of one layer's weights with its adapter merged."""
    attention, mlp = layer.self_attn, layer.mlp
    if hasattr(attention, "qkv_proj"):
        qkv, qkv_bias = _dense([attention.qkv_proj], adapter, dtype)
    else:
        parts = [attention.q_proj, attention.k_proj, attention.v_proj]
        qkv, qkv_bias = _dense(parts, adapter, dtype)
    if hasattr(mlp, "gate_up_proj"):
        gate_up, gate_up_bias = _dense([mlp.gate_up_proj], adapter, dtype)
    else:
        gate_up, gate_up_bias = _dense([mlp.gate_proj, mlp.up_proj], adapter, dtype)
    out, out_bias = _dense([attention.o_proj], adapter, dtype)
    down, down_bias = _dense([mlp.down_proj], adapter, dtype)

    order = _pair_order(config, qkv.shape[1], qkv.device)
    qk_norm = None
    if hasattr(attention, "q_norm"):
        heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
        rows = [attention.q_norm.weight] * heads + [attention.k_norm.weight] * kv_heads
        qk_norm = torch.stack(rows).detach().to(dtype).reshape(-1)
        qk_norm = qk_norm[order[: len(rows) * attention.head_dim]]
        qk_norm = qk_norm.view(len(rows), attention.head_dim)
    return LayerWeights(
        input_norm_D=layer.input_layernorm.weight.detach().to(dtype, copy=True),
        qkv=qkv[:, order].contiguous(),
        qkv_bias=None if qkv_bias is None else qkv_bias[order],
        qk_norm=qk_norm,
        out=out,
        out_bias=out_bias,
        post_norm_D=layer.post_attention_layernorm.weight.detach().to(dtype, copy=True),
        gate_up=gate_up,
        gate_up_bias=gate_up_bias,
        down=down,
        down_bias=down_bias,
        window=window(config, attention),
    )


def _dense(
    linears: list[Any], adapter: str | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """Concatenated weights (in, sum of out) and bias of several linear layers."""
    weights, biases = [], []
    for linear in linears:
        weight, bias = dequantized(linear.weight), linear.bias
        if adapter is not None and adapter in getattr(linear, "lora_A", {}):
            weight = weight + linear.get_delta_weight(adapter).to(weight.dtype)
        weights.append(weight)
        biases.append(bias)
    fused = torch.cat([w.detach().to(dtype) for w in weights]).t().contiguous()
    if all(b is None for b in biases):
        return fused, None
    return fused, torch.cat([b.detach().to(dtype) for b in biases])


def _pair_order(config: Any, columns: int, device: torch.device) -> Tensor:
    """The column order that makes the rotary pairs (i, i + R/2) of query and key heads adjacent."""
    # A permutation of both sides does not change dot products, and makes a rotation one complex
    # multiplication.
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    width = columns // (heads + 2 * kv_heads)
    rotary = int(width * (config.rope_parameters.get("partial_rotary_factor") or 1.0))
    pairs = torch.arange(rotary, device=device).view(2, -1).t().reshape(-1)
    head = torch.cat([pairs, torch.arange(rotary, width, device=device)])
    starts = torch.arange(heads + kv_heads, device=device)[:, None] * width
    turned = (starts + head).reshape(-1)
    return torch.cat([turned, torch.arange(len(turned), columns, device=device)])
