"""The policy that samples from a model in this process, and the check of prompts."""

from dataclasses import replace
from typing import Protocol

from coterie.agents.models.codec import HFCodec
from coterie.agents.models.handle import ModelHandle
from coterie.agents.sampling import Sampler, SamplingRequest
from coterie.datatypes import Completion, PolicyFailure, Prompt, Sampling, UserError
from coterie.rollouts.coalesce import Coalescer


class Bounded(Protocol):
    """A model's limits on a prompt."""

    @property
    def context(self) -> int: ...

    @property
    def vocab_size(self) -> int: ...


def fit_context(prompt: Prompt, sampling: Sampling, handle: Bounded) -> Sampling:
    """Limit ``sampling.max_new_tokens`` to the room in the model's context.

    Raises:
        PolicyFailure: the prompt is empty, fills the context, or has ids beyond the vocabulary.
    """
    length = len(prompt.tokens)
    room = handle.context - length
    if length == 0:
        raise PolicyFailure("the prompt is empty")
    if sampling.max_new_tokens < 1:
        raise PolicyFailure("no new token is allowed")
    if room < 1:
        raise PolicyFailure(f"the prompt has {length} tokens and the context {handle.context}")
    if prompt.tokens.min() < 0 or prompt.tokens.max() >= handle.vocab_size:
        raise PolicyFailure("the prompt holds ids beyond the model's vocabulary")
    return replace(sampling, max_new_tokens=room) if sampling.max_new_tokens > room else sampling


class LocalPolicy:
    """Implements :class:`coterie.datatypes.Policy`: concurrent calls become one batch.

    Up to rounding, a completion depends only on weights, prompt, seed and settings. Its
    ``weight_version`` is the handle's version. Answers end when the model's context is full.
    Sampling blocks the event loop.
    """

    def __init__(self, handle: ModelHandle, codec: HFCodec) -> None:
        self._handle = handle
        self.sampler = Sampler(handle, codec.decode, codec.eos_ids)
        self._coalescer = Coalescer(self.answer, key=lambda request: (request[0], request[1].seed))

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Complete ``prompt``.

        Raises:
            PolicyFailure: see :func:`fit_context`.
            UserError: the model's logits are not finite.
        """
        sampling = fit_context(prompt, sampling, self._handle)
        return await self._coalescer(
            (
                prompt.agent,
                SamplingRequest(prompt.tokens, prompt.seed, sampling, prompt.continues),
            )
        )

    def answer(self, requests: list[tuple[str, SamplingRequest]]) -> list[Completion]:
        """Return a completion for each (agent, request), sampled as one batch."""
        try:
            return self.sampler.sample([row for _, row in requests])
        except FloatingPointError as error:
            raise UserError(
                f"{requests[0][0]} cannot answer: {error}; where it learns, start a new run with "
                "a lower --learner.lr"
            ) from None
