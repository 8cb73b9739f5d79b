"""Measures from a model's states on its stored responses: a probe, and token probabilities.

The probe predicts from the hidden states whether an answer is right.

COREA (arXiv:2603.03752, appendix A.1): an MLP with 2048 and 1024 hidden units on the last layer's
states, averaged over question and response; cross entropy on one response per question; a tenth
held out; the weights with the lowest held-out loss are kept.
"""

# N responses, D hidden units, T tokens

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from coterie.agents.models.handle import ModelHandle
from coterie.agents.team.team import build_team
from coterie.algorithms.batching import micro_batches, pad
from coterie.algorithms.logprobs import score
from coterie.datatypes import Trajectory, UserError
from coterie.evaluation.compare.policies import NamedPolicy
from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.metrics.means import Floats

_TOKENS_AT_ONCE = 8192


def probe_scores(
    policy: NamedPolicy,
    fitted: Responses,
    scored: Responses,
    **how: Any,
) -> Floats:
    """Fit a probe on one response to each question of ``fitted`` and return (Q, S) predictions for
    the responses of ``scored``; NaN where there is no response. ``how``: that of :func:`fit_probe`.
    """
    handle = _handle(policy)
    first = [[row[0]] for row in fitted.records]
    states_ND = pooled_states(handle, [tokens for tokens, _ in _tokens(first)])
    right_N = fitted.correct_QN[:, 0]
    probe = fit_probe(states_ND, right_N[~np.isnan(right_N)], **how)
    with torch.no_grad():
        rows = [tokens for tokens, _ in _tokens(scored.records)]
        score_N = probe(pooled_states(handle, rows)).numpy().astype(np.float64)
    return _by_question(score_N, scored)


def mean_probabilities(policy: NamedPolicy, responses: Responses) -> Floats:
    """Return (Q, S) arithmetic means of the sampled tokens' probabilities in the learner's forward
    pass at temperature 1, whatever the sampling temperature; NaN where there is no response."""
    handle = _handle(policy)
    rows = [_row(tokens, turns) for tokens, turns in _tokens(responses.records)]
    mean_N = np.zeros(len(rows))
    with torch.no_grad(), handle.active():
        for chosen in micro_batches(rows, _TOKENS_AT_ONCE, shares_from=handle.shares_from):
            batch = pad([rows[i] for i in chosen], np.zeros(len(chosen)), handle.device)
            hidden_NH = handle.scored_states(batch.ids_BT, batch.mask_BT)
            target_N = batch.ids_BT[:, 1:][batch.mask_BT]
            logp_N = score(hidden_NH, target_N, handle.head, temperature=1.0).logp_N
            row_N = batch.mask_BT.nonzero()[:, 0].cpu().numpy()
            total = np.bincount(row_N, logp_N.double().exp().cpu().numpy(), len(chosen))
            mean_N[chosen] = total / np.maximum(np.bincount(row_N, minlength=len(chosen)), 1)
    return _by_question(mean_N, responses)


def _handle(policy: NamedPolicy) -> ModelHandle:
    return build_team({policy.name: policy.settings}).loaded[policy.name].handle


def _tokens(records: Any) -> list[tuple[list[int], list[list[int]]]]:
    """(tokens, spans of the sampled turns) of every response."""
    found = [record for row in records for record in row if record is not None]
    return [(record["tokens"], record.get("turns") or _one_turn(record)) for record in found]


def _one_turn(record: Any) -> list[list[int]]:
    """The span after the prompt, for responses that were stored without ``turns``."""
    return [[int(next(iter(record["used"].values()))[0]), len(record["tokens"])]]


def _by_question(values_N: Floats, responses: Responses) -> Floats:
    """(Q, S) array of the values of all responses; NaN where there is none."""
    values_QS = np.full(responses.correct_QN.shape, np.nan)
    values_QS[~np.isnan(responses.correct_QN)] = values_N
    return values_QS


