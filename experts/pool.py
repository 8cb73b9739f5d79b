"""Pools of several experts behind one role, and translation between vocabularies."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.datatypes import (
    Completion,
    Policy,
    Prompt,
    Sampling,
    TokenCodec,
    UserError,
    ids_per_token,
)
from coterie.datatypes.thinking import as_said, behind_thought, opened_by
from coterie.experts.replies import encode_reply


async def close_all(policies: Iterable[Policy]) -> None:
    """Close all policies that can be closed."""
    for policy in policies:
        close = getattr(policy, "aclose", None)
        if close is not None:
            await close()


def counters_of(policy: Policy) -> dict[str, float]:
    """Return a player's counters for a log; none for a policy that counts nothing."""
    counted: Any = policy if hasattr(policy, "as_dict") else getattr(policy, "counters", None)
    return {} if counted is None else counted.as_dict()


def last_words(policy: Policy) -> str:
    """Return what the servers of a player said when they failed or refused a request, by kind of
    failure; empty for other players."""
    if isinstance(policy, ExpertPool):
        return "; ".join(dict.fromkeys(filter(None, map(last_words, policy.experts.values()))))
    counters = getattr(getattr(policy, "policy", policy), "counters", None)
    return "; ".join(f"{kind}: {text}" for kind, text in getattr(counters, "examples", {}).items())


class ExpertPool:
    """Distributes the agents ``expert_0, expert_1, ...`` of a role over several experts.

    Expert ``i mod n`` of the mapping plays agent i.

    Example: ``ExpertPool({"small": ask_small, "large": ask_large})``
    """

    def __init__(self, experts: Mapping[str, Policy]) -> None:
        """
        Args:
            experts: expert id -> policy.

        Raises:
            UserError: there is no expert.
        """
        if not experts:
            raise UserError("a pool of experts needs at least one expert: name one")
        self.experts = dict(experts)
        self._seats = tuple(self.experts)

    def expert_at(self, agent: str) -> str:
        """Return the id of the expert that plays ``agent``.

        >>> ExpertPool({"a": ..., "b": ...}).expert_at("expert_2")
        'a'

        Raises:
            UserError: the name does not end in an underscore and a number.
        """
        number = re.fullmatch(r".*_(\d{1,9})", agent, re.DOTALL)
        if number is None:
            raise UserError(f"agent {agent!r} has no seat number; name agents like expert_0")
        return self._seats[int(number[1]) % len(self._seats)]

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Call the expert that plays ``prompt.agent``."""
        return await self.experts[self.expert_at(prompt.agent)](prompt, sampling)

    def as_dict(self) -> dict[str, float]:
        """Return ``<expert id>/<counter>`` -> value, for a log. Loaded models count nothing."""
        return {
            f"{expert}/{name}": value
            for expert, policy in self.experts.items()
            for name, value in counters_of(policy).items()
        }

    async def aclose(self) -> None:
        """Close all experts that can be closed."""
        await close_all(self.experts.values())


class TranslatedPolicy:
    """Translates a context into a policy's vocabulary, and the reply into the role's, through text.

    This is needed for models with different tokenizers in one role, as in pools.
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
        """Return the model's reply in the role's vocabulary, without log-probabilities.

        ``sampling.max_new_tokens`` limits both, the reply in the role's tokens and the model in its
        own; four bytes count as one token.
        """
        text = prompt.text or self._outer.decode(prompt.tokens)
        inner_prompt = replace(
            prompt, text=text, tokens=np.asarray(self._inner.open(text), dtype=np.int64)
        )
        limit = sampling.max_new_tokens * ids_per_token(self._inner) / ids_per_token(self._outer)
        reply = await self._policy(inner_prompt, replace(sampling, max_new_tokens=math.ceil(limit)))
        opened = opened_by(self._inner, inner_prompt.tokens)
        text = as_said(opened, self._inner.decode(reply.tokens))
        completion = encode_reply(
            behind_thought(opened_by(self._outer, prompt.tokens), text),
            self._outer,
            sampling.max_new_tokens,
            reply.finish_reason,
        )
        return replace(completion, weight_version=reply.weight_version, usage=reply.usage)
