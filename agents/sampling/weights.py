"""Fused copies of a Llama-like decoder's weights, for sampling."""

import platform
import weakref
from collections.abc import MutableMapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from coterie.agents.models.family import window
from coterie.agents.models.int8 import Int8Linear, multiply
from coterie.agents.models.quantized import dequantized

# D model width, H query heads, J key-value heads, E head width, R rotary width, F feed-forward

SMALL = 1 << 18
"""Numbers of the smallest matrix that is packed in float32."""


@dataclass
class Int8Matrix:
    """Linear layers in 8 bits on one input, with their adapters beside them."""

    codes_OI: Tensor
    scale_O: Tensor
    adapter: tuple[Tensor, Tensor] | None = None
    """(I, R) and (R, O), whose product is added to the weights; R: the ranks of all layers."""

    def multiply(
        self, x_NI: Tensor, bias_O: Tensor | None = None, residual_NO: Tensor | None = None
    ) -> Tensor:
        """Return the product (N, O) with what is added."""
        y_NO = multiply(x_NI, self.codes_OI, self.scale_O)
        if self.adapter is not None:
            down_IR, up_RO = self.adapter
            y_NO.addmm_(x_NI @ down_IR, up_RO)
        for added in (residual_NO, bias_O):
            if added is not None:
                y_NO.add_(added)
        return y_NO

    def __len__(self) -> int:
        """The number of outputs."""
        return len(self.scale_O)

    def __getitem__(self, order: Tensor) -> "Int8Matrix":
        """Return the matrix with its outputs in this order."""
        adapter = self.adapter and (self.adapter[0], self.adapter[1][:, order].contiguous())
        return Int8Matrix(self.codes_OI[order], self.scale_O[order], adapter)


@dataclass
class PackedMatrix:
    """Weights in the blocks in which oneDNN multiplies. Plain weights are packed anew for each
    product, and that takes longer than a product of few rows."""

    blocks: Tensor

    def multiply(
        self, x_NI: Tensor, bias_O: Tensor | None = None, residual_NO: Tensor | None = None
    ) -> Tensor:
        """Return the product (N, O) with what is added, rounded once."""
        product: Any = torch.ops.mkldnn._linear_pointwise
        if residual_NO is None:
            return product(x_NI, self.blocks, bias_O, "none", [], "")
        return product.binary(x_NI, residual_NO, self.blocks, bias_O, "add")


Matrix = Tensor | Int8Matrix | PackedMatrix
"""A tensor is (in, out): rows of activations multiply from the left."""


def matrix(weight_OI: Tensor | Int8Matrix) -> Matrix:
    """Return weights in the form in which this device multiplies few rows fastest."""
    if isinstance(weight_OI, Int8Matrix):
        return weight_OI
    if packs(weight_OI):
        return pack(weight_OI)
    return weight_OI.t().contiguous()


def pack(weight_OI: Tensor) -> PackedMatrix:
    return PackedMatrix(torch.ops.mkldnn._reorder_linear_weight(weight_OI.contiguous()))


def packs(weight_OI: Tensor) -> bool:
    """Whether a matrix is packed: on x86, in bfloat16 if the processor has products for it, and in
    float32 unless it is small. Plain products of tiny models have the same digits everywhere."""
    if not torch.backends.mkldnn.is_available() or platform.machine() not in ("x86_64", "AMD64"):
        return False
    if weight_OI.device.type not in ("cpu", "meta"):
        return False
    if weight_OI.dtype == torch.bfloat16:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return weight_OI.dtype == torch.float32 and weight_OI.numel() >= SMALL


_HEADS: MutableMapping[Tensor, tuple[int, weakref.ref[PackedMatrix]]] = WeakTensorKeyDictionary()


def head_of(weight_VD: Tensor, dtype: torch.dtype) -> Matrix:
    """Return a head for products. A plain one shares the model's memory. A packed one is shared by
    the adapters on one model, while its weights are the same."""
    head_VD = weight_VD.detach().to(dtype)
    if not packs(head_VD):
        return head_VD.t()
    version, reference = _HEADS.get(weight_VD, (-1, lambda: None))
    packed = reference()
    if packed is None or version != weight_VD._version or packed.blocks.dtype != dtype:
        packed = pack(head_VD)
        _HEADS[weight_VD] = weight_VD._version, weakref.ref(packed)
    return packed


