"""Rows that are read again behind a context that their author did not have."""

import dataclasses

import numpy as np
import pytest
import torch

from coterie.algorithms import Algorithm, Learner, LearnerSettings, get
from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.distillation import token_bonus
from coterie.datatypes import UserError

PLAIN = LearnerSettings(importance_correction="none")
HINTED = np.array([7, 3, 11, 5, 2])
NOTHING = np.zeros(8)


def distilling(name: str = "gspo", **how) -> Algorithm:
    return dataclasses.replace(get(name), distillation=Distillation(**{"beta": 1.0, **how}))


def weights(model) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.parameters().items()}


def logprobs(model, tokens: np.ndarray) -> torch.Tensor:
    """(T - 1,) without anything of ours."""
    logp = model.module(torch.from_numpy(tokens)[None]).logits[0, :-1].log_softmax(-1)
    return logp[torch.arange(len(tokens) - 1), torch.from_numpy(tokens[1:])]


def named(make_rows, *which: int):
    """Eight rows, of which ``which`` name another context."""
    return [
        dataclasses.replace(row, reread_after=HINTED) if i in which else row
        for i, row in enumerate(make_rows(8))
    ]


def test_by_hand(make_rows) -> None:
    row = dataclasses.replace(
        make_rows(1)[0],
        tokens=np.array([1, 2, 3, 4, 9, 5]),
        mask=np.array([False, False, True, True, False, True]),
        reread_after=np.array([8]),
    )
    # Sampled: 3, 4 and 5, at columns 1, 2 and 4 of the row, and at 0, 1 and 3 behind [8].
    own = torch.tensor([0.0, -1.0, -3.0, 0.0, -0.5])
    read = torch.tensor([-2.0, -0.5, 0.0, -4.5])
    how = Distillation(beta=0.5, bound=2.0)
    # -2 + 1 = -1; -.5 + 3 = 2.5, at most 2; -4.5 + .5 = -4, at least -2; half of each.
    bonus = token_bonus(how, row, own, row.as_reread(), read)
    assert bonus.tolist() == [0, -0.5, 1.0, 0, -1.0]
    # A token that either finds impossible says nothing if both do.
    own[1] = read[0] = -np.inf
    assert token_bonus(how, row, own, row.as_reread(), read)[1] == 0


@pytest.mark.parametrize("name", ["grpo", "gspo", "cispo", "sapo", "gspo-paper"])
def test_the_gradient_is_that_of_the_formula(name: str, tiny, make_rows) -> None:
    """sum_i mean_t (A_i + beta clip(log pi(y_t | h) - log pi(y_t | x))) grad log pi / B on fresh
    rows, by autograd through a plain forward pass."""
    rows = named(make_rows, 1, 4)
    advantages = np.array([0.0, -0.5, 0.25, 0.0, 0.0, 1.0, 0.0, 0.0])
    model, parts = tiny(), []
    for row, advantage in zip(rows, advantages):
        mask = torch.from_numpy(row.mask[1:])
        own = logprobs(model, row.tokens)[mask]
        told = torch.full_like(own, advantage)
        if row.reread_after is not None:
            start = int(row.mask.argmax())
            behind = np.concatenate([HINTED, row.tokens[start:]])
            read = logprobs(model, behind)[len(HINTED) - 1 :][torch.from_numpy(row.mask[start:])]
            told = told + 0.7 * (read - own).clamp(-0.3, 0.3).detach()
        parts.append(told * own)
    # CISPO averages over tokens, the others over rows.
    averaged = [torch.cat(parts)] if name == "cispo" else parts
    loss = -sum(part.mean() for part in averaged) / len(averaged)
    loss.backward()
    expected = {n: p.grad.clone() for n, p in model.parameters().items()}

    learner = Learner(tiny(), distilling(name, beta=0.7, bound=0.3, reader="current"), PLAIN)
    bonus, _ = learner._read_again(rows, None)
    learner._gradient(rows, advantages, None, None, range(8), bonus)
    for n, p in learner.model.parameters().items():
        torch.testing.assert_close(p.grad, expected[n], rtol=1e-4, atol=1e-7)


def test_what_is_off_or_names_nothing_changes_nothing(tiny, make_rows) -> None:
    advantages = np.linspace(-1, 1, 8)
    models = [tiny() for _ in range(3)]
    plain = Learner(models[0], get("gspo"), PLAIN).update(named(make_rows, 1), advantages)
    Learner(models[1], get("gspo"), PLAIN).update(make_rows(8), advantages)
    on = Learner(models[2], distilling(), PLAIN).update(make_rows(8), advantages)
    assert "distillation/rows" not in plain
    assert on["distillation/rows"] == 0
    for model in models[1:]:
        for name, value in weights(model).items():
            torch.testing.assert_close(value, weights(models[0])[name], rtol=0, atol=0)


def test_rows_without_advantage_learn_and_are_counted(tiny, make_rows) -> None:
    model = tiny()
    before = weights(model)
    metrics = Learner(model, distilling(bound=0.01), PLAIN).update(named(make_rows, 2, 5), NOTHING)
    assert metrics["distillation/rows"] == 2 / 8
    assert 0 < metrics["distillation/size"] <= 0.01 + 1e-6
    assert 0.5 < metrics["distillation/bounded"] <= 1
    assert any(not torch.equal(value, before[name]) for name, value in weights(model).items())


def test_a_context_for_which_there_is_no_room_is_left_out(tiny, make_rows) -> None:
    model = tiny()
    rows = named(make_rows, 2)
    model.context = len(rows[2].as_reread().tokens) - 1
    assert Learner(model, distilling(), PLAIN).update(rows, NOTHING)["distillation/rows"] == 0
    model.context += 1
    assert Learner(model, distilling(), PLAIN).update(rows, NOTHING)["distillation/rows"] == 1 / 8


def test_who_reads(tiny, make_rows) -> None:
    """All are one before the first step. After it the average has moved a twentieth of the way,
    the start not at all."""
    rows, found = named(make_rows, 0, 3), {}
    advantages = np.linspace(-1, 1, 8)
    for reader in ("average", "current", "start"):
        model = tiny()
        learner = Learner(model, distilling(reader=reader), PLAIN)
        start = weights(model)
        first, _ = learner._read_again(rows, None)
        learner.update(rows, advantages)
        second, _ = learner._read_again(rows, None)
        found[reader] = (first, second)
        if reader == "average":
            for name, value in weights(model).items():
                expected = 0.95 * start[name] + 0.05 * value
                torch.testing.assert_close(learner._average[name], expected)
    for reader in ("current", "start"):
        for one, two in zip(found["average"][0], found[reader][0]):
            torch.testing.assert_close(one, two)
        assert not torch.allclose(found["average"][1][0], found[reader][1][0], atol=1e-5)


def test_the_average_outlives_a_checkpoint(tiny, make_rows) -> None:
    rows = named(make_rows, 0, 3)
    whole = Learner(tiny(), distilling(), PLAIN)
    whole.update(rows, NOTHING)
    tensors, plain = whole.state_dict()
    again = Learner(tiny(), distilling(), PLAIN)
    again.model.module.load_state_dict(whole.model.module.state_dict())
    again.load_state_dict(tensors, plain)
    for learner in (whole, again):
        learner.update(rows, NOTHING)
    for name, value in weights(whole.model).items():
        torch.testing.assert_close(value, weights(again.model)[name], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"beta": -1.0}, "beta must not be negative"),
        ({"bound": 0.0}, "bound must be above 0"),
        ({"decay": 1.0}, "decay must be at least 0 and below 1"),
    ],
)
def test_what_cannot_be(how, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Distillation(**how)
