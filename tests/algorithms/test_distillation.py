"""Rows that are read again after a context that their author did not have."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from coterie.algorithms import Algorithm, Learner, LearnerSettings, get
from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.batching import ReaderLogprobs
from coterie.algorithms.distillation import (
    expected_difference,
    on_sampled,
    token_bonus,
)
from coterie.datatypes import Trajectory
from coterie.training.run.episode_records import row_record

PLAIN = LearnerSettings(importance_correction="none")
HINTED = np.array([7, 3, 11, 5, 2])
OTHER = np.array([7, 4, 2])
NOTHING = np.zeros(8)


def distilling(name: str = "gspo", **settings) -> Algorithm:
    return dataclasses.replace(get(name), distillation=Distillation(**{"beta": 1.0, **settings}))


def logprobs(model, tokens: np.ndarray) -> torch.Tensor:
    """(T - 1,) without anything of ours."""
    logp = model.module(torch.from_numpy(tokens)[None]).logits[0, :-1].log_softmax(-1)
    return logp[torch.arange(len(tokens) - 1), torch.from_numpy(tokens[1:])]


def named(make_rows, *which: int) -> list[Trajectory]:
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
    # Sampled: 3, 4 and 5, at columns 1, 2 and 4 of the row, and at 0, 1 and 3 after [8].
    own, read = on_sampled(
        [row, row.as_reread()],
        [torch.tensor([0.0, -1.0, -3.0, 0.0, -0.5]), torch.tensor([-2.0, -0.5, 0.0, -4.5])],
    )
    assert own.tolist() == [-1, -3, -0.5]
    assert read.tolist() == [-2, -0.5, -4.5]
    settings = Distillation(beta=0.5, bound=2.0)
    # -2 + 1 = -1; -.5 + 3 = 2.5, at most 2; -4.5 + .5 = -4, at least -2; half of each.
    assert token_bonus(settings, read, own).tolist() == [-0.5, 1.0, -1.0]
    # A token that either finds impossible says nothing if both do.
    own[0] = read[0] = -np.inf
    assert token_bonus(settings, read, own)[0] == 0


def test_a_contrast_stands_for_the_rows_own_probabilities(tiny, make_rows) -> None:
    """After one context twice nothing differs; after two it is their difference."""
    rows = named(make_rows, 1, 3, 5)
    rows[3] = dataclasses.replace(rows[3], contrast_after=HINTED)
    rows[5] = dataclasses.replace(rows[5], contrast_after=OTHER)
    learner = Learner(tiny(), distilling(bound=9.0), PLAIN)
    _, bonus, _ = learner._rereading(rows, None, 0.0)
    assert sorted(bonus) == [1, 3, 5]
    assert bonus[3].abs().max() < 1e-5
    hinted, contrast, read, own = (
        on_sampled([row], [logprobs(learner.model, row.tokens)])[0].detach()
        for row in (rows[5].as_reread(), rows[5].as_contrast(), rows[1].as_reread(), rows[1])
    )
    torch.testing.assert_close(bonus[5], hinted - contrast, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(bonus[1], read - own, rtol=1e-4, atol=1e-5)
    # Of several optimizer steps, the log-probabilities before the first one count.
    old = [logp - 0.1 for logp in learner._snapshot(rows)]
    _, later, _ = learner._rereading(rows, old, 0.0)
    torch.testing.assert_close(later[1], bonus[1] + 0.1, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(later[5], bonus[5])
    # Without room for the contrast a row is not reread.
    rows[5] = dataclasses.replace(rows[5], contrast_after=np.arange(1000) % 90)
    assert sorted(learner._rereading(rows, None, 0.0)[1]) == [1, 3]


def test_beta_fades_and_then_nothing_is_read(tiny, make_rows) -> None:
    settings = Distillation(beta=0.6, fade=0.8)
    assert [settings.after(n).beta for n in (0, 0.2, 0.8, 1)] == pytest.approx([0.6, 0.45, 0, 0])
    assert Distillation(beta=0.6).after(1).beta == 0.6
    # Nothing else changes: at its end the role has still not learned from rewards.
    alone = Distillation(beta=0.6, fade=1.0, teacher="t", rewards=False)
    assert not alone.after(1).rewards
    learner, still = Learner(tiny(), distilling(fade=0.5), PLAIN, total_steps=2), []
    for _ in range(2):
        metrics = learner.update(named(make_rows, 2), NOTHING)
        still.append((metrics["distillation/rows"], len(learner.token_bonus)))
    assert still == [(1 / 8, 1), (0, 0)]


def test_the_bonus_of_each_token_is_kept_for_the_log(tiny, make_rows) -> None:
    rows = named(make_rows, 2)
    learner = Learner(tiny(), distilling(), PLAIN)
    learner.update(rows, NOTHING)
    (bonus_T,) = learner.token_bonus.values()
    assert list(learner.token_bonus) == [2]
    assert bonus_T.shape == rows[2].tokens.shape
    assert bonus_T[rows[2].mask].any()
    assert not bonus_T[~rows[2].mask].any()
    record = row_record(rows[2], 0.0, bonus_T)
    assert [len(turn) for turn in record["token_bonus"]] == [b - a for a, b in rows[2].turns]
    learner.update([], [])
    assert learner.token_bonus == {}


def test_turns_that_are_not_learned_have_no_bonus(tiny, make_rows) -> None:
    row = named(make_rows, 2)[2]
    first = int(row.mask.argmax())
    row = dataclasses.replace(row, untrained=((first, first + 2),))
    learner = Learner(tiny(), distilling(), PLAIN)
    learner.update([row], [0.0])
    (bonus_T,) = learner.token_bonus.values()
    assert bonus_T.nonzero()[0].tolist() == [i for i in row.mask.nonzero()[0] if i >= first + 2]


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
        advantage_N = torch.full_like(own, advantage)
        if row.reread_after is not None:
            start = int(row.mask.argmax())
            behind = np.concatenate([HINTED, row.tokens[start:]])
            read = logprobs(model, behind)[len(HINTED) - 1 :][torch.from_numpy(row.mask[start:])]
            advantage_N = advantage_N + 0.7 * (read - own).clamp(-0.3, 0.3).detach()
        parts.append(advantage_N * own)
    # CISPO averages over tokens, the others over rows.
    averaged = [torch.cat(parts)] if name == "cispo" else parts
    loss = -sum(part.mean() for part in averaged) / len(averaged)
    loss.backward()
    expected = {n: p.grad.clone() for n, p in model.parameters().items()}

    learner = Learner(tiny(), distilling(name, beta=0.7, bound=0.3), PLAIN)
    signal, _, _ = learner._rereading(rows, None, 0.0)
    learner._gradient(rows, advantages, None, None, range(8), signal)
    for n, p in learner.model.parameters().items():
        torch.testing.assert_close(p.grad, expected[n], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", ["grpo", "gspo"])
@pytest.mark.parametrize("count", [5, 10_000])
def test_the_mean_over_next_tokens_has_the_gradient_of_its_formula(
    name: str, count: int, tiny, make_rows
) -> None:
    """- beta mean_t sum_v pi(v) clip(log pi_reader(v | h) - log pi(v | x)) over the reader's
    likeliest tokens and the rest (the whole vocabulary where that is smaller), by autograd through
    a plain forward pass. The reader has other weights: it differs by more than h. Both are of the
    sampler's temperature; beta has faded by half, a row counts by its loss weight, and the
    sampler's own probabilities by nothing."""
    rows = named(make_rows, 1, 4)
    rows[4] = dataclasses.replace(rows[4], loss_weight=0.5)
    learner = Learner(
        tiny(),
        distilling(name, beta=1.4, fade=1.0, bound=0.3, likeliest=count),
        LearnerSettings(importance_correction="token-truncate"),
        temperature=0.8,
        total_steps=2,
    )
    for past in learner._average.values():
        past.mul_(1.1)
    reader, model = tiny(), tiny()
    for name_, p in reader.parameters().items():
        p.data = learner._average[name_].clone()

    def behind(of, tokens: np.ndarray, mask: np.ndarray) -> torch.Tensor:
        logits = of.module(torch.from_numpy(tokens)[None]).logits[0, :-1] / 0.8
        return logits.log_softmax(-1)[torch.from_numpy(mask[1:])]

    loss = torch.zeros(())
    for row in (rows[1], rows[4]):
        other = row.as_reread()
        own_NV = behind(model, row.tokens, row.mask)
        read_NV = behind(reader, other.tokens, other.mask).detach()
        top = read_NV.topk(min(count, read_NV.shape[1]))
        pieces = [(own_NV.gather(1, top.indices), top.values)]
        if count < read_NV.shape[1]:
            rest = [
                (1 - logp.exp().gather(1, top.indices).sum(1, keepdim=True)).log()
                for logp in (own_NV, read_NV)
            ]
            pieces.append((rest[0], rest[1]))
        gain = sum(
            (own.exp() * (read - own).detach().clamp(-0.3, 0.3)).sum(1) for own, read in pieces
        )
        loss = loss - 0.7 * row.loss_weight * gain.mean() / 8
    loss.backward()
    signal, row_bonus, _ = learner._rereading(rows, None, 0.5)
    assert sorted(row_bonus) == [1, 4]
    learner._gradient(rows, NOTHING, None, None, range(8), signal)
    gradients_of_learner = {n: p.grad for n, p in learner.model.parameters().items()}
    for n, p in model.parameters().items():
        torch.testing.assert_close(gradients_of_learner[n], p.grad, rtol=1e-3, atol=1e-7)