def _row(tokens: list[int], turns: list[list[int]]) -> Trajectory:
    sampled = np.zeros(len(tokens), dtype=np.bool_)
    for start, end in turns:
        sampled[start:end] = True
    return Trajectory(
        agent="policy_0",
        role="policy",
        tokens=np.asarray(tokens, dtype=np.int64),
        mask=sampled,
        logprobs=np.zeros(len(tokens), dtype=np.float32),
        reward=0.0,
        reward_terms={},
        groups={},
        turns=tuple((start, end) for start, end in turns),
    )


@torch.no_grad()
def pooled_states(handle: ModelHandle, rows: Sequence[Sequence[int]]) -> Tensor:
    """Return (N, D) means of the last hidden states of each row of tokens, in float32."""
    pooled = [torch.empty(0)] * len(rows)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and len(rows[order[stop]]) * (stop + 1 - start) <= _TOKENS_AT_ONCE:
            stop += 1
        chosen = order[start:stop]
        longest = len(rows[chosen[-1]])
        ids_NT = torch.zeros((len(chosen), longest), dtype=torch.long, device=handle.device)
        inside_NT = torch.zeros((len(chosen), longest, 1), device=handle.device)
        for row, i in enumerate(chosen):
            ids_NT[row, : len(rows[i])] = torch.tensor(rows[i])
            inside_NT[row, : len(rows[i])] = 1.0
        positions_NT = torch.arange(longest, device=handle.device).expand_as(ids_NT)
        with handle.active():
            # Padding is on the right, which a causal model does not attend to.
            hidden_NTD = handle.backbone(ids_NT, positions_NT).float()
        mean_ND = (hidden_NTD * inside_NT).sum(1) / inside_NT.sum(1)
        for i, mean_D in zip(chosen, mean_ND.cpu()):
            pooled[i] = mean_D
        start = stop
    return torch.stack(pooled) if pooled else torch.empty(0)


def fit_probe(
    states_ND: Tensor,
    correct_N: npt.ArrayLike,
    *,
    seed: int = 0,
    learning_rate: float = 5e-5,
    epochs: int = 20,
    batch: int = 32,
) -> nn.Module:
    """Fit a probe, (N, D) states -> (N,) probabilities; keep that of lowest held-out loss.

    Raises:
        UserError: there are fewer than two responses.
    """
    if len(states_ND) < 2:
        raise UserError(
            f"rlvr-probe is fitted on two responses at least, and here is {len(states_ND)}: raise "
            "--fit-questions, or name other questions with --fit-problems"
        )
    correct = torch.as_tensor(np.asarray(correct_N, dtype=np.float32))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        centre, spread = states_ND.mean(0), states_ND.std(0) + 1e-6
        probe = nn.Sequential(
            _Standardise(centre, spread),
            nn.Linear(states_ND.shape[1], 2048),
            nn.ReLU(),
            nn.Linear(2048, 1024),
            nn.ReLU(),
            nn.Linear(1024, 1),
            nn.Flatten(0),
        )
        order = torch.randperm(len(correct))
        held_out = max(1, len(order) // 10)
        test, train = order[:held_out], order[held_out:]
        optimizer = torch.optim.AdamW(probe.parameters(), lr=learning_rate)
        loss_of = nn.BCEWithLogitsLoss()
        best, kept = float("inf"), {k: v.clone() for k, v in probe.state_dict().items()}
        for _ in range(epochs):
            for part in train[torch.randperm(len(train))].split(batch):
                optimizer.zero_grad()
                loss_of(probe(states_ND[part]), correct[part]).backward()
                optimizer.step()
            with torch.no_grad():
                loss = float(loss_of(probe(states_ND[test]), correct[test]))
            if loss < best:
                best, kept = loss, {k: v.clone() for k, v in probe.state_dict().items()}
        probe.load_state_dict(kept)
    return nn.Sequential(probe, nn.Sigmoid()).eval()


class _Standardise(nn.Module):
    """Standardise states, as models have different scales."""

    def __init__(self, centre_D: Tensor, spread_D: Tensor) -> None:
        super().__init__()
        self.centre_D = nn.Buffer(centre_D)
        self.spread_D = nn.Buffer(spread_D)

    def forward(self, states_ND: Tensor) -> Tensor:
        return (states_ND - self.centre_D) / self.spread_D
