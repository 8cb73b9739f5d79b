import contextlib
import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from coterie.algorithms import (
    ALGORITHMS,
    Algorithm,
    ClippedRatio,
    Learner,
    LearnerSettings,
    Surrogate,
    Terms,
    get,
    surrogate,
    token_ratio,
)
from coterie.algorithms.algorithm import Distillation
from coterie.cli.progress import LEARNED
from coterie.datatypes import UserError

PLAIN = LearnerSettings(importance_correction="none")
ADVANTAGES = np.array([1.0, -0.5, 0.25, -1.5, 0.75, 0.0, -0.25, 1.25])


def gradients(model, rows, algorithm, settings, advantages=ADVANTAGES):
    learner = Learner(model, algorithm, settings)
    learner._gradient(rows, advantages, None, None, range(len(rows)))
    return {name: p.grad.clone() for name, p in model.parameters().items() if p.grad is not None}


def assert_equal(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


@pytest.mark.parametrize("name", ALGORITHMS)
def test_micro_batches_do_not_change_the_gradient(name, tiny, make_rows, near):
    rows = make_rows(8, loss_weight=0.8)
    algorithm = dataclasses.replace(get(name), entropy_coefficient=0.1)
    alone = dataclasses.replace(PLAIN, micro_batch_tokens=1)
    separate, together = (gradients(tiny(), rows, algorithm, s) for s in (alone, PLAIN))
    assert max(float(g.abs().max()) for g in together.values()) > 1e-3
    near(separate, together, passes=2)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_idle_rows_do_not_change_the_gradient(name, tiny, make_rows, near):
    rows, advantages = make_rows(8), np.where(ADVANTAGES > 0, ADVANTAGES, 0.0)
    with_idle = dataclasses.replace(PLAIN, skip_idle_rows=False)
    left_out, kept = (
        gradients(tiny(), rows, get(name), settings, advantages) for settings in (PLAIN, with_idle)
    )
    near(left_out, kept, passes=2)


@dataclasses.dataclass(frozen=True)
class Certain(Surrogate):
    """Makes every sampled token likelier, whatever it earned."""


@surrogate.register
def certain(choice: Certain, logp_BT, old_BT, advantage, mask_BT):
    return Terms(-logp_BT, token_ratio(logp_BT, old_BT).detach(), torch.zeros_like(mask_BT))


def test_a_loss_of_ones_own_sees_rows_without_an_advantage(tiny, make_rows, near):
    own, nothing = Algorithm(surrogate=Certain()), np.zeros(8)
    with_idle = dataclasses.replace(PLAIN, skip_idle_rows=False)
    usual, kept = (
        gradients(tiny(), make_rows(8), own, settings, nothing) for settings in (PLAIN, with_idle)
    )
    assert max(float(g.abs().max()) for g in usual.values()) > 1e-3
    near(usual, kept, passes=2)


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("skip", [True, False])
def test_learned_rows_are_counted(tiny, make_rows, epochs, skip):
    settings = dataclasses.replace(
        PLAIN, epochs=epochs, minibatches=2, skip_idle_rows=skip, micro_batch_tokens=64
    )
    before = LEARNED.done
    Learner(tiny(), get("grpo"), settings).update(make_rows(8), ADVANTAGES)
    assert LEARNED.done - before == 8


def test_loss_weight_multiplies_the_loss_and_no_denominator(tiny, make_rows, near):
    for name in ("grpo", "dapo", "dr-grpo"):
        algorithm = dataclasses.replace(get(name), entropy_coefficient=0.1)
        full = gradients(tiny(), make_rows(8), algorithm, PLAIN)
        half = gradients(tiny(), make_rows(8, loss_weight=0.5), algorithm, PLAIN)
        near({n: g / 2 for n, g in full.items()}, half, passes=2)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("micro_batch", [1, 8192])
def test_an_agent_weighs_the_same_however_many_rows_it_has(
    name, micro_batch, tiny, make_rows, near
):
    """Each row once, or one of them three times as the rows of one agent: its tokens count three
    times and its mean is what it was, so that a mean over agents does not move."""
    rows = [dataclasses.replace(r, member=f"m{i}") for i, r in enumerate(make_rows(8))]
    settings = dataclasses.replace(PLAIN, micro_batch_tokens=micro_batch)
    several, advantages = [*rows, rows[3], rows[3]], np.append(ADVANTAGES, [ADVANTAGES[3]] * 2)
    single = gradients(tiny(), rows, get(name), settings)
    three = gradients(tiny(), several, get(name), settings, advantages)
    if get(name).reduction == "sequence-mean":
        near(single, three, passes=2)
        return
    # Elsewhere it is the sum over tokens, over as many agents or more tokens.
    alone = [dataclasses.replace(r, member="") for r in several]
    apart = gradients(tiny(), alone, get(name), settings, advantages)
    factor = 10 / 8 if get(name).reduction == "constant-length" else 1.0
    near({n: g * factor for n, g in apart.items()}, three, passes=2)


def test_the_rows_of_an_agent_are_learned_in_one_optimizer_step(tiny, make_rows):
    members = ["a", "b", "a", "c", "b", "d", "c", "d"]
    rows = [dataclasses.replace(r, member=m) for r, m in zip(make_rows(8), members)]
    settings = dataclasses.replace(PLAIN, minibatches=2)
    learner = Learner(tiny(), get("grpo"), settings)
    assert list(learner._parts(rows)) == [[0, 1, 2, 4], [3, 5, 6, 7]]
    alone = [dataclasses.replace(r, member="") for r in rows]
    assert list(learner._parts(alone)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_rows_that_are_not_trainable_never_enter(tiny, make_rows):
    rows, (clean, dirty) = make_rows(8), (tiny(), tiny())
    broken = [dataclasses.replace(r, status="timeout") for r in make_rows(3, seed=9)]
    unsampled = dataclasses.replace(rows[0], mask=np.zeros_like(rows[0].mask))
    first_only = np.zeros_like(rows[0].mask)
    first_only[0] = True  # nothing predicts a first token
    mixed = [*broken, *rows, unsampled, dataclasses.replace(rows[0], mask=first_only)]
    expected = Learner(clean, get("dapo"), PLAIN).update(rows, ADVANTAGES)
    two = Learner(dirty, get("dapo"), PLAIN).update(mixed, [5, 5, 5, *ADVANTAGES, 7, 7])
    assert expected == two
    assert_equal(clean.weights(), dirty.weights())


def test_a_schedule_or_a_share_needs_the_number_of_steps(tiny):
    fading = dataclasses.replace(get("grpo"), distillation=Distillation(beta=1.0, fade=1.0))
    for algorithm, settings in (
        (get("grpo"), LearnerSettings(schedule="cosine")),
        (get("grpo"), LearnerSettings(warmup=0.1)),
        (fading, PLAIN),
    ):
        with pytest.raises(UserError, match=r"learner\.schedule, a share .*fade need the"):
            Learner(tiny(), algorithm, settings)
        Learner(tiny(), algorithm, settings, total_steps=10)
    Learner(tiny(), get("grpo"), LearnerSettings(warmup=2))


def test_no_rows_no_step(tiny, make_rows):
    model = tiny()
    before = model.weights()
    rows = [dataclasses.replace(r, status="timeout") for r in make_rows(2)]
    metrics = Learner(model, get("grpo"), PLAIN).update(rows, [1.0, -1.0])
    assert (metrics["rows"], metrics["tokens"], model.version) == (0, 0, 0)
    assert_equal(before, model.weights())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_frozen_weights_stay(name, tiny, make_rows):
    model = tiny(frozen="layers.0")
    before = model.weights()
    metrics = Learner(model, get(name), LearnerSettings(epochs=2)).update(make_rows(8), ADVANTAGES)
    after = model.weights()
    for key in before:
        assert torch.equal(before[key], after[key]) == ("layers.0" in key), key
    assert metrics["grad_norm"] > 0
    assert (model.version, metrics["skipped_steps"]) == (1, 0)


def test_good_tokens_become_likelier_and_rows_grow_stale(tiny, make_rows):
    rows, model = make_rows(8), tiny()
    learner = Learner(model, get("grpo"), dataclasses.replace(PLAIN, lr=1e-3))
    start = learner._snapshot(rows)
    assert [learner.update(rows, ADVANTAGES)["staleness"] for _ in range(5)] == [0, 1, 2, 3, 4]
    for row, advantage, old, new in zip(rows, ADVANTAGES, start, learner._snapshot(rows)):
        change = float((new - old)[torch.from_numpy(row.mask[1:])].mean())
        assert change * advantage > 0 or advantage == 0


def test_several_passes_move_ratios_and_are_clipped(tiny, make_rows):
    rows = make_rows(8)
    once = Learner(tiny(), get("grpo"), PLAIN).update(rows, ADVANTAGES)
    assert (once["ratio/mean"], once["ratio/max"], once["clip_fraction"]) == (1, 1, 0)
    settings = dataclasses.replace(PLAIN, lr=3e-3, epochs=3, minibatches=2)
    model = tiny()
    several = Learner(model, get("grpo"), settings).update(rows, ADVANTAGES)
    assert several["ratio/max"] > 1.3
    assert several["clip_fraction"] > 0.01
    assert model.version == 1


def test_a_pass_over_the_rows_is_one_step_per_minibatch(tiny, make_rows):
    """Two minibatches: two steps, each with its own denominators, "old" from before both."""
    rows, (whole, halves) = make_rows(8), (tiny(), tiny())
    settings = dataclasses.replace(PLAIN, lr=1e-3)
    algorithm = Algorithm(surrogate=ClippedRatio(low=0.9, high=9.0))
    Learner(whole, algorithm, dataclasses.replace(settings, minibatches=2)).update(rows, ADVANTAGES)
    by_hand = Learner(halves, algorithm, settings)
    old = by_hand._snapshot(rows)
    for part in (range(4), range(4, 8)):
        loss, _, _ = by_hand._gradient(rows, ADVANTAGES, old, None, part)
        by_hand._step(loss, 0)
    assert_equal(whole.weights(), halves.weights())


def test_full_weights_keep_a_frozen_reference(tiny, make_rows):
    rows, model = make_rows(8), tiny()
    algorithm = dataclasses.replace(get("grpo"), kl_coefficient=0.1)
    learner = Learner(model, algorithm, dataclasses.replace(PLAIN, lr=3e-3))
    start = learner._snapshot(rows)
    assert learner.update(rows, ADVANTAGES)["kl"] == pytest.approx(0, abs=1e-6)
    for old, ref in zip(start, learner._reference(rows)):
        torch.testing.assert_close(old, ref, rtol=0, atol=0)
    # k3 by hand, from the weights of before the second update
    logps = learner._snapshot(rows)
    masks = [torch.from_numpy(r.mask[1:]) for r in rows]
    d = torch.cat([(new - old)[m] for new, old, m in zip(logps, start, masks)])
    assert learner.update(rows, ADVANTAGES)["kl"] == pytest.approx(
        float(((-d).exp() - 1 + d).mean()), rel=1e-4
    )
    assert float(d.abs().max()) > 0.01


def test_the_models_own_reference_is_used(tiny, make_rows):
    """An adapter that is switched off (here: another model) needs no copy."""
    rows, model, other = make_rows(8), tiny(), tiny(3)

    @contextlib.contextmanager
    def reference():
        kept, model.module = model.module, other.module
        yield
        model.module = kept

    model.reference = reference
    algorithm = dataclasses.replace(get("grpo"), kl_coefficient=0.1)
    learner = Learner(model, algorithm, PLAIN)
    assert learner.state_dict()[0] == {}
    assert learner.update(rows, ADVANTAGES)["kl"] > 0.1


def test_mismatch_is_measured_and_bounded(tiny, make_rows):
    rows, model = make_rows(8), tiny()
    logps = Learner(model, get("grpo"), PLAIN)._snapshot(rows)

    def sampled(shift: float):
        out = []
        for row, logp in zip(rows, logps):
            sampler = np.zeros(len(row.tokens), np.float32)
            sampler[1:] = np.where(row.mask[1:], logp.numpy() - shift, 0)
            out.append(dataclasses.replace(row, logprobs=sampler))
        return out

    exact = Learner(tiny(), get("grpo"), LearnerSettings()).update(sampled(0.0), ADVANTAGES)
    assert exact["mismatch/max"] < 1e-5
    assert exact["mismatch/ess"] == pytest.approx(1)
    # The sampler's probabilities are too small by a factor 4: weights 4, cut down to 2.
    off = Learner(tiny(), get("grpo"), LearnerSettings()).update(sampled(math.log(4)), ADVANTAGES)
    assert off["mismatch/mean"] == pytest.approx(math.log(4), rel=1e-5)
    assert off["mismatch/k3"] == pytest.approx(4 - 1 - math.log(4), rel=1e-5)
    assert off["mismatch/capped"] == 1
    assert off["loss"] == pytest.approx(2 * exact["loss"], rel=1e-4)
    masked = dataclasses.replace(LearnerSettings(), importance_correction="sequence-mask")
    assert Learner(tiny(), get("grpo"), masked).update(sampled(1.0), ADVANTAGES)["loss"] == 0


def test_the_gradient_is_clipped_to_its_norm(tiny, make_rows, monkeypatch):
    seen = []
    monkeypatch.setattr(
        torch.optim.AdamW,
        "step",
        lambda self: seen.append(
            torch.nn.utils.get_total_norm([p.grad for p in self.param_groups[0]["params"]])
        ),
    )
    settings = dataclasses.replace(PLAIN, max_grad_norm=0.01)
    metrics = Learner(tiny(), get("grpo"), settings).update(make_rows(8), ADVANTAGES)
    assert metrics["grad_norm"] > 0.1
    assert float(seen[0]) == pytest.approx(0.01, rel=1e-3)


def test_schedule(tiny, make_rows):
    settings = dataclasses.replace(PLAIN, lr=1.0e-3, schedule="linear", warmup=0.5, epochs=2)
    learner = Learner(tiny(), get("grpo"), settings, total_steps=4)
    rates = [learner.update(make_rows(8), ADVANTAGES)["lr"] for _ in range(4)]
    # Rates of each update's last optimizer step: warm-up over 2 updates in 4 steps, then
    # (4 - 2.5) / 2 and (4 - 3.5) / 2.
    assert rates == pytest.approx([0.5e-3, 1e-3, 0.75e-3, 0.25e-3])


def test_a_step_without_rows_counts_in_the_schedule(tiny, make_rows):
    settings = dataclasses.replace(PLAIN, lr=1.0e-3, schedule="linear")
    learner = Learner(tiny(), get("grpo"), settings, total_steps=4)
    learner.update(make_rows(8), ADVANTAGES)
    learner.update([], [])
    # (4 - 2) / 4 of the rate in the third step
    assert learner.update(make_rows(8), ADVANTAGES)["lr"] == pytest.approx(0.5e-3)
    assert learner.model.version == 2


@pytest.mark.parametrize("kl", [0.0, 0.1])
def test_resume_equals_uninterrupted_bit_for_bit(kl, tiny, make_rows):
    algorithm = dataclasses.replace(get("gspo"), kl_coefficient=kl)
    settings = dataclasses.replace(PLAIN, epochs=2, minibatches=2, warmup=3, weight_decay=0.1)
    steps = [make_rows(8, seed=seed) for seed in range(6)]
    whole = tiny()
    learner = Learner(whole, algorithm, settings)
    for rows in steps:
        last = learner.update(rows, ADVANTAGES)

    first = tiny()
    learner = Learner(first, algorithm, settings)
    for rows in steps[:3]:
        learner.update(rows, ADVANTAGES)
    tensors, plain = learner.state_dict()
    own = {m.data_ptr() for state in learner._optimizer.state.values() for m in state.values()}
    moments = {tensor.data_ptr() for name, tensor in tensors.items() if name.startswith("exp_avg")}
    assert moments == own & moments != set()  # a device has them once
    file, text = save(tensors), json.dumps(plain)  # the only formats that a checkpoint has
    stored = first.weights()
    learner.update(steps[5], ADVANTAGES)

    second = tiny(7)  # other weights at first
    resumed = Learner(second, algorithm, settings)
    second.module.load_state_dict({**second.module.state_dict(), **stored})
    resumed.load_state_dict(load(file), json.loads(text))
    for rows in steps[3:]:
        again = resumed.update(rows, ADVANTAGES)
    assert again == last
    assert second.version == 6
    assert_equal(whole.weights(), second.weights())


def test_a_frozen_model_has_no_learner(tiny):
    with pytest.raises(UserError, match="no trainable parameters"):
        Learner(tiny(frozen="model"), get("grpo"), PLAIN)


def test_a_row_is_learned_after_the_context_that_it_names(tiny, make_rows):
    before = np.array([7, 3, 11, 5])
    named = make_rows(8, learned_after=before)
    spelled = []
    for row in make_rows(8):
        first = row.mask.tolist().index(True)
        kept = row.mask[first:]
        spelled.append(
            dataclasses.replace(
                row,
                tokens=np.array([*before, *row.tokens[first:]]),
                mask=np.array([*[False] * 4, *kept]),
                logprobs=np.full(4 + len(kept), -3.7, np.float32),
            )
        )
    trained = {}
    for kind, rows in (("named", named), ("spelled", spelled), ("as seen", make_rows(8))):
        model = tiny()
        # By hand nothing is corrected for; where nothing is known, there is nothing to correct.
        settings = LearnerSettings() if kind == "named" else PLAIN
        metrics = Learner(model, get("gspo"), settings).update(rows, ADVANTAGES)
        trained[kind] = model.weights()
        assert (metrics["mismatch/max"] == 0) == (kind == "named")
    assert_equal(trained["named"], trained["spelled"])
    name = "model.layers.0.mlp.down_proj.weight"
    assert not torch.equal(trained["named"][name], trained["as seen"][name])


def test_spans_and_logprobs_of_a_row_as_it_is_learned(make_rows):
    row = dataclasses.replace(
        make_rows(1)[0],
        tokens=np.array([1, 2, 3, 4, 9, 5]),
        mask=np.array([False, False, True, True, False, True]),
        turns=((2, 4), (5, 6)),
        learned_after=np.array([8]),
    )
    learned = row.as_learned()
    assert learned.tokens.tolist() == [8, 3, 4, 9, 5]
    assert learned.mask.tolist() == [False, True, True, False, True]
    assert learned.turns == ((1, 3), (4, 5))
    np.testing.assert_array_equal(learned.logprobs, [0, np.nan, np.nan, 0, np.nan])
    assert learned.as_learned() is learned
    nothing = dataclasses.replace(row, mask=np.zeros(6, np.bool_))
    assert nothing.as_learned() is nothing