def test_the_mean_over_next_tokens_by_hand() -> None:
    """pi .5 .3 .2 and a reader's .2 .6 .2: .5 log .4, where log .4 is at least -.75, + .3 log 2 +
    0; of its likeliest token and the rest, .3 log 2 + .7 log(.4 / .7)."""
    logp = torch.tensor([[0.5, 0.3, 0.2]]).log()
    read = torch.tensor([[0.6, 0.2, 0.2]]).log()
    whole = ReaderLogprobs(torch.tensor([[1, 0, 2]]), read, torch.ones(1), bound=0.75)
    gain = expected_difference(logp, whole).item()
    assert gain == pytest.approx(-0.5 * 0.75 + 0.3 * math.log(2), abs=1e-6)
    likeliest = ReaderLogprobs(torch.tensor([[1]]), read[:, :1], torch.ones(1), bound=0.75)
    gain = expected_difference(logp, likeliest).item()
    assert gain == pytest.approx(0.3 * math.log(2) + 0.7 * math.log(0.4 / 0.7), abs=1e-5)
    impossible = torch.tensor([[0.0, 1.0, 0.0]]).log()
    assert expected_difference(impossible, whole).isfinite().all()


@pytest.mark.parametrize("likeliest", [0, 8])
def test_a_row_is_read_once_behind_each_context(
    tiny, make_rows, monkeypatch, likeliest: int
) -> None:
    model, rows, read = tiny(), named(make_rows, 0, 1, 2), []
    states = model.scored_states

    def counted(ids_BT, mask_BT):
        read.append(len(ids_BT))
        return states(ids_BT, mask_BT)

    monkeypatch.setattr(model, "scored_states", counted)
    learner = Learner(model, distilling(likeliest=likeliest), PLAIN)
    learner._rereading(rows, None, 0.0)
    # After the hint, and after its own prompt.
    assert sum(read) == 3 + 3
    old = learner._snapshot(rows)
    read.clear()
    learner._rereading(rows, old, 0.0)
    assert sum(read) == 3


