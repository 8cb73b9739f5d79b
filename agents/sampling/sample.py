"""The sampling loop: a batch of rows, each with its own prompt, random stream and settings."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache

import numpy as np
import numpy.typing as npt
import torch

from coterie.agents.models.blocks import rounded_once
from coterie.agents.models.family import is_llama_like
from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.lora import merges
from coterie.agents.sampling.batches import (
    BatchLimits,
    SamplingRequest,
    SamplingState,
    fill_holes,
    partition,
)
from coterie.agents.sampling.choose import Rules, choose
from coterie.agents.sampling.decoder import Decoder, GenericDecoder
from coterie.agents.sampling.fused import FusedDecoder
from coterie.agents.sampling.kept import KeptContexts
from coterie.agents.sampling.stops import StopFinder
from coterie.agents.sampling.weights import FusedWeights
from coterie.cli.progress import ANSWERED, Share
from coterie.datatypes import Completion

# B rows under way, V vocabulary

NewTokens = npt.NDArray[np.int64]

_COPY_BYTES = 4 << 30
_SHARE_OF_GPU = 12

KEEPS_FROM = 1 << 28
"""Bytes of the smallest copy of weights beside which contexts are kept: a tiny model reads a whole
context as fast."""


def copies(size: int, gpu: int | None) -> bool:
    """Whether the sampler makes a fused copy of the weights: up to 4 GiB, or up to a twelfth of the
    GPU's memory.

    Args:
        size: bytes of the copy.
        gpu: bytes of the GPU's memory; None on a CPU.
    """
    return size <= max(_COPY_BYTES, (gpu or 0) // _SHARE_OF_GPU)


class Sampler:
    """Samples from one role's model with its current weights, which ``handle.stamp`` identifies.

    The sampler makes a fused copy of the weights if the model is small enough. Larger models and
    other architectures use their own forward pass. Beside a fused copy it keeps what was computed
    of answers that may be continued: the next turn is read from there on.
    """

    def __init__(
        self,
        handle: ModelHandle,
        decode: Callable[[Sequence[int]], str],
        eos_ids: Sequence[int],
        *,
        fused: bool = True,
        limits: BatchLimits | None = None,
    ) -> None:
        """Args:
        handle: the role's model.
        decode: turns ids into text, for stop strings.
        eos_ids: ids that end an answer.
        fused: whether a fused copy is allowed.
        limits: limits of a batch; None: by free memory.
        """
        self._handle = handle
        self._eos = np.array(sorted(eos_ids), dtype=np.int64)
        device, size = handle.device, handle.copy_bytes
        on_gpu = device.type == "cuda"
        gpu = torch.cuda.get_device_properties(device).total_memory if on_gpu else None
        fits = fused and is_llama_like(handle.causal_lm) and copies(size, gpu)
        fits = fits and merges(handle.causal_lm, handle.adapter)
        self.copy_bytes = size if fits else 0
        """Bytes of the fused copy of the weights; 0: there is none."""
        self._limits = limits or BatchLimits.for_model(handle.causal_lm, handle.device)
        self._kept = KeptContexts()
        self._weights: FusedWeights | None = None
        self._stamp: tuple[int, int] | None = None
        self._finder = cache(lambda stop: StopFinder(stop, decode, handle.vocab_size))

    @property
    def fused(self) -> bool:
        """Whether the sampler uses a fused copy of the weights."""
        return self.copy_bytes > 0

    def release(self) -> None:
        """Free the memory of the copy until the next call of :meth:`sample`."""
        self._weights = None
        self.forget()

    def forget(self) -> None:
        """Free the memory of what was computed of earlier answers."""
        self._kept.clear()

    @torch.inference_mode()
    def sample(
        self, requests: Sequence[SamplingRequest], tell: Callable[[NewTokens], None] | None = None
    ) -> list[Completion]:
        """Return a completion for each request, in the order of ``requests``.

        Args:
            requests: at least one prompt token each.
            tell: called with the new ids of the rows under way, (B,), after every step.

        Raises:
            ValueError: a prompt is empty.
            FloatingPointError: the model's logits are not finite.
        """
        if any(len(request.tokens) == 0 for request in requests):
            raise ValueError("a prompt has no tokens")
        done: dict[int, Completion] = {}
        # Rows that continue an answer are a batch of their own: one that is read whole would have
        # all of its batch read whole.
        keys = self._kept.continued_by([request.tokens for request in requests])
        continuing = [i for i, key in enumerate(keys) if key is not None]
        others = [i for i, key in enumerate(keys) if key is None]
        # A fused copy is rounded already.
        rounded = nullcontext() if self.fused else rounded_once(self._handle.causal_lm)
        with self._handle.active(), rounded:
            for part in (continuing, others):
                for chosen in partition([requests[i] for i in part], self._limits):
                    batch = [part[i] for i in chosen]
                    sampled = self._batch([requests[i] for i in batch], tell)
                    done.update(zip(batch, sampled))
        return [done[i] for i in range(len(requests))]

    def _batch(
        self, requests: list[SamplingRequest], tell: Callable[[NewTokens], None] | None
    ) -> list[Completion]:
        handle, device = self._handle, self._handle.device
        state = SamplingState(requests, self._eos, self._finder)
        decoder = self._decoder()
        logits_BV = self._read(decoder, requests, state.room)
        share = Share(ANSWERED, len(requests))
        longest = max(request.sampling.max_new_tokens for request in requests)
        rules = Rules.of([request.sampling for request in requests], logits_BV.shape[1], device)
        steps = 0
        while True:
            u_B = torch.from_numpy(state.next_uniforms()).to(device)
            tokens_B, logp_B = choose(logits_BV, u_B, rules)
            new_B = tokens_B.cpu().numpy()
            over_B = state.append(new_B, logp_B.cpu().numpy())
            if tell is not None:
                tell(new_B)
            steps += 1
            share.reach(steps / longest)
            if over_B.any():
                self._keep(decoder, state, over_B)
                if over_B.all():
                    share.reach(1.0)
                    return state.completions(handle.version)
                keep_N, holes, movers = fill_holes(over_B)
                state.select(keep_N)
                keep = torch.from_numpy(keep_N).to(device)
                rules, tokens_B = rules.select(keep), tokens_B[keep]
                decoder.drop(
                    torch.from_numpy(holes).to(device),
                    torch.from_numpy(movers).to(device),
                    len(keep_N),
                )
            logits_BV = decoder.step(tokens_B)

    def _read(self, decoder: Decoder, requests: list[SamplingRequest], room: int) -> torch.Tensor:
        """Read the prompts, those of earlier answers from their end on; (B, V) the first logits."""
        tokens = [request.tokens for request in requests]
        if isinstance(decoder, FusedDecoder) and (kept := self._kept.take(tokens)):
            return decoder.resume([prompt.tolist() for prompt in tokens], kept, room)
        prompts: dict[bytes, int] = {}
        fork = [prompts.setdefault(prompt.tobytes(), len(prompts)) for prompt in tokens]
        distinct = [np.frombuffer(key, np.int64).tolist() for key in prompts]
        return decoder.prefill(distinct, fork, room)

    def _keep(self, decoder: Decoder, state: SamplingState, over_B: npt.NDArray[np.bool_]) -> None:
        """Keep the contexts of rows that end now and may be continued."""
        if isinstance(decoder, FusedDecoder) and self.copy_bytes >= KEEPS_FROM:
            for row in state.continuing(over_B):
                self._kept.add(state.read(row), decoder.context_of(row))

    def _decoder(self) -> Decoder:
        handle = self._handle
        if not self.fused:
            return GenericDecoder(handle.causal_lm, handle.device)
        if self._weights is None or self._stamp != handle.stamp:
            # Free the old copy first, so that memory need not hold two.
            self.release()
            self._weights = FusedWeights(handle.causal_lm, handle.adapter, handle.dtype)
            self._stamp = handle.stamp
        return FusedDecoder(self._weights)
