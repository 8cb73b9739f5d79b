"""The same loss and the same gradients as TRL's own code, on the same ids.

TRL's ``GRPOTrainer._compute_loss`` runs as it is, on a trainer that has only what that method
reads. "Old" log-probabilities come from other weights, as in a second pass over a batch.
"""

import dataclasses
import itertools
import warnings
from collections import defaultdict
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from coterie.algorithms import ALGORITHMS, Algorithm, LearnerSettings, get
from coterie.algorithms.credit import advantages, advantages_of_terms
from coterie.algorithms.learner import Learner

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what other libraries say while TRL imports them
    from trl.trainer.grpo_trainer import GRPOTrainer
    from trl.trainer.utils import add_fused_lm_head, nanstd

ROWS, GROUP_SIZE, LENGTH, REF_SEED = 24, 6, 20, 3

# Ours -> TRL's arguments.
TRL = {
    "grpo": {"loss_type": "grpo"},
    "dr-grpo": {"loss_type": "dr_grpo"},
    "dapo": {"loss_type": "dapo", "epsilon_high": 0.28},
    "gspo": {
        "loss_type": "grpo",
        "importance_sampling_level": "sequence",
        "epsilon_low": 3e-4,
        "epsilon_high": 4e-4,
    },
    "sapo": {"loss_type": "sapo"},
    "cispo": {"loss_type": "cispo", "epsilon_high": 5.0},
}


def trl_trainer(**arguments) -> GRPOTrainer:
    """A trainer with what ``_compute_loss`` reads, and nothing else."""
    names = {"loss_type", "importance_sampling_level", "epsilon_low", "epsilon_high", "beta"}
    trainer = GRPOTrainer.__new__(GRPOTrainer)
    trainer.accelerator = SimpleNamespace(
        autocast=nullcontext,
        gather=lambda x: x,
        reduce=lambda x, reduction: x,
        num_processes=1,
        is_main_process=True,
        sync_gradients=True,
    )
    trainer.args = SimpleNamespace(
        delta=arguments.get("delta"),
        use_bias_correction_kl=arguments.get("use_bias_correction_kl", False),
        sapo_temperature_pos=1.0,
        sapo_temperature_neg=1.05,
        steps_per_generation=1,
        report_to=[],
    )
    trainer.model = SimpleNamespace(training=True)
    trainer.state = SimpleNamespace(global_step=0)
    defaults = {"importance_sampling_level": "token", "epsilon_low": 0.2, "epsilon_high": 0.2}
    given = {name: value for name, value in arguments.items() if name in names}
    entropy = arguments.get("entropy_coef", 0.0)
    vars(trainer).update(
        defaults | {"beta": 0.0} | given,
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        use_vllm=False,
        use_adaptive_entropy=False,
        entropy_coef=entropy,
        _entropy_bonus_enabled=entropy != 0,
        current_gradient_accumulation_steps=1,
        max_completion_length=LENGTH,
    )
    trainer._metrics = {"train": defaultdict(list)}
    return trainer


def trl_inputs(rows, advantage_B) -> dict:
    """Prompts padded on the left, completions on the right, holes as TRL's tool mask."""
    first = [int(np.argmax(row.mask)) for row in rows]
    prompt, completion = max(first), max(len(r.tokens) - f for r, f in zip(rows, first))
    ids = torch.zeros(len(rows), prompt + completion, dtype=torch.long)
    attention, tool = torch.zeros_like(ids), torch.zeros_like(ids)
    for i, (row, f) in enumerate(zip(rows, first)):
        span = slice(prompt - f, prompt - f + len(row.tokens))
        ids[i, span] = torch.from_numpy(row.tokens)
        attention[i, span] = 1
        tool[i, span] = torch.from_numpy(row.mask).long()
    return {
        "prompt_ids": ids[:, :prompt],
        "prompt_mask": attention[:, :prompt],
        "completion_ids": ids[:, prompt:],
        "completion_mask": attention[:, prompt:],
        "tool_mask": tool[:, prompt:],
        "advantages": torch.from_numpy(advantage_B).float(),
        "num_items_in_batch": tool.sum(),
    }


def trl_logps(trainer, module, inputs):
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    width = inputs["completion_ids"].shape[1]
    with torch.no_grad():
        return trainer._get_per_token_logps_and_entropies(module, ids, attention, width)[0]


@pytest.fixture
def setting(make_rows, tiny):
    """Rows, and a model that has moved away from the weights that sampled them."""
    rows = make_rows(ROWS, seed=1)
    before, now, ref = tiny(0), tiny(0), tiny(REF_SEED)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in now.module.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    rewards = np.random.default_rng(2).normal(size=ROWS)
    rewards[:GROUP_SIZE] = 0.5  # a group without variance: advantages of 0
    rewards[GROUP_SIZE : GROUP_SIZE + 4] = 0.7  # identical advantages
    return SimpleNamespace(rows=rows, before=before, now=now, ref=ref, rewards=rewards)


