"""Log-probabilities under a trainable model, without a (tokens x vocabulary) tensor.

Legend: B rows, T tokens, N scored positions, H model width, V vocabulary.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from coterie.agents.models.shards import Ranks
from coterie.algorithms.batching import Batch, ReaderLogprobs
from coterie.algorithms.distillation import expected_difference

Head = Callable[[Tensor], Tensor]

# Logits computed at once: 64 MiB in float32, plus as much for their softmax. 16 MiB fit into the
# caches of a CPU.
_LOGITS_AT_ONCE = 1 << 24
_LOGITS_AT_ONCE_ON_CPU = 1 << 22
# Logits whose softmax is taken at once on a CPU: 4 MiB in float32, so that all its passes stay in
# the caches of one core.
_LOGITS_IN_CACHE = 1 << 20
# Smaller chunks are slow whatever the vocabulary: each one reads all weights of the head.
_MIN_POSITIONS_AT_ONCE = 128


class TrainableModel(Protocol):
    """A role's causal language model, or its adapter on a shared model, as a learner needs it."""

    version: int
    """Number of updates so far; the learner increments it."""
    context: int
    """Longest context in tokens."""
    ranks: Ranks
    """The processes that compute the updates together."""

    @property
    def device(self) -> torch.device:
        """The device of inputs."""
        ...

    @property
    def shares_from(self) -> int | None:
        """Minimum shared-prefix length worth computing once, in tokens, if rows are packed; None:
        rows are padded."""
        ...

    @property
    def uncheckpointed_tokens(self) -> int | None:
        """Tokens of a micro-batch whose activations fit without recomputation, if small
        micro-batches are as fast as large ones; None: they are slower."""
        ...

    def parameters(self) -> dict[str, nn.Parameter]:
        """Return this role's trainable parameters; names are stable between runs."""
        ...

    def scored_states(self, ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the head's inputs (N, H) at the positions where ``mask_BT`` (B, T - 1) is true,
        whose next token is scored, row by row. Rows are padded on the right."""
        ...

    def head(self, hidden: Tensor) -> Tensor:
        """Return logits (N, V) of hidden states (N, H)."""
        ...

    @property
    def head_learns(self) -> bool:
        """Whether a weight of the head is trainable."""
        ...

    def active(self) -> AbstractContextManager[None]:
        """Use this role's adapter inside the block."""
        ...

    def reference(self) -> AbstractContextManager[None]:
        """Use the weights from before training inside the block (a new adapter is off).

        Raises:
            NotImplementedError: the model has no such copy (full weights, or an adapter loaded from
                a file); the learner then makes one.
        """
        ...


class ScoredPositions(NamedTuple):
    """Log-probabilities and entropies at N positions, in float32."""

    logp_N: Tensor
    entropy_N: Tensor
    """In nats."""
    gain_N: Tensor | None = None
    """:func:`expected_difference` from the reader; None without a reader."""


def score(
    hidden_NH: Tensor,
    target_N: Tensor,
    head: Head,
    *,
    temperature: float,
    entropy_gradient: bool = False,
    reader: ReaderLogprobs | None = None,
    head_learns: bool = True,
) -> ScoredPositions:
    """Compute log-probabilities of ``target_N``, entropies, and the expected difference from
    ``reader``. More logits than are held in memory at once (:func:`positions_at_once`) are computed
    in chunks, and again in the backward pass.

    Args:
        hidden_NH: hidden states at the scored positions.
        target_N: ids of the tokens that follow.
        head: hidden states -> logits.
        temperature: divides the logits, as in sampling.
        entropy_gradient: whether entropies carry a gradient.
        reader: a second distribution at each position.
        head_learns: whether the head's weights need a gradient. If neither they nor the entropies
            do, and there is no reader, logits are computed only once.
    """

    def chunk(hidden_CH: Tensor, target_C: Tensor, *read: Tensor) -> tuple[Tensor, ...]:
        logp_CV = _tempered(head(hidden_CH), temperature).log_softmax(-1)
        logp_C = logp_CV.gather(-1, target_C[:, None]).squeeze(-1)
        terms = (logp_C, _entropy(logp_CV if entropy_gradient else logp_CV.detach()))
        if reader is None:
            return terms
        return *terms, expected_difference(logp_CV, ReaderLogprobs(*read, bound=reader.bound))

    given = (hidden_NH, target_N, *(reader.columns if reader else ()))
    size = at_once(head, hidden_NH)
    if not head_learns and not entropy_gradient and reader is None and hidden_NH.requires_grad:
        return ScoredPositions(*_FrozenHead.apply(hidden_NH, target_N, head, temperature, size))
    if len(target_N) <= size:
        return ScoredPositions(*chunk(*given))
    parts = [
        checkpoint(chunk, *piece, use_reentrant=False, preserve_rng_state=False)
        for piece in zip(*(tensor.split(size) for tensor in given))
    ]
    return ScoredPositions(*map(torch.cat, zip(*parts)))


class _FrozenHead(torch.autograd.Function):
    """Log-probabilities and entropies, with the gradient computed in the forward pass.

    A log-probability depends only on the hidden state of its own position. The backward pass
    multiplies that gradient by the incoming one and needs no logits.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden_NH: Tensor, target_N: Tensor, head: Head, temperature: float, size: int
    ) -> tuple[Tensor, Tensor]:
        logp, entropy, slope = [], [], []
        for hidden_CH, target_C in zip(hidden_NH.split(size), target_N.split(size)):
            with torch.enable_grad():
                own_CH = hidden_CH.detach().requires_grad_()
                logits_CV = head(own_CH)
            logp_C, entropy_C, slope_CV = _with_slope(logits_CV.detach(), target_C, temperature)
            slope += torch.autograd.grad(logits_CV, own_CH, slope_CV)
            logp.append(logp_C)
            entropy.append(entropy_C)
        ctx.save_for_backward(torch.cat(slope))
        entropy_N = torch.cat(entropy)
        ctx.mark_non_differentiable(entropy_N)
        return torch.cat(logp), entropy_N

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor, _: Tensor) -> tuple[Tensor, None, None, None, None]:  # type: ignore[override]
        (slope_NH,) = ctx.saved_tensors
        return (grad_N[:, None] * slope_NH).to(slope_NH.dtype), None, None, None, None


def _with_slope(
    logits_CV: Tensor, target_C: Tensor, temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log-probabilities of ``target_C``, the entropies, and the gradient of the former:
    d log p_t / d logit_v = (1[v = t] - p_v) / temperature.

    It reads the logits fewer times than autograd would.
    """
    logits_at_once = _LOGITS_IN_CACHE if logits_CV.is_cpu else logits_CV.numel()
    rows = max(1, logits_at_once // logits_CV.shape[1])
    pieces = zip(logits_CV.split(rows), target_C.split(rows))
    logp, entropy, slope = zip(*(_slope(*piece, temperature) for piece in pieces))
    return torch.cat(logp), torch.cat(entropy), torch.cat(slope)


def _slope(
    logits_CV: Tensor, target_C: Tensor, temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`_with_slope` in one piece."""
    target_C1 = target_C[:, None]
    logp_CV = _tempered(logits_CV, temperature).log_softmax(-1)
    logp_C1 = logp_CV.gather(-1, target_C1)
    p_CV = logp_CV.exp()
    # As in _entropy.
    entropy_C = -logp_CV.clamp_(min=torch.finfo(torch.float32).min).mul_(p_CV).sum(-1)
    slope_CV = p_CV.neg_().scatter_add_(-1, target_C1, torch.ones_like(logp_C1))
    if temperature != 1:
        slope_CV.div_(temperature)
    return logp_C1[:, 0], entropy_C, slope_CV.to(logits_CV.dtype)


@torch.no_grad()
def likeliest(
    hidden_NH: Tensor,
    target_N: Tensor,
    head: Head,
    count: int,
    *,
    temperature: float,
    width: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids of the likeliest tokens (N, K), their log-probabilities in float32 (N, K), and
    those of ``target_N`` (N,). K is ``count``, or the size of a smaller vocabulary. Ids are below
    ``width``, if it is given."""
    parts = []
    size = at_once(head, hidden_NH)
    for hidden_CH, target_C in zip(hidden_NH.split(size), target_N.split(size)):
        logp_CV = _tempered(head(hidden_CH), temperature).log_softmax(-1)
        known_CV = logp_CV[:, :width]
        top = known_CV.topk(min(count, known_CV.shape[-1]))
        parts.append((top.indices, top.values, logp_CV.gather(-1, target_C[:, None]).squeeze(-1)))
    ids_NK, logp_NK, logp_N = map(torch.cat, zip(*parts))
    return ids_NK, logp_NK, logp_N


def _tempered(logits_CV: Tensor, temperature: float) -> Tensor:
    logits_CV = logits_CV.float()
    return logits_CV if temperature == 1 else logits_CV / temperature


def _entropy(logp_CV: Tensor) -> Tensor:
    # The log of probability 0 is -inf, and 0 * -inf is NaN, but such a token adds 0.
    finite_CV = logp_CV.clamp(min=torch.finfo(torch.float32).min)
    if logp_CV.requires_grad:
        return -(logp_CV.exp() * finite_CV).sum(-1)
    return -finite_CV.mul_(logp_CV.exp()).sum(-1)


def positions_at_once(vocab_size: int, *, on_cpu: bool) -> int:
    """Return the number of positions whose logits are computed at once."""
    logits = _LOGITS_AT_ONCE_ON_CPU if on_cpu else _LOGITS_AT_ONCE
    return max(_MIN_POSITIONS_AT_ONCE, logits // vocab_size)


def at_once(head: Head, hidden_NH: Tensor) -> int:
    """Return :func:`positions_at_once` for ``head`` on the device of ``hidden_NH``."""
    # Empty input shows the head's width without computing anything.
    return positions_at_once(head(hidden_NH[:0]).shape[-1], on_cpu=hidden_NH.is_cpu)


def batch_logprobs(
    model: TrainableModel, batch: Batch, *, temperature: float, entropy_gradient: bool = False
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Score a batch's sampled tokens; the head computes no other positions.

    Args:
        model: the model that scores.
        batch: padded rows.
        temperature: divides the logits.
        entropy_gradient: whether entropies carry a gradient.

    Returns:
        (B, T - 1) log-probabilities, entropies in nats, and the expected difference from the
        batch's reader (None without a reader); all 0 outside the mask.
    """
    ids_BT, mask_BT = batch.ids_BT, batch.mask_BT

    def compute() -> tuple[Tensor, Tensor, Tensor | None]:
        scored = score(
            model.scored_states(ids_BT, mask_BT),
            ids_BT[:, 1:][mask_BT],
            model.head,
            temperature=temperature,
            entropy_gradient=entropy_gradient,
            reader=batch.reader,
            # With sharded weights, the backward pass must gather the head again.
            head_learns=model.head_learns or model.ranks.size > 1,
        )
        empty_BT = torch.zeros(mask_BT.shape, device=scored.logp_N.device)

        def placed(value_N: Tensor) -> Tensor:
            return empty_BT.masked_scatter(mask_BT, value_N)

        gain_BT = None if scored.gain_N is None else placed(scored.gain_N)
        return placed(scored.logp_N), placed(scored.entropy_N), gain_BT

    return model.ranks.forward(compute)


def batch_likeliest(
    model: TrainableModel,
    batch: Batch,
    count: int,
    *,
    temperature: float,
    width: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply :func:`likeliest` to the batch's sampled tokens, row by row."""

    def compute() -> tuple[Tensor, Tensor, Tensor]:
        hidden_NH = model.scored_states(batch.ids_BT, batch.mask_BT)
        target_N = batch.ids_BT[:, 1:][batch.mask_BT]
        return likeliest(
            hidden_NH, target_N, model.head, count, temperature=temperature, width=width
        )

    return model.ranks.forward(compute)
