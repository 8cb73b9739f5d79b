"""Key-value caches of rows in progress, and the attention of their newest tokens.

There are two layouts. :class:`RowContexts` has a whole context for each row, and few large
operations, which suits short contexts. :class:`SharedContexts` has each prompt once for all rows
that continue it, and reads it once for all of them. For long prompts on a CPU, prompts are most of
what a step reads besides the weights.

Legend: P distinct prompts, B rows, S slots for rows of one prompt, T cached positions, H query
heads, J key-value heads, G = H / J, E head width.
"""

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from coterie.agents.sampling.kept import KeptContext
from coterie.agents.sampling.weights import FusedWeights

_SHARED_BYTES = 256 << 20
"""Saved bytes below which copies are as fast as sharing, as for rows of 100 tokens."""
_PADDED = 2
"""Largest ratio of slots to rows; prompts have different numbers of rows."""


def contexts(
    weights: FusedWeights, prompts: Sequence[Sequence[int]], fork_B: Sequence[int], room: int
) -> "RowContexts | SharedContexts":
    """Return an empty cache in the faster layout.

    Args:
        weights: the model's weights.
        prompts: P lists of ids.
        fork_B: number of the prompt that each row continues.
        room: most new tokens of a row.
    """
    longest, rows = max(map(len, prompts)), len(fork_B)
    per_token = 2 * len(weights.layers) * weights.kv_heads * weights.width * weights.dtype.itemsize
    saved = (rows - len(prompts)) * longest * per_token
    shared = (
        saved >= _SHARED_BYTES
        and len(prompts) * max(Counter(fork_B).values()) <= _PADDED * rows
        and all(layer.window is None for layer in weights.layers)
    )
    layout = SharedContexts if shared else RowContexts
    pad_P = torch.tensor([longest - len(prompt) for prompt in prompts], device=weights.device)
    return layout(weights, pad_P, torch.tensor(fork_B, device=weights.device), longest, room)


