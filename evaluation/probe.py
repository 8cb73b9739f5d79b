"""A probe: is an answer right, read off the model's own hidden states.

COREA (arXiv:2603.03752, section 4.1): an MLP with 2048 and 1024 hidden units on the last layer's
states, averaged over question and response; cross entropy on one response per question, a ninth
part held out, the weights with the lowest held-out loss kept.
"""

# N responses, D hidden units, T tokens

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from models.handle import ModelHandle

_TOKENS_AT_ONCE = 8192


@torch.no_grad()
def pooled_states(handle: ModelHandle, rows: Sequence[Sequence[int]]) -> Tensor:
    """(N, D) mean of the last hidden states of each row of tokens, in float32."""
    pooled = torch.empty(0)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    found: list[tuple[list[int], Tensor]] = []
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and len(rows[order[stop]]) * (stop + 1 - start) <= _TOKENS_AT_ONCE:
            stop += 1
        chosen = order[start:stop]
        longest = len(rows[chosen[-1]])
        ids_NT = torch.zeros((len(chosen), longest), dtype=torch.long, device=handle.device)
        inside_NT = torch.zeros((len(chosen), longest, 1), device=handle.device)
        for place, i in enumerate(chosen):
            ids_NT[place, : len(rows[i])] = torch.tensor(rows[i])
            inside_NT[place, : len(rows[i])] = 1.0
        positions_NT = torch.arange(longest, device=handle.device).expand_as(ids_NT)
        with handle.active():
            # Padding lies on the right, where a causal model does not look.
            hidden_NTD = handle.backbone(ids_NT, None, positions_NT).float()
        mean_ND = (hidden_NTD * inside_NT).sum(1) / inside_NT.sum(1)
        found.append((chosen, mean_ND.cpu()))
        start = stop
    if found:
        pooled = torch.empty(len(rows), found[0][1].shape[1])
        for chosen, mean_ND in found:
            pooled[chosen] = mean_ND
    return pooled


def fit_probe(
    states_ND: Tensor,
    correct_N: npt.ArrayLike,
    *,
    seed: int = 0,
    learning_rate: float = 5e-5,
    epochs: int = 20,
    batch: int = 32,
    hidden: tuple[int, int] = (2048, 1024),
) -> nn.Module:
    """The probe with the lowest loss on the held-out tenth; (N, D) states to (N,) probabilities."""
    correct = torch.as_tensor(np.asarray(correct_N, dtype=np.float32))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        centre, spread = states_ND.mean(0), states_ND.std(0) + 1e-6
        probe = nn.Sequential(
            _Standardise(centre, spread),
            nn.Linear(states_ND.shape[1], hidden[0]),
            nn.ReLU(),
            nn.Linear(hidden[0], hidden[1]),
            nn.ReLU(),
            nn.Linear(hidden[1], 1),
            nn.Flatten(0),
        )
        order = torch.randperm(len(correct))
        held = max(1, len(order) // 10)
        test, train = order[:held], order[held:]
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
    """States of different models have different scales."""

    def __init__(self, centre_D: Tensor, spread_D: Tensor) -> None:
        super().__init__()
        self.centre_D = nn.Buffer(centre_D)
        self.spread_D = nn.Buffer(spread_D)

    def forward(self, states_ND: Tensor) -> Tensor:
        return (states_ND - self.centre_D) / self.spread_D
