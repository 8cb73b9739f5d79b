"""Several experts behind one role, whatever vocabulary each of them has."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from coterie.datatypes import (
    Completion,
    Policy,
    PolicyFailure,
    Prompt,
    Sampling,
    TokenCodec,
    UserError,
)
from coterie.datatypes.thinking import as_said, behind_thought, opened_by
from coterie.experts.replies import ExpertCounters, encode_reply


async def close_all(policies: Iterable[Policy]) -> None:
    """Close the connections of the policies that have any."""
    for policy in policies:
        close = getattr(policy, "aclose", None)
        if close is not None:
            await close()


class ExpertPool:
    """The policy of a role whose seats ``expert_0, expert_1, ...`` are played by different experts.

    Seat i is played by expert ``i mod n``, in the order of the mapping: one expert fills all seats,
    three different ones fill one each.

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
        self.counters = {expert: ExpertCounters() for expert in self.experts}
        """What each expert was asked through this pool; failures by their reasons."""
        self._seats = tuple(self.experts)

    def expert_at(self, agent: str) -> str:
        """Id of the expert that plays ``agent``.

        >>> ExpertPool({"a": ..., "b": ...}).expert_at("expert_2")
        'a'
        """
        number = re.fullmatch(r".*_(\d{1,9})", agent, re.DOTALL)
        if number is None:
            raise UserError(f"agent {agent!r} has no seat number; name agents like expert_0")
        return self._seats[int(number[1]) % len(self._seats)]

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Ask the expert that plays ``prompt.agent``."""
        expert = self.expert_at(prompt.agent)
        counters = self.counters[expert]
        counters.calls += 1
        try:
            completion = await self.experts[expert](prompt, sampling)
        except PolicyFailure as failure:
            counters.failures[str(failure) or "no reason given"] += 1
            raise
        except BaseException:
            counters.failures["cancelled"] += 1
            raise
        counters.add(completion)
        return completion

    def as_dict(self) -> dict[str, float]:
        """``<expert id>/<counter>`` -> value, for a log.

        Where an expert counts for itself (servers do), its own counters are reported.
        """
        flat: dict[str, float] = {}
        for expert, policy in self.experts.items():
            own = getattr(policy, "counters", None)
            counters = own if isinstance(own, ExpertCounters) else self.counters[expert]
            flat |= {f"{expert}/{name}": value for name, value in counters.as_dict().items()}
        return flat

    async def aclose(self) -> None:
        """Close the experts that can be closed."""
        await close_all(self.experts.values())


class TranslatedPolicy:
    """Translates, through text, the context into a policy's vocabulary and its reply into the
    role's.

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
        text = as_said(opened_by(self._inner, asked.tokens), self._inner.decode(said.tokens))
        completion = encode_reply(
            behind_thought(opened_by(self._outer, prompt.tokens), text),
            self._outer,
            sampling.max_new_tokens,
            said.finish_reason,
        )
        return replace(completion, weight_version=said.weight_version)
