"""The sampling loop: many rows at once, each with its own prompt, stream and settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from models.family import supported
from models.handle import ModelHandle
from models.sampler.batches import Limits, partition
from models.sampler.choose import Rules, choose
from models.sampler.decoder import Decoder
from models.sampler.fused import FusedDecoder, FusedWeights
from models.sampler.generic import GenericDecoder
from models.sampler.stops import StopFinder
from models.sampler.streams import uniforms
from vocabulary import Completion, Sampling

# B rows under way, V vocabulary

_CHUNK = 64


@dataclass(frozen=True)
class Row:
    """One completion to sample."""

    tokens: npt.NDArray[np.int64]
    """(T,) the prompt, at least one token."""
    seed: int
    """Names the row's random stream; its tokens do not depend on the rest of the batch."""
    sampling: Sampling


class Sampler:
    """Samples from one role's model; follows its weights as ``handle.stamp`` changes.

    ``decode`` turns ids into text, for stop strings. Weights are copied fused where the copy has
    at most ``copy_bytes``; larger models and unknown architectures decode with their own forward
    pass, and so does everything when ``fused`` is false.
    """

    def __init__(
        self,
        handle: ModelHandle,
        decode: Callable[[Sequence[int]], str],
        eos_ids: Sequence[int],
        *,
        fused: bool = True,
        copy_bytes: int = 4 << 30,
        limits: Limits | None = None,
    ) -> None:
        self._handle = handle
        self._decode = decode
        self._eos = np.array(sorted(eos_ids), dtype=np.int64)
        self.fused = fused and supported(handle.causal_lm) and handle.weight_bytes <= copy_bytes
        self._limits = limits or Limits.for_model(handle.causal_lm, handle.device)
        self._weights: FusedWeights | None = None
        self._stamp: tuple[int, int] | None = None
        self._finders: dict[tuple[str, ...], StopFinder] = {}

    @torch.inference_mode()
    def sample(self, rows: Sequence[Row]) -> list[Completion]:
        """One completion a row, in the order of ``rows``.

        Raises :class:`ValueError` for an empty prompt and :class:`FloatingPointError` where the
        model's logits are not finite.
        """
        if any(len(row.tokens) == 0 for row in rows):
            raise ValueError("a prompt has no tokens")
        done: dict[int, Completion] = {}
        with self._handle.active():
            for batch in partition(rows, self._limits):
                for place, completion in zip(batch, self._batch([rows[i] for i in batch])):
                    done[place] = completion
        return [done[i] for i in range(len(rows))]

    def _batch(self, rows: list[Row]) -> list[Completion]:
        handle, device = self._handle, self._handle.device
        batch = _Batch(rows, self._eos, self._finder)
        prompts: dict[bytes, int] = {}
        fork = [prompts.setdefault(row.tokens.tobytes(), len(prompts)) for row in rows]
        distinct = [np.frombuffer(key, np.int64).tolist() for key in prompts]
        decoder = self._decoder()
        logits_BV = decoder.prefill(distinct, fork, batch.room)
        rules = _rules([row.sampling for row in rows], logits_BV.shape[1], device)
        while True:
            u_B = torch.from_numpy(batch.next_uniforms()).to(device)
            tokens_B, logp_B = choose(logits_BV, u_B, rules)
            over_B = batch.append(tokens_B.cpu().numpy(), logp_B.cpu().numpy())
            if over_B.any():
                if over_B.all():
                    return batch.completions(handle.version)
                keep_N, holes, movers = _close_ranks(over_B)
                batch.select(keep_N)
                keep = torch.from_numpy(keep_N).to(device)
                rules, tokens_B = rules.select(keep), tokens_B[keep]
                decoder.drop(
                    torch.from_numpy(holes).to(device),
                    torch.from_numpy(movers).to(device),
                    len(keep_N),
                )
            logits_BV = decoder.step(tokens_B)

    def _decoder(self) -> Decoder:
        handle = self._handle
        if not self.fused:
            return GenericDecoder(handle.causal_lm, handle.device)
        if self._weights is None or self._stamp != handle.stamp:
            # The old copy goes first, so that there is never room needed for two.
            self._weights = None
            self._weights = FusedWeights(handle.causal_lm, handle.adapter)
            self._stamp = handle.stamp
        return FusedDecoder(self._weights)

    def _finder(self, stop: tuple[str, ...]) -> StopFinder:
        if stop not in self._finders:
            vocab_size = self._handle.vocab_size
            self._finders[stop] = StopFinder(stop, self._decode, vocab_size)
        return self._finders[stop]


