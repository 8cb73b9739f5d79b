"""Policies that follow a script: for tests, controls and upper bounds.

Log-probabilities are those of the script: 0 where it is certain.
"""

import asyncio
import math
from collections.abc import Callable

import numpy as np

from vocabulary import Completion, Policy, PolicyFailure, Prompt, Sampling, TokenCodec
from vocabulary.policy import FinishReason

GOLD_TRACE = (
    '<strategy id="1">\nThe reference solution.\n</strategy>\n<final_answer>{gold}</final_answer>'
)


class Scripted:
    """Answers what ``write`` says, in the codec's tokens.

    ``end`` is appended where the whole text fits; by default the codec's first end-of-sequence
    id, where it has one. A ``write`` that raises :class:`vocabulary.PolicyFailure` fails the call.
    """

    def __init__(
        self, codec: TokenCodec, write: Callable[[Prompt], str], *, end: int | None = None
    ) -> None:
        self._codec = codec
        self._write = write
        ends = getattr(codec, "eos_ids", ())
        self._end = [end] if end is not None else list(ends[:1])

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        text, stopped = _cut(self._write(prompt), sampling.stop)
        tokens = self._codec.extend(text) + ([] if stopped else self._end)
        finish: FinishReason = "stop" if stopped else "eos"
        if len(tokens) > sampling.max_new_tokens:
            tokens, finish = tokens[: sampling.max_new_tokens], "length"
        return Completion(
            np.array(tokens, dtype=np.int64), np.zeros(len(tokens), np.float32), finish
        )


def fixed(codec: TokenCodec, text: str) -> Policy:
    """Always the same text."""
    return Scripted(codec, lambda prompt: text)


def gold(codec: TokenCodec, trace: str = GOLD_TRACE) -> Policy:
    """The reference answer, wrapped into ``trace`` in place of ``{gold}``; a failure where the
    prompt tells no problem."""

    def write(prompt: Prompt) -> str:
        if prompt.problem is None:
            raise PolicyFailure("the prompt names no problem, so there is no gold answer")
        return trace.replace("{gold}", prompt.problem.gold)

    return Scripted(codec, write)


class Garbage:
    """Uniformly random ids, a function of the prompt's seed, up to the limit."""

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        count = sampling.max_new_tokens
        tokens = np.random.default_rng(prompt.seed).integers(self._vocab_size, size=count)
        logp = np.full(count, -math.log(self._vocab_size), np.float32)
        return Completion(tokens.astype(np.int64), logp, "length")


class Silent:
    """Never answers: every call is a failure."""

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        raise PolicyFailure("this policy never answers")


class Slow:
    """Another policy, ``seconds`` later."""

    def __init__(self, policy: Policy, seconds: float) -> None:
        self._policy = policy
        self._seconds = seconds

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        await asyncio.sleep(self._seconds)
        return await self._policy(prompt, sampling)


def _cut(text: str, stop: tuple[str, ...]) -> tuple[str, bool]:
    """``text`` up to where the first stop string is complete, and whether there is one."""
    ends = [place + len(s) for s in stop if s and (place := text.find(s)) >= 0]
    return (text[: min(ends)], True) if ends else (text, False)
