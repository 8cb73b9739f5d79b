"""The policy of a role whose tokens a vLLM engine samples."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from coterie.agents.models.codec import HFCodec
from coterie.agents.models.handle import ModelHandle
from coterie.agents.sampling.policy import fit_context
from coterie.agents.sampling.stops import StopFinder
from coterie.agents.vllm.engine import Engine
from coterie.agents.vllm.spec import sampling_params
from coterie.agents.vllm.turns import Turns
from coterie.agents.vllm.weight_updates import Versions
from coterie.cli.progress import READ
from coterie.datatypes import (
    Completion,
    FinishReason,
    PolicyFailure,
    Prompt,
    Reading,
    Sampling,
    Trajectory,
    UserError,
)


class VllmPolicy:
    """Implements :class:`coterie.datatypes.Policy`: a call is a request of a continuous batch.

    It samples with the weights of the last :meth:`refresh`; each completion has their version. A
    completion depends on weights, prompt, seed and settings, and on the rounding of its batch.
    """

    def __init__(
        self,
        engine: Engine,
        handle: ModelHandle,
        codec: HFCodec,
        versions: Versions,
        *,
        turns: Turns | None = None,
    ) -> None:
        """Args:
        engine: the engine.
        handle: the role's model, whose version completions carry.
        codec: the role's codec.
        versions: how weights reach the engine.
        turns: turns of engines that share a device; None: the engine has its own device.
        """
        self.engine, self._handle, self._codec = engine, handle, codec
        self._versions = versions
        self._turns = turns
        self._stamp: tuple[int, int] | None = None
        self.version = handle.version
        """Number of updates of the weights that are sampled."""
        self._finder = cache(lambda stop: StopFinder(stop, codec.decode, handle.vocab_size))

    async def refresh(self) -> None:
        """Send the handle's weights to the engine if they have changed."""
        if self._stamp != self._handle.stamp:
            async with self._turn():
                await self._versions.publish()
            self._stamp, self.version = self._handle.stamp, self._handle.version

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Complete ``prompt``.

        Raises:
            PolicyFailure: the prompt is empty, fills the context, or has ids beyond the vocabulary.
            UserError: the engine has died.
        """
        sampling = fit_context(prompt, sampling, self._handle)
        params = sampling_params(sampling, prompt.seed, self._codec.eos_ids)
        version = self.version
        async with self._versions.request() as adapter, self._turn():
            output = await self.engine.generate(prompt.tokens.tolist(), params, adapter)
        return self._completion(output, sampling, version)

    async def read(
        self, rows: Sequence[Trajectory], likeliest: int, width: int
    ) -> list[Reading | None]:
        """Return the model's probabilities of the tokens of each row, at temperature 1; None for
        rows that it cannot score.

        Args:
            rows: of another model, in the context in which they are read.
            likeliest: number of likeliest tokens at each place; 0: none.
            width: ids of the other model; those of the likeliest tokens are below.
        """
        return await asyncio.gather(*(self._read(row, likeliest, width) for row in rows))

    async def _read(self, row: Trajectory, likeliest: int, width: int) -> Reading | None:
        # The engine wants to sample a token after them.
        if not row.is_readable(self._handle.context - 1, self._handle.vocab_size):
            return None
        async with self._versions.request() as adapter, self._turn():
            found = await self.engine.logprobs(row.tokens.tolist(), likeliest, adapter)
        READ.add(1)
        places = np.flatnonzero(row.mask).tolist()
        logp_N = np.array([found[t][int(row.tokens[t])].logprob for t in places], np.float32)
        if not likeliest:
            return Reading(logp_N)
        ranked = [
            sorted((entry.rank, id, entry.logprob) for id, entry in found[t].items() if id < width)
            for t in places
        ]
        count = min(likeliest, width)
        if any(len(entries) < count for entries in ranked):
            raise UserError(
                "the teacher expects tokens beyond the vocabulary of its pupil: set "
                "--algo.distillation.likeliest 0"
            )
        return Reading(
            logp_N,
            np.array([[id for _, id, _ in entries[:count]] for entries in ranked], np.int64),
            np.array([[logp for *_, logp in entries[:count]] for entries in ranked], np.float32),
        )

    def _turn(self) -> AbstractAsyncContextManager[None]:
        """Keep the engine awake inside the block."""
        return nullcontext() if self._turns is None else self._turns.of(self.engine)

    def _completion(self, output: Any, sampling: Sampling, version: int) -> Completion:
        ids = list(output.token_ids)
        if output.finish_reason == "abort" or not ids:
            raise PolicyFailure("the engine aborted the request")
        count, stopped = self._ends(ids, sampling.stop)
        finish: FinishReason = "length"
        if stopped:
            finish = "stop"
        elif ids[count - 1] in self._codec.eos_ids:
            finish = "eos"
        # With a filter, vLLM reports probabilities after the filter, which the learner cannot use.
        filtered = sampling.temperature > 0 and (sampling.top_p < 1 or sampling.top_k > 0)
        logprobs = np.array(
            [at[token].logprob for at, token in zip(output.logprobs[:count], ids)], np.float32
        )
        return Completion(
            np.array(ids[:count], np.int64),
            np.full(count, np.nan, np.float32) if filtered else logprobs,
            finish,
            version,
        )

    def _ends(self, ids: Sequence[int], stop: tuple[str, ...]) -> tuple[int, bool]:
        """(number of tokens up to the end of a stop string, whether there is one)."""
        # The engine's search is not enough: its decoding differs from ours in dropped text.
        if not any(stop):
            return len(ids), False
        finder, tokens = self._finder(stop), np.array(ids, np.int64)
        for i in finder.suspects(tokens):
            if finder.completes(tokens[: i + 1]):
                return int(i) + 1, True
        return len(ids), False
