"""Batches of rows that are sampled together, bounded by memory, and their state."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from coterie.agents.models.family import cache_width
from coterie.agents.sampling.choose import uniforms
from coterie.agents.sampling.stops import StopFinder
from coterie.datatypes import Completion, Sampling

# B rows under way, N those that are chosen, T tokens

_CHUNK = 64

_CPU_CACHE_BYTES = 2 << 30
_LOGITS_BYTES = 1 << 29


@dataclass(frozen=True)
class SamplingRequest:
    """A completion to sample."""

    tokens: npt.NDArray[np.int64]
    """(T,) the prompt, at least one token."""
    seed: int
    """Determines the row's random stream; up to rounding, its tokens do not depend on the batch."""
    sampling: Sampling
    continues: bool = False
    """Whether the next turn may continue this answer, so that its context is kept."""


@dataclass(frozen=True)
class BatchLimits:
    """Limits of a batch."""

    rows: int
    tokens: int
    """Rows times (longest prompt + longest answer)."""

    @staticmethod
    def for_model(model: Any, device: torch.device) -> "BatchLimits":
        """Return limits by free memory: a quarter of a GPU's, or 2 GiB on a CPU."""
        config = model.config.get_text_config()
        per_token = config.num_hidden_layers * cache_width(config) * model.dtype.itemsize
        free = _CPU_CACHE_BYTES
        if device.type == "cuda":
            free = torch.cuda.mem_get_info(device)[0] // 4
        # Logits, probabilities, their running sum and one temporary, in float32.
        per_row = 16 * config.vocab_size
        return BatchLimits(
            rows=max(1, _LOGITS_BYTES // per_row), tokens=max(1, free // max(per_token, 1))
        )


def partition(requests: Sequence[SamplingRequest], limits: BatchLimits) -> Iterator[list[int]]:
    """Divide ``requests`` into batches of indices within ``limits``, with equal prompts and similar
    lengths together. A request beyond the limits gets its own batch."""
    order = sorted(
        range(len(requests)),
        key=lambda i: (len(requests[i].tokens), requests[i].tokens.tobytes(), i),
    )
    batch: list[int] = []
    answer = 0
    for i in order:
        # Lengths ascend, so the newest request has the longest prompt.
        longest = max(answer, requests[i].sampling.max_new_tokens)
        size = (len(batch) + 1) * (len(requests[i].tokens) + longest)
        if batch and (len(batch) == limits.rows or size > limits.tokens):
            yield batch
            batch, longest = [], requests[i].sampling.max_new_tokens
        batch.append(i)
        answer = longest
    if batch:
        yield batch


class SamplingState:
    """The sampled tokens of a batch and its live rows, in numpy on the CPU."""

    def __init__(
        self,
        requests: list[SamplingRequest],
        eos: npt.NDArray[np.int64],
        finder: Callable[[tuple[str, ...]], StopFinder],
    ) -> None:
        self._requests = requests
        limits_B = np.array([request.sampling.max_new_tokens for request in requests])
        self.room = int(limits_B.max())
        self._tokens_BT = np.zeros((len(requests), self.room), np.int64)
        self._logp_BT = np.zeros((len(requests), self.room), np.float32)
        self._length_B = np.zeros(len(requests), np.int64)
        self._finish: list[str] = ["length"] * len(requests)
        self._limit_B = limits_B
        self._eos = eos
        self._seed_B = np.array([request.seed & (2**64 - 1) for request in requests], np.uint64)
        self._live_B = np.arange(len(requests))
        self._step = 0
        kinds = sorted(
            {request.sampling.stop for request in requests if any(request.sampling.stop)}
        )
        self._finders = [finder(stop) for stop in kinds]
        kind_of = {stop: i for i, stop in enumerate(kinds)}
        self._kind_B = np.array([kind_of.get(request.sampling.stop, -1) for request in requests])

    def next_uniforms(self) -> npt.NDArray[np.float32]:
        """Return the next random number of each live row, (B,)."""
        at = self._step % _CHUNK
        if at == 0:
            self._u_BT = uniforms(self._seed_B, self._step, min(_CHUNK, self.room - self._step))
        return self._u_BT[self._live_B, at]

    def append(
        self, tokens_B: npt.NDArray[np.int64], logp_B: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.bool_]:
        """Append a token to each live row; return which rows end with it, (B,)."""
        live_B = self._live_B
        self._tokens_BT[live_B, self._step] = tokens_B
        self._logp_BT[live_B, self._step] = logp_B
        self._step += 1
        self._length_B[live_B] = self._step
        over_B = self._limit_B[live_B] <= self._step
        for kind, finder in enumerate(self._finders):
            same_N = np.nonzero(self._kind_B[live_B] == kind)[0]
            for i in same_N[finder.suspects(tokens_B[same_N])]:
                row = live_B[i]
                if finder.completes(self._tokens_BT[row, : self._step]):
                    self._finish[row] = "stop"
                    over_B[i] = True
        if len(self._eos):
            ended_B = (tokens_B[:, None] == self._eos).any(1)
            for row in live_B[ended_B]:
                self._finish[row] = "eos"
            over_B |= ended_B
        return over_B

    def continuing(self, over_B: npt.NDArray[np.bool_]) -> list[int]:
        """Return the live rows among these that the next turn may continue."""
        rows = np.nonzero(over_B)[0].tolist()
        return [row for row in rows if self._requests[self._live_B[row]].continues]

    def read(self, live: int) -> npt.NDArray[np.int64]:
        """Return what the model has read of a live row: all but its newest token."""
        row = self._live_B[live]
        return np.concatenate([self._requests[row].tokens, self._tokens_BT[row, : self._step - 1]])

    def select(self, keep_N: npt.NDArray[np.int64]) -> None:
        """Continue with these live rows, in this order."""
        self._live_B = self._live_B[keep_N]

    def completions(self, version: int) -> list[Completion]:
        """Return the sampled rows in the order of the requests; ``version`` is that of the
        weights."""
        return [
            Completion(tokens[:n].copy(), logp[:n].copy(), finish, version)  # type: ignore[arg-type]
            for tokens, logp, n, finish in zip(
                self._tokens_BT, self._logp_BT, self._length_B, self._finish
            )
        ]


def fill_holes(
    over_B: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Plan the removal of ended rows by moving rows from the end into their slots, which copies at
    most as many rows as ended.

    Returns:
        (continuing rows in their new order, slots to fill, rows that fill them).
    """
    count = int((~over_B).sum())
    keep_N = np.arange(count)
    holes = np.nonzero(over_B[:count])[0]
    movers = count + np.nonzero(~over_B[count:])[0]
    keep_N[holes] = movers
    return keep_N, holes, movers
