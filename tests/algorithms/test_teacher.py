"""On-policy distillation from another model (arXiv:2306.13649)."""

import dataclasses

import numpy as np
import torch

from coterie.algorithms import Learner, LearnerSettings, assign_credit, get
from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import Reading
from tests.algorithms.conftest import VOCABULARY, TinyModel, build_module

PLAIN = LearnerSettings(importance_correction="none")
FAR = 1e6
TAUGHT = Distillation(beta=0.5, bound=FAR, teacher="another", rewards=False)


def next_tokens(model: TinyModel, row) -> torch.Tensor:
    """(N, V) log-probabilities at the sampled tokens, by a plain forward pass."""
    logits = model.module(torch.from_numpy(row.tokens)[None]).logits[0, :-1]
    return logits.log_softmax(-1)[torch.from_numpy(row.mask[1:])]


def read(teacher: TinyModel, row, likeliest: int):
    logp_NV = next_tokens(teacher, row).detach()
    sampled = torch.from_numpy(row.tokens[1:][row.mask[1:]])
    logp_N = logp_NV.gather(1, sampled[:, None])[:, 0].numpy()
    if not likeliest:
        return dataclasses.replace(row, reading=Reading(logp_N))
    top = logp_NV.topk(likeliest)
    reading = Reading(logp_N, top.indices.numpy(), top.values.numpy())
    return dataclasses.replace(row, reading=reading)


def learner_of(settings: Distillation) -> Learner:
    algorithm = dataclasses.replace(get("grpo"), distillation=settings)
    return Learner(TinyModel(build_module()), algorithm, PLAIN)


def gradient(learner: Learner, rows) -> dict[str, torch.Tensor | None]:
    signal, _, _ = learner._rereading(rows, None, 0.0)
    learner._gradient(rows, np.zeros(len(rows)), None, None, range(len(rows)), signal)
    return {name: p.grad for name, p in learner.model.parameters().items()}


def test_the_gradient_is_that_of_the_reverse_divergence(make_rows) -> None:
    """beta mean_i mean_t KL(pi || teacher) at each place, by autograd through both of its pi."""
    teacher, model = TinyModel(build_module(seed=1)), TinyModel(build_module())
    rows = make_rows(4)
    loss = torch.zeros(())
    for row in rows:
        own_NV, read_NV = next_tokens(model, row), next_tokens(teacher, row).detach()
        loss = loss + 0.5 * (own_NV.exp() * (own_NV - read_NV)).sum(1).mean() / len(rows)
    loss.backward()
    settings = dataclasses.replace(TAUGHT, likeliest=VOCABULARY)
    ours = gradient(learner_of(settings), [read(teacher, row, VOCABULARY) for row in rows])
    for name, p in model.parameters().items():
        torch.testing.assert_close(ours[name], p.grad, rtol=1e-3, atol=1e-7)


def test_a_sampled_token_gets_the_difference(make_rows) -> None:
    """The gradient of - beta mean_t (log teacher - log pi) log pi, the difference held fixed."""
    teacher, model = TinyModel(build_module(seed=1)), TinyModel(build_module())
    rows = make_rows(4)
    loss = torch.zeros(())
    for row in rows:
        sampled = torch.from_numpy(row.tokens[1:][row.mask[1:]])[:, None]
        own_N, read_N = (next_tokens(m, row).gather(1, sampled)[:, 0] for m in (model, teacher))
        loss = loss - 0.5 * ((read_N - own_N).detach() * own_N).mean() / len(rows)
    loss.backward()
    ours = gradient(learner_of(TAUGHT), [read(teacher, row, 0) for row in rows])
    for name, p in model.parameters().items():
        torch.testing.assert_close(ours[name], p.grad, rtol=1e-3, atol=1e-7)


def test_only_rows_that_the_teacher_has_read_are_distilled(make_rows) -> None:
    teacher, rows = TinyModel(build_module(seed=1)), make_rows(4)
    rows[2] = read(teacher, rows[2], 0)
    # Another context counts only for a role that teaches itself.
    rows[0] = dataclasses.replace(rows[0], reread_after=np.array([7, 3]))
    metrics = (learner := learner_of(TAUGHT)).update(rows, np.zeros(4))
    assert metrics["distillation/rows"] == 0.25
    assert list(learner.token_bonus) == [2]


def test_without_rewards_there_is_no_advantage(make_rows) -> None:
    rows = make_rows(8)
    algorithm = get("grpo")
    usual = assign_credit(rows, "problem", algorithm)
    assert usual.advantage_B.any()
    alone = dataclasses.replace(algorithm, distillation=TAUGHT)
    credit = assign_credit(rows, "problem", alone)
    assert not credit.advantage_B.any()
    assert credit.stats == usual.stats