def test_the_bonus_of_sampled_tokens_is_the_same_with_and_without_the_likeliest(
    tiny, make_rows
) -> None:
    rows = named(make_rows, 0, 1, 2)
    bonuses = [
        Learner(tiny(), distilling(likeliest=k), PLAIN)._rereading(rows, None, 0.0)[1]
        for k in (0, 8)
    ]
    assert bonuses[0].keys() == bonuses[1].keys() == {0, 1, 2}
    for i, value in bonuses[0].items():
        torch.testing.assert_close(value, bonuses[1][i])
        assert float(value.abs().max()) > 0.1


def test_likeliest_tokens_do_not_depend_on_how_rows_are_split(tiny, make_rows) -> None:
    """Micro-batches of one row, and logits in chunks: the same weights after an update."""
    rows, models = named(make_rows, 1, 4, 6), [tiny(), tiny()]
    advantages = np.linspace(-1, 1, 8)
    for model, budget in zip(models, (1, 4096)):
        settings = dataclasses.replace(PLAIN, micro_batch_tokens=budget)
        Learner(model, distilling(likeliest=8), settings).update(rows, advantages)
    for name, value in models[0].weights().items():
        torch.testing.assert_close(value, models[1].weights()[name], rtol=1e-4, atol=1e-6)


def test_what_is_off_or_names_nothing_changes_nothing(tiny, make_rows) -> None:
    advantages = np.linspace(-1, 1, 8)
    models = [tiny() for _ in range(3)]
    plain = Learner(models[0], get("gspo"), PLAIN).update(named(make_rows, 1), advantages)
    Learner(models[1], get("gspo"), PLAIN).update(make_rows(8), advantages)
    on = Learner(models[2], distilling(), PLAIN).update(make_rows(8), advantages)
    assert "distillation/rows" not in plain
    assert on["distillation/rows"] == 0
    for model in models[1:]:
        for name, value in model.weights().items():
            torch.testing.assert_close(value, models[0].weights()[name], rtol=0, atol=0)


