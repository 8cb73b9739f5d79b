"""Peers' traces that a role learns as if it had written them (HACPO, arXiv:2603.02604)."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from coterie.algorithms import Credit
from coterie.algorithms.algorithm import Sharing
from coterie.datatypes import TokenCodec, Trajectory
from coterie.teams.team import Learns
from coterie.training.batch import Batch, rows_of

Shared = tuple[list[Trajectory], list[float]]


def rows_to_learn(
    how: Sharing, batch: Batch, credit: Credit, role: str, learner: Learns, codec: TokenCodec
) -> tuple[tuple[list[Trajectory], npt.NDArray[np.float64]], dict[str, float]]:
    """A role's own rows with their advantages, and those of its peers that it is to learn; metrics
    of these."""
    rows, advantages = rows_of(batch, credit, role)
    if not how.weight:
        return (rows, advantages), {}
    (more, worth), metrics = admit(how, learner, shared_rows(batch, credit, role, codec))
    return (rows + more, np.append(advantages, worth)), metrics


def shared_rows(batch: Batch, credit: Credit, role: str, codec: TokenCodec) -> Shared:
    """What peers wrote to the role's own prompts and earned more than their group with, in the
    role's tokens, with their advantages.

    ``logprobs`` are the author's mean over its own tokens: tokenizers may differ. A trace that its
    author ended ends in the role's tokens, too, and it counts as much as its author's. Rows of
    several turns are left out, and those whose author cannot tell its log-probabilities.
    """
    own = {row.texts[0]: row for row in batch.rows if row.role == role and _is_short(row)}
    rows: list[Trajectory] = []
    worth: list[float] = []
    for row, advantage in zip(batch.rows, credit.advantage_B, strict=True):
        mine = own.get(row.texts[0]) if row.role != role and _is_short(row) else None
        if mine is None or advantage <= 0 or np.isnan(row.logprobs).any():
            continue
        start = mine.turns[0][0]
        ended = row.finish[0] == "eos"
        said = [*codec.extend(row.texts[1]), *(codec.eos_ids[:1] if ended else ())]
        mask = np.arange(start + len(said)) >= start
        shared = replace(
            mine,
            tokens=np.concatenate([mine.tokens[:start], np.asarray(said, np.int64)]),
            mask=mask,
            logprobs=np.where(mask, row.logprobs[row.mask].mean(), 0).astype(np.float32),
            turns=((start, start + len(said)),),
            loss_weight=row.loss_weight,
            reread_after=None,
            contrast_after=None,
        )
        rows.append(shared)
        worth.append(float(advantage))
    return rows, worth


def admit(how: Sharing, learner: Learns, shared: Shared) -> tuple[Shared, dict[str, float]]:
    """Those whose ratio s = (pi / pi_peer)^(1/|y|) lies within its bounds, weighted by it; and
    metrics.

    The gradient of ``clip(s, 1 - delta, 1) sg(s)^alpha A`` is ``s^(1 + alpha) A`` times that of the
    mean log-probability within the bounds, and 0 beyond them.
    """
    fitting = [pair for pair in zip(*shared) if len(pair[0].tokens) <= learner.context]
    mean_B = learner.mean_logprobs([row for row, _ in fitting])
    peer_B = np.array([row.logprobs[row.mask].mean() for row, _ in fitting])
    ratio_B = np.exp(np.clip(mean_B - peer_B, -20, 20))
    kept: Shared = ([], [])
    for (row, advantage), ratio in zip(fitting, ratio_B, strict=True):
        if 1 - how.delta <= ratio <= 1:
            weight = row.loss_weight * how.weight * float(ratio) ** (1 + how.alpha)
            # Nobody sampled these tokens here.
            unknown = np.where(row.mask, np.nan, 0).astype(np.float32)
            kept[0].append(replace(row, loss_weight=weight, logprobs=unknown))
            kept[1].append(advantage)
    found = {"sharing/offered": float(len(shared[0])), "sharing/rows": float(len(kept[0]))}
    return kept, found | ({"sharing/ratio": float(ratio_B.mean())} if fitting else {})


def _is_short(row: Trajectory) -> bool:
    return row.trainable and len(row.turns) == 1 and len(row.texts) == 2