class _Batch:
    """What has been sampled, and which rows go on; on the CPU, in numpy."""

    def __init__(
        self,
        rows: list[Row],
        eos: npt.NDArray[np.int64],
        finder: Callable[[tuple[str, ...]], StopFinder],
    ) -> None:
        limits_B = np.array([row.sampling.max_new_tokens for row in rows])
        self.room = int(limits_B.max())
        self._tokens_BT = np.zeros((len(rows), self.room), np.int64)
        self._logp_BT = np.zeros((len(rows), self.room), np.float32)
        self._length_B = np.zeros(len(rows), np.int64)
        self._finish: list[str] = ["length"] * len(rows)
        self._limit_B = limits_B
        self._eos = eos
        self._seed_B = np.array([row.seed & (2**64 - 1) for row in rows], np.uint64)
        self._live_B = np.arange(len(rows))
        self._step = 0
        kinds = sorted({row.sampling.stop for row in rows if any(row.sampling.stop)})
        self._finders = [finder(stop) for stop in kinds]
        kind_of = {stop: i for i, stop in enumerate(kinds)}
        self._kind_B = np.array([kind_of.get(row.sampling.stop, -1) for row in rows])

    def next_uniforms(self) -> npt.NDArray[np.float32]:
        """(B,) the next number of each live row's stream."""
        at = self._step % _CHUNK
        if at == 0:
            self._u_BT = uniforms(self._seed_B, self._step, min(_CHUNK, self.room - self._step))
        return self._u_BT[self._live_B, at]

    def append(
        self, tokens_B: npt.NDArray[np.int64], logp_B: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.bool_]:
        """Take one token per live row; (B,) which of them end with it."""
        live_B = self._live_B
        self._tokens_BT[live_B, self._step] = tokens_B
        self._logp_BT[live_B, self._step] = logp_B
        self._step += 1
        self._length_B[live_B] = self._step
        over_B = self._limit_B[live_B] <= self._step
        for kind, finder in enumerate(self._finders):
            mine_N = np.nonzero(self._kind_B[live_B] == kind)[0]
            for place in mine_N[finder.suspects(tokens_B[mine_N])]:
                row = live_B[place]
                if finder.completed(self._tokens_BT[row, : self._step]):
                    self._finish[row] = "stop"
                    over_B[place] = True
        if len(self._eos):
            ended_B = (tokens_B[:, None] == self._eos).any(1)
            for row in live_B[ended_B]:
                self._finish[row] = "eos"
            over_B |= ended_B
        return over_B

    def select(self, keep_N: npt.NDArray[np.int64]) -> None:
        """Go on with these of the live rows, in this order."""
        self._live_B = self._live_B[keep_N]

    def completions(self, version: int) -> list[Completion]:
        return [
            Completion(tokens[:n].copy(), logp[:n].copy(), finish, version)  # type: ignore[arg-type]
            for tokens, logp, n, finish in zip(
                self._tokens_BT, self._logp_BT, self._length_B, self._finish
            )
        ]


def _close_ranks(
    over_B: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Move rows from the end into the places of ended ones: (rows that go on in their new order,
    places filled, rows that fill them). Copies as many rows as ended, at most."""
    count = int((~over_B).sum())
    keep_N = np.arange(count)
    holes = np.nonzero(over_B[:count])[0]
    movers = count + np.nonzero(~over_B[count:])[0]
    keep_N[holes] = movers
    return keep_N, holes, movers


def _rules(samplings: list[Sampling], vocab_size: int, device: torch.device) -> Rules:
    temperature = torch.tensor([s.temperature for s in samplings], device=device)
    greedy = temperature == 0
    top_k = torch.tensor([s.top_k or vocab_size for s in samplings], device=device)
    top_p = torch.tensor([s.top_p for s in samplings], device=device)
    filtered = ((top_k < vocab_size) | (top_p < 1)) & ~greedy
    temperature = torch.where(greedy, 1.0, temperature)
    return Rules(
        temperature if bool((temperature != 1).any()) else None,
        greedy if bool(greedy.any()) else None,
        *((filtered, top_k, top_p) if bool(filtered.any()) else (None, None, None)),
    )
