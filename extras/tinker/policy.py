"""The policy of a role that a server samples for."""

import asyncio
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from coterie.agents.sampling.policy import fit_context
from coterie.agents.sampling.stops import StopFinder
from coterie.cli.progress import READ
from coterie.datatypes import (
    Completion,
    FinishReason,
    PolicyFailure,
    Prompt,
    Reading,
    Sampling,
    Trajectory,
    derive_seed,
)
from coterie.extras.tinker.model import ServerModel
from coterie.extras.tinker.service import Service, Unreadable, package

_MOST_SAMPLES = 64
"""Samples of one request: servers have a limit."""
_QUIET_TURNS = 8
"""Rounds of the event loop in which the others of a group ask for the same prompt."""
_SEEDS = 1 << 31
_SMALL_VOCABULARY = 1000
_ALMOST_ONE = 1 + 1e-6
"""Hatchery 0.3 answers greedily at temperature 1 if one answer is asked for."""
_LEAST, _ROUNDING = -1e6, 1e-3
"""Log-probabilities above 0 by no more than this are rounding."""


class ServerPolicy:
    """Implements :class:`coterie.datatypes.Policy`: equal prompts become one request.

    It samples with the weights of the last :meth:`use`. The server may ignore seeds.
    """

    def __init__(self, service: Service, model: ServerModel) -> None:
        self.model, self._service = model, service
        self._client: Any = None
        self._version = 0
        self.stamp: Any = None
        """Identifies the weights."""
        self._waiting: dict[tuple[bytes, Sampling], list[tuple[int, asyncio.Future[Any]]]] = {}
        self._tasks = set[asyncio.Task[None]]()
        codec = model.codec
        self._finder = cache(lambda stop: StopFinder(stop, codec.decode, model.vocab_size))

    def use(self, client: Any, version: int, stamp: Any = None) -> None:
        """Sample by ``client`` from now on, whose weights had ``version`` updates."""
        self._client, self._version, self.stamp = client, version, stamp

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Complete ``prompt``.

        Raises:
            PolicyFailure: the prompt does not fit, or the server's answer is unusable.
            UserError: the server does not answer.
        """
        sampling = fit_context(prompt, sampling, self.model)
        version = self._version
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        key = (prompt.tokens.tobytes(), sampling)
        waiting = self._waiting.setdefault(key, [])
        waiting.append((prompt.seed, future))
        if len(waiting) == 1:
            task = asyncio.create_task(self._answer(key, prompt.tokens.tolist(), sampling))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return self._completion(await future, sampling, version)

    async def read(self, rows: Sequence[Trajectory]) -> list[Reading | None]:
        """Return the model's probabilities of the tokens of each row, at temperature 1; None for
        rows that it cannot score."""
        return await asyncio.gather(*map(self._read, rows))

    async def _read(self, row: Trajectory) -> Reading | None:
        if not row.is_readable(self.model.context, self.model.vocab_size):
            return None
        logp_T = await self.score(row.tokens.tolist())
        READ.add(1)
        return Reading(np.asarray(logp_T, np.float32)[row.mask])

    async def score(self, tokens: Sequence[int]) -> list[float]:
        """Return the log-probability of each token, NaN for the first."""
        tinker = package()
        self.model.tokens.scored += len(tokens)
        found = await self._service.reply(
            f"score tokens for {self.model.role}",
            self._client.compute_logprobs_async(tinker.ModelInput.from_ints(list(tokens))),
        )
        numbers = [math.nan if logp is None else float(logp) for logp in found or []]
        if len(numbers) != len(tokens) or not all(map(math.isfinite, numbers[1:])):
            raise self._service.broken(f"scores of {self.model.role} that are not numbers")
        return numbers

    async def _answer(
        self, key: tuple[bytes, Sampling], tokens: list[int], sampling: Sampling
    ) -> None:
        for _ in range(_QUIET_TURNS):
            await asyncio.sleep(0)
        waiting = sorted(self._waiting.pop(key), key=lambda call: call[0])
        for start in range(0, len(waiting), _MOST_SAMPLES):
            part = waiting[start : start + _MOST_SAMPLES]
            seed = derive_seed(*(seed for seed, _ in part)) % _SEEDS
            try:
                samples = await self._sample(tokens, sampling, len(part), seed)
            except BaseException as error:
                for _, future in waiting[start:]:
                    if not future.done():
                        future.set_exception(error)
                        future.exception()  # its caller may be gone
                if isinstance(error, asyncio.CancelledError):
                    raise
                return
            for (_, future), sample in zip(part, samples):
                if not future.done():
                    future.set_result(sample)

    async def _sample(
        self, tokens: list[int], sampling: Sampling, count: int, seed: int
    ) -> list[Any]:
        tinker = package()
        small = self.model.vocab_size <= _SMALL_VOCABULARY
        no_filter = self.model.vocab_size if small else -1
        params = tinker.SamplingParams(
            max_tokens=sampling.max_new_tokens,
            seed=seed,
            temperature=_ALMOST_ONE if sampling.temperature == 1 else sampling.temperature,
            top_p=sampling.top_p,
            # Some servers filter unless they are told a number.
            top_k=sampling.top_k or no_filter,
            stop=self._stops(sampling.stop),
        )
        self.model.tokens.prompt += len(tokens)
        try:
            answer = await self._service.reply(
                f"sample for {self.model.role}",
                self._client.sample_async(
                    prompt=tinker.ModelInput.from_ints(tokens),
                    num_samples=count,
                    sampling_params=params,
                ),
            )
        except Unreadable:
            return [None] * count
        samples = list(answer.sequences)
        return [*samples, *[None] * (count - len(samples))][:count]

    def _stops(self, stop: tuple[str, ...]) -> list[str] | list[int]:
        """What ends an answer: strings, or ids if there are no strings."""
        return (
            [*filter(None, stop), *self.model.marks]
            if any(stop)
            else list(self.model.codec.eos_ids)
        )

    def _completion(self, sample: Any, sampling: Sampling, version: int) -> Completion:
        tokens, known = _checked(sample, self.model.vocab_size)
        self.model.tokens.sampled += len(tokens)
        ids = np.array(tokens, np.int64)[: sampling.max_new_tokens]
        logprobs = np.array(known, np.float32)[: sampling.max_new_tokens]
        count, finish = self._end(ids.tolist(), sampling.stop)
        ids, logprobs = ids[:count], logprobs[:count]
        if finish == "length" and sample.stop_reason == "stop" and count < sampling.max_new_tokens:
            finish = "stop"
            if not any(sampling.stop):
                # A server may leave out the mark that ended the answer; its probability is unknown.
                ids = np.append(ids, self.model.codec.eos_ids[0])
                logprobs, finish = np.append(logprobs, np.float32(np.nan)), "eos"
        if not len(ids):
            raise PolicyFailure("the server's answer is empty")
        # Servers may report probabilities after a filter, which the learner cannot use.
        filtered = sampling.temperature > 0 and (sampling.top_p < 1 or sampling.top_k > 0)
        if filtered:
            logprobs = np.full(len(ids), np.nan, np.float32)
        return Completion(ids, logprobs.astype(np.float32), finish, version)

    def _end(self, ids: Sequence[int], stop: tuple[str, ...]) -> tuple[int, FinishReason]:
        """(number of tokens up to the end of the answer, why it ends)."""
        ends = self.model.codec.eos_ids
        suspects = set[int]()
        tokens = np.array(ids, np.int64)
        if any(stop) and ids:
            finder = self._finder(stop)
            suspects = {int(i) for i in finder.suspects(tokens)}
        for i, token in enumerate(ids):
            if token in ends:
                return i + 1, "eos"
            if i in suspects and self._finder(stop).completes(tokens[: i + 1]):
                return i + 1, "stop"
        return len(ids), "length"


def _checked(sample: Any, vocabulary: int) -> tuple[list[int], list[float]]:
    """The tokens and log-probabilities of a sample; a server is not trusted.

    Raises:
        PolicyFailure: they are not what they should be.
    """
    tokens, logprobs = (_plain(getattr(sample, name, None)) for name in ("tokens", "logprobs"))
    if not isinstance(tokens, list) or not all(
        type(token) is int and 0 <= token < vocabulary for token in tokens
    ):
        raise PolicyFailure("the server sampled what is no token of the vocabulary")
    if logprobs is None:
        return tokens, [math.nan] * len(tokens)
    if not isinstance(logprobs, list) or len(logprobs) != len(tokens):
        raise PolicyFailure("the server's log-probabilities are not one for each token")
    if not all(type(logp) in (int, float) and _LEAST < logp <= _ROUNDING for logp in logprobs):
        raise PolicyFailure("the server's log-probabilities are not numbers below 0")
    return tokens, logprobs


def _plain(values: Any) -> Any:
    return values.tolist() if isinstance(values, np.ndarray) else values