class RowContexts:
    """A cache with a whole context for each row, allocated once."""

    def __init__(
        self, weights: FusedWeights, pad_P: Tensor, fork_B: Tensor, longest: int, room: int
    ) -> None:
        self.length = longest
        """Positions of every row so far, including padding on the left."""
        self.pad_B = pad_P[fork_B]
        """Number of padding positions."""
        self._w, self._rows, self._fork_B = weights, len(fork_B), fork_B
        w, size = weights, longest + room
        shape = (len(w.layers), self._rows, w.kv_heads)
        self._keys = torch.empty(*shape, w.width, size, dtype=w.dtype, device=w.device)
        self._values = torch.empty(*shape, size, w.width, dtype=w.dtype, device=w.device)
        # Padding is masked, but 0 times uninitialized memory can be NaN.
        self._keys[..., :longest].zero_()
        self._values[..., :longest, :].zero_()
        self._bias_BT = _padding_bias(self.pad_B, size)

    def keep(self, layer: int, k: Tensor, v: Tensor, first: int) -> tuple[Tensor, Tensor]:
        """Store keys and values of some prompts; return them.

        Args:
            layer: number of the decoder layer.
            k: (P, J, T, E)
            v: (P, J, T, E)
            first: number of the first of these prompts.
        """
        fork_B, longest = self._fork_B - first, k.shape[2]
        rows_N = ((fork_B >= 0) & (fork_B < len(k))).nonzero()[:, 0]
        self._keys[layer, rows_N, :, :, :longest] = k.transpose(2, 3)[fork_B[rows_N]]
        self._values[layer, rows_N, :, :longest] = v[fork_B[rows_N]]
        return k, v

    def resume(self, row: int, context: KeptContext) -> None:
        """Begin a row, whose padding is left out here, with a context that was kept."""
        columns = slice(int(self.pad_B[row]), self.length)
        self._keys[:, row, ..., columns] = context.keys[..., : self.length - columns.start]
        self._values[:, row, :, columns] = context.values[:, :, : self.length - columns.start]

    def extend(self, layer: int, k: Tensor, v: Tensor, first: int) -> tuple[Tensor, Tensor]:
        """Store keys and values of further tokens, which :attr:`length` does not count yet.

        Args:
            layer: number of the decoder layer.
            k: (N, J, T, E)
            v: (N, J, T, E)
            first: number of the first of these N rows.

        Returns:
            keys and values of all their positions, (N, J, length + T, E) each.
        """
        end = self.length + k.shape[2]
        keys = self._keys[layer, first : first + len(k), ..., :end]
        values = self._values[layer, first : first + len(k), :, :end]
        keys[..., self.length :] = k.transpose(2, 3)
        values[:, :, self.length :] = v
        return keys.transpose(2, 3), values

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store keys and values of the newest tokens; return their attention output (B, H E).

        Args:
            layer: number of the decoder layer.
            q: (B, H, E)
            k: (B, J, E)
            v: (B, J, E)
        """
        w, n, t = self._w, self._rows, self.length
        group, window = w.heads // w.kv_heads, w.layers[layer].window
        keys, values = self._keys[layer, :n], self._values[layer, :n]
        keys[..., t] = k
        values[..., t, :] = v
        start = 0 if window is None else max(0, t + 1 - window)
        scores = torch.bmm(
            q.reshape(n * w.kv_heads, group, w.width),
            keys.view(n * w.kv_heads, w.width, -1)[..., start : t + 1],
        )
        scores = scores.view(n, w.heads, -1).float().mul_(w.scale)
        if self._bias_BT is not None:
            scores += self._bias_BT[:n, None, start : t + 1]
        p = torch.softmax(scores, -1).to(w.dtype)
        mixed = torch.bmm(
            p.view(n * w.kv_heads, group, -1),
            values.view(n * w.kv_heads, -1, w.width)[:, start : t + 1],
        )
        return mixed.view(n, -1)

    def drop(self, holes_N: Tensor, movers_N: Tensor, rows: int) -> None:
        """Move the movers into the holes and continue with the first ``rows`` rows."""
        if len(holes_N):
            _move(self._keys, self._values, holes_N, movers_N, self.length)
            self.pad_B[holes_N] = self.pad_B[movers_N]
            if self._bias_BT is not None:
                self._bias_BT[holes_N] = self._bias_BT[movers_N]
        self._rows = rows

    def context_of(self, row: int) -> KeptContext:
        """Return a copy of what is cached of a row."""
        columns = slice(int(self.pad_B[row]), self.length)
        return KeptContext(
            self._keys[:, row, ..., columns].clone(), self._values[:, row, :, columns].clone()
        )


class SharedContexts:
    """A cache with each prompt once and each row's own tokens, for models without windows."""

    def __init__(
        self, weights: FusedWeights, pad_P: Tensor, fork_B: Tensor, longest: int, room: int
    ) -> None:
        self.length, self.pad_B = longest, pad_P[fork_B]
        self._w, self._prompt, self._fork_B = weights, longest, fork_B
        w, layers = weights, len(weights.layers)
        head = {"dtype": w.dtype, "device": w.device}
        shape = (layers, len(pad_P), w.kv_heads, longest, w.width)
        self._prompt_keys, self._prompt_values = (
            torch.zeros(shape, **head),
            torch.zeros(shape, **head),
        )
        shape = (layers, len(fork_B), w.kv_heads)
        self._keys = torch.empty(*shape, w.width, room, **head)
        self._values = torch.empty(*shape, room, w.width, **head)
        self._bias_PT = _padding_bias(pad_P, longest)
        self._assign_slots()

    def _assign_slots(self) -> None:
        """Assign every row a slot next to the other rows of its prompt."""
        prompts = self._prompt_keys.shape[1]
        count_P = torch.bincount(self._fork_B, minlength=prompts)
        self._slots = int(count_P.max())
        order_B = torch.argsort(self._fork_B, stable=True)
        nth_B = torch.arange(len(order_B), device=order_B.device)
        nth_B = nth_B - (count_P.cumsum(0) - count_P)[self._fork_B[order_B]]
        self._slot_B = torch.empty_like(order_B)
        self._slot_B[order_B] = self._fork_B[order_B] * self._slots + nth_B
        # The row of each slot; empty slots compute row 0, whose result is not read.
        self._row_N = torch.zeros(prompts * self._slots, dtype=torch.long, device=order_B.device)
        self._row_N[self._slot_B] = torch.arange(len(order_B), device=order_B.device)

    def keep(self, layer: int, k: Tensor, v: Tensor, first: int) -> tuple[Tensor, Tensor]:
        """See :class:`RowContexts`."""
        self._prompt_keys[layer, first : first + len(k)] = k
        self._prompt_values[layer, first : first + len(k)] = v
        return k, v

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """See :class:`RowContexts`."""
        w, n, t = self._w, len(self._fork_B), self.length - self._prompt
        group = w.heads // w.kv_heads
        keys, values = self._keys[layer, :n], self._values[layer, :n]
        keys[..., t] = k
        values[..., t, :] = v
        own = torch.bmm(
            q.reshape(n * w.kv_heads, group, w.width),
            keys.view(n * w.kv_heads, w.width, -1)[..., : t + 1],
        )
        prompt_keys = self._prompt_keys[layer].flatten(0, 1)
        start = torch.bmm(self._by_prompt(q), prompt_keys.transpose(1, 2))
        start = self._by_row(start).float()
        if self._bias_PT is not None:
            start += self._bias_PT[self._fork_B, None]
        scores = torch.cat([start, own.view(n, w.heads, -1).float()], -1).mul_(w.scale)
        p = torch.softmax(scores, -1).to(w.dtype)
        of_start, of_own = p.split([self._prompt, t + 1], -1)
        mixed = torch.bmm(
            of_own.reshape(n * w.kv_heads, group, -1),
            values.view(n * w.kv_heads, -1, w.width)[:, : t + 1],
        )
        shared = torch.bmm(self._by_prompt(of_start), self._prompt_values[layer].flatten(0, 1))
        return (mixed.view(n, w.heads, -1).float() + self._by_row(shared)).to(w.dtype).flatten(1)

    def _by_prompt(self, x_BHX: Tensor) -> Tensor:
        """Arrange (B, H, X) by prompt, as (P J, S G, X)."""
        w = self._w
        x = x_BHX.index_select(0, self._row_N)
        x = x.view(-1, self._slots, w.kv_heads, w.heads // w.kv_heads, x.shape[-1])
        return x.transpose(1, 2).reshape(-1, x.shape[1] * x.shape[3], x.shape[-1])

    def _by_row(self, x: Tensor) -> Tensor:
        """The inverse of :meth:`_by_prompt`."""
        w = self._w
        x = x.view(-1, w.kv_heads, self._slots, w.heads // w.kv_heads, x.shape[-1])
        return x.transpose(1, 2).reshape(-1, w.heads, x.shape[-1]).index_select(0, self._slot_B)

    def drop(self, holes_N: Tensor, movers_N: Tensor, rows: int) -> None:
        """See :class:`RowContexts`."""
        if len(holes_N):
            _move(self._keys, self._values, holes_N, movers_N, self.length - self._prompt)
            self.pad_B[holes_N] = self.pad_B[movers_N]
            self._fork_B[holes_N] = self._fork_B[movers_N]
        self._fork_B = self._fork_B[:rows]
        self._assign_slots()

    def context_of(self, row: int) -> KeptContext:
        """See :class:`RowContexts`."""
        prompt, own = slice(int(self.pad_B[row]), None), self.length - self._prompt
        fork = int(self._fork_B[row])
        keys = self._prompt_keys[:, fork, :, prompt].transpose(2, 3)
        values = self._prompt_values[:, fork, :, prompt]
        return KeptContext(
            torch.cat([keys, self._keys[:, row, ..., :own]], -1),
            torch.cat([values, self._values[:, row, :, :own]], -2),
        )


def _move(keys: Tensor, values: Tensor, holes_N: Tensor, movers_N: Tensor, used: int) -> None:
    """Copy the first ``used`` positions of the movers, in every layer."""
    keys[:, holes_N, :, :, :used] = keys[:, movers_N, :, :, :used]
    values[:, holes_N, :, :used] = values[:, movers_N, :, :used]


def _padding_bias(pad: Tensor, size: int) -> Tensor | None:
    """(B, T) -inf at the padding on the left; None without padding."""
    if not bool(pad.any()):
        return None
    columns = torch.arange(size, device=pad.device)
    return torch.zeros(len(pad), size, device=pad.device).masked_fill_(
        columns < pad[:, None], -torch.inf
    )
