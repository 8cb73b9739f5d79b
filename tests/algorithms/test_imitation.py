"""Imitation is a step up the likelihood of what others wrote."""

import numpy as np
import pytest
import torch

from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import ModelSpec
from coterie.algorithms import Learner, LearnerSettings
from coterie.algorithms.imitation import (
    LIKELIHOOD,
    Imitation,
    describe_imitation,
    imitating,
    worked_row,
)


def test_only_the_solution_and_its_end_are_learned() -> None:
    loaded = load_team({"alice": ModelSpec("tiny:alice")}, {"alice"}, seed=0)["alice"]
    codec, given = loaded.codec, loaded.codec.open("1 + 1 =")
    row = worked_row(codec, given, " 2", role="alice", problem="p")
    assert row.tokens.tolist() == [*given, *codec.extend(" 2"), codec.eos_ids[0]]
    assert row.mask.tolist() == [False] * len(given) + [True] * (len(row.tokens) - len(given))
    assert row.trainable
    cut = worked_row(codec, given, " 2", role="alice", problem="p", ends=False)
    assert cut.tokens.tolist() == row.tokens.tolist()[:-1]


def test_a_step_is_that_of_the_cross_entropy() -> None:
    loaded = load_team({"alice": ModelSpec("tiny:alice")}, {"alice"}, seed=0)["alice"]
    texts = [("1 + 1 =", " 2"), ("3 + 4 + 5 =", " 3 + 4 = 7")]
    rows = [
        worked_row(loaded.codec, loaded.codec.open(asked), said, role="alice", problem=asked)
        for asked, said in texts
    ]
    # The reference: transformers' own loss, summed and divided by all learned tokens.
    lm, total, nll = loaded.handle.causal_lm, sum(int(row.mask.sum()) for row in rows), 0.0
    for row in rows:
        ids = torch.from_numpy(row.tokens)[None]
        labels = torch.where(torch.from_numpy(row.mask)[None], ids, -100)
        part = lm(input_ids=ids, labels=labels).loss * int(row.mask.sum()) / total
        part.backward()
        nll += float(part.detach())
    parameters = list(lm.parameters())
    norm = float(torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None]))
    for parameter in parameters:
        parameter.grad = None

    learner = Learner(loaded.handle, LIKELIHOOD, imitating(LearnerSettings(lr=1e-3)))
    metrics = describe_imitation(learner.update(rows, np.ones(len(rows))))
    assert metrics["loss"] == pytest.approx(nll, rel=1e-4)
    assert metrics["grad_norm"] == pytest.approx(norm, rel=1e-3)
    assert describe_imitation(learner.update(rows, np.ones(2)))["loss"] < nll


def test_the_rate_rises_over_a_tenth_and_falls_to_nothing() -> None:
    loaded = load_team({"alice": ModelSpec("tiny:alice")}, {"alice"}, seed=0)["alice"]
    settings = Imitation(steps=20, lr=1e-3).settings(
        LearnerSettings(lr=9.0, epochs=3, minibatches=2, importance_cap=5.0)
    )
    assert (settings.optimizer_steps, settings.importance_correction) == (1, "none")
    learner = Learner(loaded.handle, LIKELIHOOD, settings, total_steps=20)
    row = worked_row(loaded.codec, loaded.codec.open("1 ="), " 1", role="alice", problem="p")
    rates = [learner.update([row], np.ones(1))["lr"] for _ in range(20)]
    # Warm-up is 2 of 20 steps: 1/2 of the peak in the first, then (20 - done) / 18 of it.
    assert rates[:4] == pytest.approx([5e-4, 1e-3, 1e-3, 17 / 18 * 1e-3])
    assert rates[-1] == pytest.approx(1e-3 / 18)
