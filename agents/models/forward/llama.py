"""Hidden states of scored positions, computed once for each distinct context.

Linear layers are the model's, with any active adapters; packing, norms, rotations and attention are
implemented here. The result agrees with the model's forward pass up to rounding.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from coterie.agents.models.family import is_llama_like, window
from coterie.agents.models.forward import tree
from coterie.agents.models.forward.functions import norm, rotate, swiglu
from coterie.agents.models.forward.segments import causal_bias

# B rows, T positions, S nodes, Q queries of a row, M nodes that attend, H query heads, J key-value
# heads, E head width, D model width, N scored positions

# Attention weights that the backward pass may keep, in float32: 256 MiB.
_ATTENTION_KEPT = 1 << 26


class TreeForward:
    """The forward pass of a model on a CPU, for rows so short that attention is cheap."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._heads: int = model.config.num_attention_heads

    @staticmethod
    def supports(model: nn.Module) -> bool:
        """Whether the parts of ``model`` are known and not fused."""
        config: Any = getattr(model, "config", None)
        return is_llama_like(model) and config.model_type != "phi3" and config.hidden_act == "silu"

    def fits(self, ids_BT: Tensor) -> bool:
        """Whether this class supports the batch: float32, on a CPU, rows not too long."""
        rows, width = ids_BT.shape
        model = self._model.model
        weight = model.embed_tokens.weight
        return (
            weight.device.type in ("cpu", "meta")
            and weight.dtype == torch.float32
            and len(model.layers) * self._heads * rows * width**2 <= _ATTENTION_KEPT
        )

    def __call__(self, ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Return last hidden states (N, D) at the positions of ``mask_BT`` (B, T - 1), row by
        row."""
        model = self._model.model
        rows = tree.build(ids_BT.numpy(), mask_BT.numpy())
        position_1S = torch.from_numpy(rows.position_S)[None]
        x = model.embed_tokens(torch.from_numpy(rows.ids_S))
        cos, sin = model.rotary_emb(x, position_1S)
        half = cos.shape[-1] // 2
        turn = cos[0, :, None, :half].contiguous(), sin[0, :, None, :half].contiguous()
        every = _Attention(rows, rows.every, self._model.config)
        for layer in model.layers[:-1]:
            x = _layer(layer, x, x, turn, turn, every)
        chosen_M = torch.from_numpy(rows.scored.node_M)
        last = _Attention(rows, rows.scored, self._model.config)
        turn_M = turn[0][chosen_M], turn[1][chosen_M]
        x = _layer(model.layers[-1], x, x.index_select(0, chosen_M), turn, turn_M, last)
        x = norm(x, model.norm.weight, model.norm.variance_epsilon)
        return x.index_select(0, torch.from_numpy(rows.scored_N))


class _Attention:
    """Indices of queries and keys for each head, and the mask between them."""

    def __init__(self, rows: tree.Tree, queries: tree.Queries, config: Any) -> None:
        heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._shape = (*queries.index_BQ.shape, rows.path_BT.shape[1])
        self._heads = heads
        position_BQ1, positions = torch.from_numpy(queries.position_BQ)[:, :, None], self._shape[2]
        self._bias = cache(lambda window: causal_bias(position_BQ1, positions, window))
        # Indices select (node, head) pairs as rows, so that no copy has to be transposed.
        self._query_rows = _by_head(torch.from_numpy(queries.index_BQ), heads)
        self._key_rows = _by_head(torch.from_numpy(rows.path_BT), kv_heads)
        slot_M = torch.from_numpy(queries.slot_M)[:, None]
        slots = self._shape[1]
        head_H = torch.arange(heads)
        self._answer = ((slot_M // slots * heads + head_H) * slots + slot_M % slots).view(-1)

    def __call__(self, q_MHE: Tensor, k_SJE: Tensor, v_SJE: Tensor, window: int | None) -> Tensor:
        """Return the attention output of each query, (M, H E)."""
        rows, slots, positions = self._shape
        kv_heads, width = k_SJE.shape[1:]
        q = q_MHE.view(-1, width).index_select(0, self._query_rows)
        k = k_SJE.view(-1, width).index_select(0, self._key_rows).view(-1, positions, width)
        v = v_SJE.view(-1, width).index_select(0, self._key_rows).view(-1, positions, width)
        # All queries of the query heads that share a key head form one matrix.
        scores = torch.bmm(q.view(rows * kv_heads, -1, width), k.transpose(1, 2))
        scores = scores.view(rows, self._heads, slots, positions) + self._bias(window)
        p = torch.softmax(scores, -1).view(rows * kv_heads, -1, positions)
        return torch.bmm(p, v).view(-1, width).index_select(0, self._answer).view(len(q_MHE), -1)


def _layer(
    layer: Any,
    x_SD: Tensor,
    x_MD: Tensor,
    turn_S: tuple[Tensor, Tensor],
    turn_M: tuple[Tensor, Tensor],
    attend: _Attention,
) -> Tensor:
    """One decoder layer's output (M, D) at the nodes that attend, from the input at all nodes."""
    own, first = layer.self_attn, layer.input_layernorm
    h_SD = norm(x_SD, first.weight, first.variance_epsilon)
    h_MD = h_SD if x_MD is x_SD else norm(x_MD, first.weight, first.variance_epsilon)
    q = own.q_proj(h_MD).view(len(h_MD), -1, own.head_dim)
    k = own.k_proj(h_SD).view(len(h_SD), -1, own.head_dim)
    v = own.v_proj(h_SD).view(len(h_SD), -1, own.head_dim)
    if hasattr(own, "q_norm"):
        q = norm(q, own.q_norm.weight, own.q_norm.variance_epsilon)
        k = norm(k, own.k_norm.weight, own.k_norm.variance_epsilon)
    q, k = rotate(q, *turn_M) * own.scaling, rotate(k, *turn_S)
    x = x_MD + own.o_proj(attend(q, k, v, window(own.config, own)))
    second, mlp = layer.post_attention_layernorm, layer.mlp
    h = norm(x, second.weight, second.variance_epsilon)
    return x + mlp.down_proj(swiglu(mlp.gate_proj(h), mlp.up_proj(h)))


def _by_head(index: Tensor, heads: int) -> Tensor:
    """Turn indices (B, Q) into S into flattened indices (B, heads, Q) into S * heads."""
    return (index[:, None] * heads + torch.arange(heads)[:, None]).view(-1)