def test_rows_without_advantage_learn_and_are_counted(tiny, make_rows) -> None:
    model = tiny()
    before = model.weights()
    metrics = Learner(model, distilling(bound=0.01), PLAIN).update(named(make_rows, 2, 5), NOTHING)
    assert metrics["distillation/rows"] == 2 / 8
    assert 0 < metrics["distillation/size"] <= 0.01 + 1e-6
    assert 0.5 < metrics["distillation/bounded"] <= 1
    assert any(not torch.equal(value, before[name]) for name, value in model.weights().items())


def test_a_context_for_which_there_is_no_room_is_left_out(tiny, make_rows) -> None:
    model = tiny()
    rows = named(make_rows, 2)
    rows[2] = dataclasses.replace(rows[2], reread_after=np.arange(20))
    model.context = len(rows[2].as_reread().tokens) - 1
    assert Learner(model, distilling(), PLAIN).update(rows, NOTHING)["distillation/rows"] == 0
    model.context += 1
    assert Learner(model, distilling(), PLAIN).update(rows, NOTHING)["distillation/rows"] == 1 / 8


def test_a_row_that_once_stands_behind_nothing_is_left_out(tiny, make_rows) -> None:
    """Nothing predicts the first token of a context: that of a row without a prompt, or the first
    sampled one after nothing."""
    rows, nothing = named(make_rows, 2), np.zeros(0, np.int64)
    unprompted = {"mask": np.ones_like(rows[2].mask)}
    for changes in ({"reread_after": nothing}, unprompted):
        rows[2] = dataclasses.replace(named(make_rows, 2)[2], **changes)
        metrics = Learner(tiny(), distilling(), PLAIN).update(rows, NOTHING)
        assert metrics["distillation/rows"] == 0


def test_the_reader_has_the_average_or_the_first_weights(tiny, make_rows) -> None:
    """All are one before the first step. After it the average has moved a twentieth of the way,
    the start not at all."""
    rows, updates = named(make_rows, 0, 3), {}
    advantages = np.linspace(-1, 1, 8)
    for reader in ("average", "start"):
        model = tiny()
        learner = Learner(model, distilling(reader=reader), PLAIN)
        start = model.weights()
        _, first, _ = learner._rereading(rows, None, 0.0)
        learner.update(rows, advantages)
        _, second, _ = learner._rereading(rows, None, 0.0)
        updates[reader] = (first, second)
        if reader == "average":
            for name, value in model.weights().items():
                expected = 0.95 * start[name] + 0.05 * value
                torch.testing.assert_close(learner._average[name], expected)
    for place, tensor in updates["average"][0].items():
        torch.testing.assert_close(tensor, updates["start"][0][place])
    assert not torch.allclose(updates["average"][1][0], updates["start"][1][0], atol=1e-5)
