"""A functional decoder for the Llama family: few, large operations on pre-fused weights.

Agrees with the module's own forward pass to rounding. Two choices carry the speed on a CPU: keys
are cached as (row, E, T), in which the product with a query reads memory in order, and rotations
are complex multiplications.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from coterie.models.sampler.weights import LayerWeights, layer_weights

# P distinct prompts, B rows, T cached positions, D model width, H query heads, J key-value heads,
# G = H / J, E head width, R rotary width, V vocabulary


class FusedWeights:
    """Everything about a model that does not change while a batch is sampled."""

    def __init__(self, model: Any, adapter: str | None, dtype: torch.dtype) -> None:
        config = model.config
        self.layers: list[LayerWeights] = [
            layer_weights(layer, config, adapter, dtype) for layer in model.model.layers
        ]
        attention = model.model.layers[0].self_attn
        self.embedding = model.model.embed_tokens.weight.detach().to(dtype)
        self.norm_D = model.model.norm.weight.detach().to(dtype, copy=True)
        self.eps = torch.tensor(model.model.norm.variance_epsilon, device=self.norm_D.device)
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
        """(T, R/2) complex rotations of positions 0..T-1, from the model's own rotary module."""
        positions = torch.arange(length, device=self.device)[None]
        like = torch.empty(0, dtype=torch.float32, device=self.device)
        cos, sin = self.rotary(like, positions)
        half = cos.shape[-1] // 2
        return torch.complex(cos[0, :, :half].contiguous(), sin[0, :, :half].contiguous())


