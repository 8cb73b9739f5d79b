"""A frozen model's probabilities of tokens that another model has sampled."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coterie.cli.progress import READ
from coterie.datatypes import Reading, Trajectory

if TYPE_CHECKING:  # scripts and servers do without torch
    from coterie.agents.models.handle import ModelHandle


@dataclass(frozen=True)
class ReadRequest:
    """What a teacher computes at each token."""

    temperature: float
    """Divides the teacher's logits, as the learner's."""
    likeliest: int
    """Number of the teacher's likeliest tokens at each place; 0: only the sampled one."""
    width: int
    """Ids of the learner's model; the teacher's likeliest tokens are below."""


def read_rows(
    handle: "ModelHandle", rows: Sequence[Trajectory], request: ReadRequest
) -> list[Reading | None]:
    """Return the probabilities of the tokens of each row, by a model in this process; None for rows
    that do not fit."""
    from coterie.algorithms import LearnerSettings
    from coterie.algorithms.batched_model import BatchedModel
    from coterie.algorithms.distillation import on_sampled

    readings: list[Reading | None] = [None for _ in rows]
    use = [i for i, r in enumerate(rows) if r.is_readable(handle.context, handle.vocab_size)]
    read = [rows[i] for i in use]
    tokens = LearnerSettings().micro_batch_tokens
    batched = BatchedModel(handle, tokens, request.temperature, READ)
    with handle.active():
        if request.likeliest:
            likeliest = batched.likeliest(read, request.likeliest, width=request.width)
            for i, (ids_NK, logp_NK, logp_N) in zip(use, likeliest, strict=True):
                readings[i] = Reading(
                    logp_N.cpu().numpy(), ids_NK.cpu().numpy(), logp_NK.cpu().numpy()
                )
        else:
            for i, logp_N in zip(use, on_sampled(read, batched.logprobs(read)), strict=True):
                readings[i] = Reading(np.asarray(logp_N.float().cpu()))
    return readings