@dataclass
class LayerWeights:
    """A decoder layer."""

    input_norm_D: Tensor
    qkv: Matrix
    """(D, (H + 2J) E); within each query and key head, rotary pairs are adjacent."""
    qkv_bias: Tensor | None
    qk_norm: Tensor | None
    """(H + J, E) weights of the query and key norms."""
    out: Matrix
    out_bias: Tensor | None
    post_norm_D: Tensor
    gate_up: Matrix
    """(D, 2F)"""
    gate_up_bias: Tensor | None
    down: Matrix
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
        self.head: Matrix
        if isinstance(model.lm_head, Int8Linear):
            self.head = Int8Matrix(model.lm_head.weight, model.lm_head.scale_O)
        else:
            self.head = head_of(model.lm_head.weight, dtype)
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

    order = _pair_order(config, len(qkv), layer.input_layernorm.weight.device)
    qk_norm = None
    if hasattr(attention, "q_norm"):
        heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
        rows = [attention.q_norm.weight] * heads + [attention.k_norm.weight] * kv_heads
        qk_norm = torch.stack(rows).detach().to(dtype).reshape(-1)
        qk_norm = qk_norm[order[: len(rows) * attention.head_dim]]
        qk_norm = qk_norm.view(len(rows), attention.head_dim)
    return LayerWeights(
        input_norm_D=layer.input_layernorm.weight.detach().to(dtype, copy=True),
        qkv=matrix(qkv[order]),
        qkv_bias=None if qkv_bias is None else qkv_bias[order],
        qk_norm=qk_norm,
        out=matrix(out),
        out_bias=out_bias,
        post_norm_D=layer.post_attention_layernorm.weight.detach().to(dtype, copy=True),
        gate_up=matrix(gate_up),
        gate_up_bias=gate_up_bias,
        down=matrix(down),
        down_bias=down_bias,
        window=window(config, attention),
    )


def _dense(
    linears: list[Any], adapter: str | None, dtype: torch.dtype
) -> tuple[Tensor | Int8Matrix, Tensor | None]:
    """Concatenated weights (sum of out, in) and bias of several linear layers."""
    biases = [linear.bias for linear in linears]
    bias = None
    if any(b is not None for b in biases):
        bias = torch.cat([b.detach().to(dtype) for b in biases])
    if all(isinstance(getattr(linear, "base_layer", linear), Int8Linear) for linear in linears):
        return _in_codes(linears, adapter), bias
    weights = []
    for linear in linears:
        weight = dequantized(linear)
        if adapter is not None and adapter in getattr(linear, "lora_A", {}):
            weight = weight + linear.get_delta_weight(adapter).to(weight.dtype)
        weights.append(weight.detach().to(dtype))
    return torch.cat(weights), bias


def _in_codes(linears: list[Any], adapter: str | None) -> Int8Matrix:
    """The codes of several linear layers, which a merged adapter would round away."""
    bases = [getattr(linear, "base_layer", linear) for linear in linears]
    codes = torch.cat([base.weight for base in bases])
    scale = torch.cat([base.scale_O for base in bases])
    adapted = [n for n, linear in enumerate(linears) if adapter in getattr(linear, "lora_A", {})]
    if not adapted:
        return Int8Matrix(codes, scale)
    downs = [linears[n].lora_A[adapter].weight.detach() for n in adapted]
    up = torch.zeros(sum(map(len, downs)), len(scale))
    first = [0, *accumulate(base.out_features for base in bases)]
    rank = 0
    for n, down in zip(adapted, downs, strict=True):
        own = linears[n].lora_B[adapter].weight.detach() * linears[n].scaling[adapter]
        up[rank : rank + len(down), first[n] : first[n + 1]] = own.t()
        rank += len(down)
    return Int8Matrix(codes, scale, (torch.cat(downs).t().contiguous(), up))


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