class FusedDecoder:
    """Rows under way; their caches are allocated once for prompt and answer."""

    def __init__(self, weights: FusedWeights, prefill_tokens: int = 1 << 14) -> None:
        self._w = weights
        self._prefill_tokens = prefill_tokens

    def prefill(self, prompts: list[list[int]], fork_B: list[int], room: int) -> Tensor:
        w = self._w
        longest = max(map(len, prompts))
        self._length = longest
        size = longest + room
        self._turns = w.turns(size)
        # Padded on the left: every row's newest token then lies in the same column.
        ids_PT = torch.tensor([[0] * (longest - len(p)) + p for p in prompts], device=w.device)
        pad_P = torch.tensor([longest - len(p) for p in prompts], device=w.device)
        fork_B_ = torch.tensor(fork_B, device=w.device)
        self._pad_B = pad_P[fork_B_]
        self._rows = len(fork_B)
        shape = (len(w.layers), self._rows, w.kv_heads)
        self._keys = torch.empty(*shape, w.width, size, dtype=w.dtype, device=w.device)
        self._values = torch.empty(*shape, size, w.width, dtype=w.dtype, device=w.device)
        # Padding columns are masked, but 0 times what lies there by chance may be NaN.
        self._keys[..., :longest].zero_()
        self._values[..., :longest, :].zero_()
        self._bias_BT = self._padding_bias(size)

        logits_PV = []
        chunk = max(1, self._prefill_tokens // longest)
        for start in range(0, len(prompts), chunk):
            part = slice(start, start + chunk)
            rows_N = ((fork_B_ >= start) & (fork_B_ < start + chunk)).nonzero()[:, 0]
            logits_PV.append(
                self._prefill_chunk(ids_PT[part], pad_P[part], rows_N, fork_B_[rows_N] - start)
            )
        return torch.cat(logits_PV)[fork_B_]

    def step(self, tokens_B: Tensor) -> Tensor:
        w, n, t = self._w, self._rows, self._length
        x_BD = F.embedding(tokens_B, w.embedding)
        turns = self._turns[t - self._pad_B[:n]][:, None]
        group = w.heads // w.kv_heads
        for i, layer in enumerate(w.layers):
            q, k, v = self._project(x_BD, layer, turns)
            keys, values = self._keys[i, :n], self._values[i, :n]
            keys[..., t] = k
            values[..., t, :] = v
            start = 0 if layer.window is None else max(0, t + 1 - layer.window)
            scores = torch.bmm(
                q.reshape(n * w.kv_heads, group, w.width),
                keys.view(n * w.kv_heads, w.width, -1)[..., start : t + 1],
            )
            p = self._attend(scores.view(n, w.kv_heads * group, -1), start, t + 1)
            mixed = torch.bmm(
                p.view(n * w.kv_heads, group, -1),
                values.view(n * w.kv_heads, -1, w.width)[:, start : t + 1],
            )
            x_BD = self._finish(x_BD, mixed.view(n, -1), layer)
        self._length += 1
        return self._logits(x_BD)

    def drop(self, holes_N: Tensor, movers_N: Tensor, rows: int) -> None:
        if len(holes_N):
            t = self._length
            self._keys[:, holes_N, :, :, :t] = self._keys[:, movers_N, :, :, :t]
            self._values[:, holes_N, :, :t] = self._values[:, movers_N, :, :t]
            self._pad_B[holes_N] = self._pad_B[movers_N]
            if self._bias_BT is not None:
                self._bias_BT[holes_N] = self._bias_BT[movers_N]
        self._rows = rows

    def _prefill_chunk(self, ids: Tensor, pad: Tensor, rows_N: Tensor, fork_N: Tensor) -> Tensor:
        w = self._w
        count, longest = ids.shape
        columns = torch.arange(longest, device=w.device)
        turns = self._turns[(columns - pad[:, None]).clamp(min=0)].view(-1, 1, self._turns.shape[1])
        x = F.embedding(ids.view(-1), w.embedding)
        for i, layer in enumerate(w.layers):
            q, k, v = (
                part.view(count, longest, -1, w.width).transpose(1, 2)
                for part in self._project(x, layer, turns)
            )
            self._keys[i, rows_N, :, :, :longest] = k.transpose(2, 3)[fork_N]
            self._values[i, rows_N, :, :longest] = v[fork_N]
            mixed = F.scaled_dot_product_attention(
                q,
                k,
                v,
                attn_mask=_causal_mask(columns, pad, layer.window),
                scale=w.scale,
                enable_gqa=True,
            )
            x = self._finish(x, mixed.transpose(1, 2).reshape(count * longest, -1), layer)
        # The last column holds every prompt's last token.
        return self._logits(x.view(count, longest, -1)[:, -1])

    def _project(
        self, x: Tensor, layer: LayerWeights, turns: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Normalised input to rotated queries (N, H, E), rotated keys and values (N, J, E)."""
        w = self._w
        qkv = _affine(_rms(x, layer.input_norm_D, w.eps), layer.qkv, layer.qkv_bias)
        qkv = qkv.view(len(x), -1, w.width)
        qk, v = qkv[:, : w.heads + w.kv_heads], qkv[:, w.heads + w.kv_heads :]
        if layer.qk_norm is not None:
            qk = _rms(qk, None, w.eps) * layer.qk_norm
        rotary = 2 * turns.shape[-1]
        turned = torch.view_as_complex(qk[..., :rotary].float().unflatten(-1, (-1, 2))) * turns
        turned = torch.view_as_real(turned).flatten(-2).to(w.dtype)
        if rotary < w.width:
            turned = torch.cat([turned, qk[..., rotary:]], -1)
        return turned[:, : w.heads], turned[:, w.heads :], v

    def _attend(self, scores: Tensor, start: int, end: int) -> Tensor:
        """Softmax in float32 of scaled scores (B, H, T), without the padding."""
        scores = scores.float().mul_(self._w.scale)
        if self._bias_BT is not None:
            scores += self._bias_BT[: self._rows, None, start:end]
        return torch.softmax(scores, -1).to(self._w.dtype)

    def _finish(self, x: Tensor, mixed: Tensor, layer: LayerWeights) -> Tensor:
        """Output projection and feed-forward, with both residual connections."""
        x = _affine(mixed, layer.out, layer.out_bias, x)
        h = _affine(_rms(x, layer.post_norm_D, self._w.eps), layer.gate_up, layer.gate_up_bias)
        gate, up = h.chunk(2, -1)
        return _affine(self._w.act(gate).mul_(up), layer.down, layer.down_bias, x)

    def _logits(self, x: Tensor) -> Tensor:
        return _affine(_rms(x, self._w.norm_D, self._w.eps), self._w.head, self._w.head_bias)

    def _padding_bias(self, size: int) -> Tensor | None:
        """(B, T) minus infinity at each row's padding; None where there is none."""
        if not bool(self._pad_B.any()):
            return None
        columns = torch.arange(size, device=self._w.device)
        zero = torch.zeros(self._rows, size, device=self._w.device)
        return zero.masked_fill_(columns < self._pad_B[:, None], -torch.inf)


def _causal_mask(columns_T: Tensor, pad_P: Tensor, window: int | None) -> Tensor:
    """(P, 1, T, T) true where a query may look at a key."""
    ahead = columns_T[:, None] - columns_T[None, :]
    seen = ahead >= 0
    if window is not None:
        seen &= ahead < window
    mask = seen & (columns_T >= pad_P[:, None])[:, None, :]
    # A padding query sees only itself, lest its softmax be empty.
    return (mask | (ahead == 0))[:, None]


def _rms(x: Tensor, weight: Tensor | None, eps: Tensor) -> Tensor:
    """x / sqrt(mean x^2 + eps) in float32, times the weight."""
    # Fewer passes over few numbers than torch's own, which composes squares, mean and sum.
    wide = x.float()
    norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    scale = torch.addcmul(eps, norm, norm, value=1 / x.shape[-1]).rsqrt_()
    y = (wide * scale).to(x.dtype)
    return y if weight is None else y.mul_(weight)


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None, residual: Tensor | None = None):
    """x W + b + residual, where W is (in, out)."""
    y = torch.mm(x, weight) if residual is None else torch.addmm(residual, x, weight)
    return y if bias is None else y + bias
