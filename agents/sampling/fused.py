"""The fused decoder for the Llama family: few large operations on fused weights.

It agrees with the model's own forward pass up to rounding. Its speed on a CPU comes from two
choices: keys are cached as (row, E, T), so that products with queries read memory in order, and
rotations are complex multiplications.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from coterie.agents.sampling.contexts import RowContexts, contexts
from coterie.agents.sampling.kept import KeptContext
from coterie.agents.sampling.weights import FusedWeights, LayerWeights, Matrix

# P distinct prompts, B rows, T cached positions, D model width, H query heads, J key-value heads,
# G = H / J, E head width, R rotary width, V vocabulary

_PREFILL_TOKENS = 1 << 14
"""Tokens of prompts, padding included, that are computed at once."""
Store = Callable[[int, Tensor, Tensor, int], tuple[Tensor, Tensor]]
"""Stores a layer's new keys and values of rows from a number on; returns those of all positions."""


class FusedDecoder:
    """Implements :class:`coterie.agents.sampling.decoder.Decoder` for the Llama family."""

    def __init__(self, weights: FusedWeights) -> None:
        self._w = weights

    def prefill(self, prompts: list[list[int]], fork_B: list[int], room: int) -> Tensor:
        w = self._w
        longest = max(map(len, prompts))
        self._contexts = contexts(w, prompts, fork_B, room)
        self._turns = w.turns(longest + room)
        # Padding on the left puts every row's newest token into the same column.
        ids_PT = torch.tensor([[0] * (longest - len(p)) + p for p in prompts], device=w.device)
        pad_P = torch.tensor([longest - len(p) for p in prompts], device=w.device)
        logits_PV = self._read(ids_PT, pad_P, 0, self._contexts.keep)
        return logits_PV[torch.tensor(fork_B, device=w.device)]

    def resume(self, prompts: list[list[int]], kept: list[KeptContext], room: int) -> Tensor:
        """Read what the prompts have beyond contexts that were kept; otherwise as :meth:`prefill`.

        Args:
            prompts: one for each row.
            kept: the context that each of them continues.
            room: most new tokens of a row.
        """
        w = self._w
        # All rows read equally many tokens, some of them again.
        read = max(len(prompt) - len(context) for prompt, context in zip(prompts, kept))
        start = max(map(len, prompts)) - read
        pad_B = torch.tensor([start + read - len(prompt) for prompt in prompts], device=w.device)
        rows_B = torch.arange(len(prompts), device=w.device)
        cache = RowContexts(w, pad_B, rows_B, start, read + room)
        for row, context in enumerate(kept):
            cache.resume(row, context)
        self._contexts, self._turns = cache, w.turns(start + read + room)
        ids_BT = torch.tensor([prompt[-read:] for prompt in prompts], device=w.device)
        logits_BV = self._read(ids_BT, pad_B, start, cache.extend)
        cache.length += read
        return logits_BV

    def context_of(self, row: int) -> KeptContext:
        """Return a copy of what is computed of a row, without its newest token."""
        return self._contexts.context_of(row)

    def step(self, tokens_B: Tensor) -> Tensor:
        w, contexts = self._w, self._contexts
        x_BD = F.embedding(tokens_B, w.embedding)
        turns = self._turns[contexts.length - contexts.pad_B[: len(tokens_B)]][:, None]
        for i, layer in enumerate(w.layers):
            mixed = contexts.attend(i, *self._project(x_BD, layer, turns))
            x_BD = self._finish(x_BD, mixed, layer)
        contexts.length += 1
        return self._logits(x_BD)

    def drop(self, holes_N: Tensor, movers_N: Tensor, rows: int) -> None:
        self._contexts.drop(holes_N, movers_N, rows)

    def _read(self, ids_NT: Tensor, pad_N: Tensor, start: int, store: Store) -> Tensor:
        """Read tokens from column ``start`` on; return the logits (N, V) of the next ones."""
        w, read = self._w, ids_NT.shape[1]
        columns = start + torch.arange(read, device=w.device)
        chunk = max(1, _PREFILL_TOKENS // (start + read))
        logits = []
        for first in range(0, len(ids_NT), chunk):
            ids, pad = ids_NT[first : first + chunk], pad_N[first : first + chunk]
            turns = self._turns[(columns - pad[:, None]).clamp(min=0)].flatten(0, 1)[:, None]
            x = F.embedding(ids.reshape(-1), w.embedding)
            for i, layer in enumerate(w.layers):
                q, k, v = (
                    part.view(len(ids), read, -1, w.width).transpose(1, 2)
                    for part in self._project(x, layer, turns)
                )
                keys, values = store(i, k, v, first)
                mask = _causal_mask(columns, pad, layer.window, keys.shape[2])
                mixed = F.scaled_dot_product_attention(
                    q, keys, values, attn_mask=mask, scale=w.scale, enable_gqa=True
                )
                x = self._finish(x, mixed.transpose(1, 2).reshape(len(x), -1), layer)
            # The last column has every row's last token.
            logits.append(self._logits(x.view(len(ids), read, -1)[:, -1]))
        return torch.cat(logits)

    def _project(
        self, x: Tensor, layer: LayerWeights, turns: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries (N, H, E), rotated keys and values (N, J, E) of the input."""
        w = self._w
        qkv = _affine(_rms(x, layer.input_norm_D, w), layer.qkv, layer.qkv_bias)
        qkv = qkv.view(len(x), -1, w.width)
        qk, v = qkv[:, : w.heads + w.kv_heads], qkv[:, w.heads + w.kv_heads :]
        if layer.qk_norm is not None:
            qk = _rms(qk, None, w) * layer.qk_norm
        rotary = 2 * turns.shape[-1]
        turned = torch.view_as_complex(qk[..., :rotary].float().unflatten(-1, (-1, 2))) * turns
        turned = torch.view_as_real(turned).flatten(-2).to(w.dtype)
        if rotary < w.width:
            turned = torch.cat([turned, qk[..., rotary:]], -1)
        return turned[:, : w.heads], turned[:, w.heads :], v

    def _finish(self, x: Tensor, mixed: Tensor, layer: LayerWeights) -> Tensor:
        """Output projection and feed-forward, with both residual connections."""
        x = _affine(mixed, layer.out, layer.out_bias, x)
        h = _affine(_rms(x, layer.post_norm_D, self._w), layer.gate_up, layer.gate_up_bias)
        gate, up = h.chunk(2, -1)
        return _affine(self._w.act(gate).mul_(up), layer.down, layer.down_bias, x)

    def _logits(self, x: Tensor) -> Tensor:
        return _affine(_rms(x, self._w.norm_D, self._w), self._w.head, self._w.head_bias)


def _causal_mask(columns_T: Tensor, pad_P: Tensor, window: int | None, keys: int) -> Tensor:
    """(P, 1, T, keys) true where the queries in some columns may attend to a key."""
    columns_K = torch.arange(keys, device=columns_T.device)
    ahead = columns_T[:, None] - columns_K[None, :]
    seen = ahead >= 0
    if window is not None:
        seen &= ahead < window
    mask = seen & (columns_K >= pad_P[:, None])[:, None, :]
    # A padding query sees itself, because an empty softmax is NaN.
    return (mask | (ahead == 0))[:, None]


def _rms(x: Tensor, weight: Tensor | None, weights: FusedWeights) -> Tensor:
    """x / sqrt(mean x^2 + eps) in float32, times the weight."""
    if x.is_cuda:  # one kernel instead of seven: launching them takes most of a step's time
        return F.rms_norm(x, x.shape[-1:], weight, weights.eps)
    # Fewer memory passes than torch's version, which composes squares, mean and sum.
    wide = x.float()
    norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    scale = torch.addcmul(weights.eps_tensor, norm, norm, value=1 / x.shape[-1]).rsqrt_()
    y = (wide * scale).to(x.dtype)
    return y if weight is None else y.mul_(weight)


def _affine(x: Tensor, weight: Matrix, bias: Tensor | None, residual: Tensor | None = None):
    """x W + b + residual."""
    if not isinstance(weight, Tensor):
        return weight.multiply(x, bias, residual)
    y = torch.mm(x, weight) if residual is None else torch.addmm(residual, x, weight)
    return y if bias is None else y + bias