def ours(setting, algorithm: Algorithm, budget: int = 60):
    """Loss, gradients and sums of a whole step, in micro-batches."""
    advantage_B = advantages(setting.rewards, np.arange(ROWS) // GROUP_SIZE, algorithm)
    plain = LearnerSettings(
        importance_correction="none", micro_batch_tokens=budget, skip_idle_rows=False
    )
    learner = Learner(setting.now, algorithm, plain)
    old = Learner(setting.before, algorithm, plain)._snapshot(setting.rows)
    ref = Learner(setting.ref, algorithm, plain)._snapshot(setting.rows)
    loss, sums, _ = learner._gradient(
        setting.rows,
        advantage_B,
        old,
        ref if algorithm.kl_coefficient else None,
        range(ROWS),
    )
    grads = {name: p.grad.clone() for name, p in setting.now.parameters().items()}
    return loss, grads, sums, advantage_B


def theirs(setting, advantage_B, **arguments):
    trainer, inputs = trl_trainer(**arguments), trl_inputs(setting.rows, advantage_B)
    for handle in (setting.before, setting.now, setting.ref):
        add_fused_lm_head(handle.module, outputs=("log_probs", "entropy"))
    inputs["old_per_token_logps"] = trl_logps(trainer, setting.before.module, inputs)
    if trainer.beta:
        inputs["ref_per_token_logps"] = trl_logps(trainer, setting.ref.module, inputs)
    setting.now.module.zero_grad()
    loss = trainer._compute_loss(setting.now.module, inputs)
    loss.backward()
    grads = {name: p.grad.clone() for name, p in setting.now.parameters().items()}
    return float(loss.detach()), grads, trainer._metrics["train"]


def assert_same(mine, other):
    assert mine[0] == pytest.approx(other[0], rel=1e-5)
    for name, grad in mine[1].items():
        torch.testing.assert_close(grad, other[1][name], rtol=0, atol=1e-6, msg=name)
    assert sum(float(g.norm()) for g in mine[1].values()) > 0.01


@pytest.mark.parametrize("name", TRL)
def test_published_algorithms(setting, name):
    algorithm = get(name)
    if name == "dr-grpo":
        algorithm = dataclasses.replace(algorithm, length=LENGTH)
    *mine, sums, advantage_B = ours(setting, algorithm)
    *other, metrics = theirs(setting, advantage_B, **TRL[name])
    assert_same(mine, other)
    if "clip_ratio/low_mean" in metrics:  # ratios beyond each bound, and as many as TRL counts
        low, high = metrics["clip_ratio/low_mean"][0], metrics["clip_ratio/high_mean"][0]
        assert low > 0.04
        assert high > 0.04
        if name != "gspo":  # TRL counts sequences there
            assert float(sums[2] / sums[0]) == pytest.approx(low + high, rel=1e-5)


@pytest.mark.parametrize("name", ["dapo", "gspo"])
def test_dual_clip(setting, name):
    dual = {"dapo": 1.3, "gspo": 1.001}[name]
    choice = dataclasses.replace(get(name).surrogate, dual=dual)
    algorithm = dataclasses.replace(get(name), surrogate=choice)
    *mine, _, advantage_B = ours(setting, algorithm)
    *other, _ = theirs(setting, advantage_B, **TRL[name], delta=dual)
    assert_same(mine, other)
    without, *_ = ours(setting, get(name))
    assert without > mine[0] + 1e-3


@pytest.mark.parametrize("importance", [False, True])
def test_divergence_from_a_reference(setting, importance):
    algorithm = dataclasses.replace(get("grpo"), kl_coefficient=0.3, kl_importance=importance)
    *mine, sums, advantage_B = ours(setting, algorithm)
    *other, metrics = theirs(
        setting, advantage_B, loss_type="grpo", beta=0.3, use_bias_correction_kl=importance
    )
    assert_same(mine, other)
    assert float(sums[4] / sums[0]) == pytest.approx(metrics["kl"][0], rel=1e-5)


def test_entropy_bonus(setting):
    algorithm = dataclasses.replace(get("dapo"), entropy_coefficient=0.2)
    *mine, sums, advantage_B = ours(setting, algorithm)
    *other, metrics = theirs(setting, advantage_B, **TRL["dapo"], entropy_coef=0.2)
    assert_same(mine, other)
    assert float(sums[3] / sums[0]) == pytest.approx(metrics["entropy"][0], rel=1e-5)


def test_advantages(setting):
    """TRL's formulas for scaled, unscaled and leave-one-out advantages."""
    group = np.arange(ROWS) // GROUP_SIZE
    reward = torch.from_numpy(setting.rewards).view(-1, GROUP_SIZE)
    difference = reward - reward.nanmean(1, keepdim=True)
    others = (reward.nansum(1, keepdim=True) - reward) / (GROUP_SIZE - 1)
    scaled = difference / (nanstd(reward, dim=1)[:, None] + 1e-4)
    for name, expected in {"grpo": scaled, "dr-grpo": difference, "rloo": reward - others}.items():
        got = advantages(setting.rewards, group, get(name))
        np.testing.assert_allclose(got, expected.flatten().numpy(), rtol=1e-7, atol=1e-12)


def test_terms_normalised_then_summed(setting):
    """TRL's formula for ``normalize_then_sum`` with two rewards."""
    term_NK = np.random.default_rng(3).normal(size=(ROWS, 2)) * [1.0, 20.0]
    grouped = torch.from_numpy(term_NK).view(-1, GROUP_SIZE, 2)
    scaled = (grouped - grouped.mean(1, keepdim=True)) / (
        nanstd(grouped, dim=1, keepdim=True) + 1e-4
    )
    total = scaled.view(-1, 2).sum(1)
    expected = (total - total.mean()) / (nanstd(total) + 1e-4)
    algorithm = dataclasses.replace(get("grpo"), combine="normalise-then-sum")
    got = advantages_of_terms(term_NK, np.arange(ROWS) // GROUP_SIZE, algorithm)
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-7, atol=1e-12)


def test_any_two_algorithms_differ(setting):
    results = {name: ours(setting, get(name)) for name in ALGORITHMS}
    for first, second in itertools.combinations(ALGORITHMS, 2):
        (loss_1, grads_1, *_), (loss_2, grads_2, *_) = results[first], results[second]
        assert abs(loss_1 - loss_2) > 1e-3, (first, second)
        largest = max(float((grads_1[n] - grads_2[n]).abs().max()) for n in grads_1)
        assert largest > 1e-3, (first, second)
