"""A learner whose numbers are infinite or none: what it leaves out, and when it ends the run."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from coterie.algorithms import Learner, LearnerSettings, get
from coterie.algorithms.nonfinite import NotFinite, not_finite_error

PLAIN = LearnerSettings(importance_correction="none")
ADVANTAGES = np.array([1.0, -0.5, 0.25, -1.5, 0.75, 0.0, -0.25, 1.25])


def poisoned(rows, place):
    bad = dataclasses.replace(rows[place], loss_weight=float("inf"))
    return [*rows[:place], bad, *rows[place + 1 :]]


def test_a_step_that_is_not_finite_is_left_out_and_counted(tiny, make_rows):
    model, rows = tiny(), make_rows(8)
    before = model.weights()
    learner = Learner(model, get("grpo"), PLAIN)
    metrics = learner.update(poisoned(rows, 0), ADVANTAGES)
    assert metrics["skipped_steps"] == 1
    assert not math.isfinite(metrics["grad_norm"])
    assert all(torch.equal(before[name], now) for name, now in model.weights().items())
    assert model.version == 0
    assert learner.update(rows, ADVANTAGES)["skipped_steps"] == 1
    assert not torch.equal(before["model.norm.weight"], model.weights()["model.norm.weight"])


@pytest.mark.parametrize("settings", [PLAIN, dataclasses.replace(PLAIN, epochs=2, minibatches=2)])
def test_the_third_step_running_that_is_not_finite_names_its_row(tiny, make_rows, settings):
    model, rows = tiny(), make_rows(8)
    if settings.optimizer_steps > 1:
        rows = poisoned(rows, 6)
    bad, before = poisoned(rows, 2), model.weights()
    learner = Learner(model, get("grpo"), settings)
    for lost in (1, 2):
        assert learner.update(bad, ADVANTAGES)["skipped_steps"] == lost * settings.optimizer_steps
    with pytest.raises(NotFinite, match="the row of a_2 alone has a loss of nan") as caught:
        learner.update(bad, ADVANTAGES)
    assert (caught.value.row, caught.value.advantage) == (bad[2], ADVANTAGES[2])
    assert all(torch.equal(before[name], now) for name, now in model.weights().items())
    assert all(p.grad is None for p in model.parameters().values())


def test_steps_that_are_left_out_now_and_then_end_nothing(tiny, make_rows):
    model, rows = tiny(), make_rows(8)
    learner = Learner(model, get("grpo"), PLAIN)
    for step in range(10):
        learner.update(rows if step % 3 == 2 else poisoned(rows, 2), ADVANTAGES)
    assert learner.update(rows, ADVANTAGES)["skipped_steps"] == 7
    # A checkpoint remembers how many it were.
    learner.update(poisoned(rows, 2), ADVANTAGES)
    learner.update(poisoned(rows, 2), ADVANTAGES)
    again = Learner(model, get("grpo"), PLAIN)
    again.load_state_dict(*learner.state_dict())
    with pytest.raises(NotFinite):
        again.update(poisoned(rows, 2), ADVANTAGES)


def test_rows_that_are_finite_one_by_one_are_reported_too(tiny, make_rows):
    """Their sum is too large for a float."""
    rows = [dataclasses.replace(row, loss_weight=3e38) for row in make_rows(8)]
    seen = not_finite_error(rows, ADVANTAGES.tolist(), lambda place: (1.0, float(place == 3)))
    assert "their sum is not" in str(seen)
    assert seen.row is rows[3]


def test_weights_that_an_update_breaks_end_the_run_at_once(tiny, make_rows):
    """Before a checkpoint holds them."""
    learner = Learner(tiny(), get("grpo"), dataclasses.replace(PLAIN, lr=3e38))
    with pytest.raises(NotFinite, match="weights are not finite") as caught:
        learner.update(make_rows(8), ADVANTAGES)
    assert caught.value.row is None
