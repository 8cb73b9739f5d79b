"""A policy that samples from a model in this process."""

from agents.fit import fitted
from models.codec import HFCodec
from models.handle import ModelHandle
from models.sampler import Row, Sampler
from models.sampler.batches import Limits
from rollouts.coalesce import Coalescer
from vocabulary import Completion, Prompt, Sampling, UserError


class LocalPolicy:
    """Implements :class:`vocabulary.Policy`: concurrent calls become one batch.

    A completion depends on weights, prompt, seed and settings alone; ``weight_version`` is the
    handle's. An answer is cut where the model's context is full. The event loop stands still
    while a batch is sampled.
    """

    def __init__(
        self,
        handle: ModelHandle,
        codec: HFCodec,
        *,
        fused: bool = True,
        limits: Limits | None = None,
        quiet_turns: int = 8,
    ) -> None:
        self._handle = handle
        self.sampler = Sampler(handle, codec.decode, codec.eos_ids, fused=fused, limits=limits)
        self._coalescer = Coalescer(
            self._answer, key=lambda asked: (asked[0], asked[1].seed), quiet_turns=quiet_turns
        )

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Complete ``prompt``. Raises :class:`vocabulary.PolicyFailure` for a prompt that is empty,
        fills the context, or holds ids that the model lacks."""
        handle = self._handle
        sampling = fitted(prompt, sampling, context=handle.context, vocab_size=handle.vocab_size)
        return await self._coalescer((prompt.agent, Row(prompt.tokens, prompt.seed, sampling)))

    def _answer(self, asked: list[tuple[str, Row]]) -> list[Completion]:
        try:
            return self.sampler.sample([row for _, row in asked])
        except FloatingPointError as error:
            raise UserError(
                f"{asked[0][0]} cannot answer: {error}; where it learns, begin anew with a lower "
                "--learner.lr"
            ) from None
