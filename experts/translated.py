"""A model as an expert for a role that has another vocabulary."""

from dataclasses import replace

import numpy as np

from experts.encode import encode_reply
from vocabulary import Completion, Policy, Prompt, Sampling, TokenCodec


class TranslatedPolicy:
    """Puts the context, as text, to a policy in that policy's vocabulary, and its reply, as text,
    into the role's.

    Needed where models with different tokenizers share one role (a heterogeneous pool); a role with
    a model of its own uses that model's codec and needs no translation.
    """

    def __init__(self, policy: Policy, *, inner: TokenCodec, outer: TokenCodec) -> None:
        """
        Args:
            policy: the model that answers.
            inner: the model's codec.
            outer: the role's codec.
        """
        self._policy = policy
        self._inner = inner
        self._outer = outer

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """The model's reply in the role's vocabulary, without log-probabilities.

        Both vocabularies' tokens are limited by ``sampling.max_new_tokens``.
        """
        text = prompt.text or self._outer.decode(prompt.tokens)
        asked = replace(
            prompt, text=text, tokens=np.asarray(self._inner.open(text), dtype=np.int64)
        )
        said = await self._policy(asked, sampling)
        completion = encode_reply(
            self._inner.decode(said.tokens),
            self._outer,
            sampling.max_new_tokens,
            said.finish_reason,
        )
        return replace(completion, weight_version=said.weight_version)
