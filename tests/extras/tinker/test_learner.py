"""A learner on a server takes the steps of a learner in this process."""

import dataclasses
import shutil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from coterie.agents.team.backend import LearningSetup
from coterie.algorithms import ALGORITHMS, Learner, LearnerSettings, get
from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.imitation import LIKELIHOOD, imitating
from coterie.algorithms.nonfinite import NotFinite
from coterie.datatypes import UserError
from coterie.extras.tinker.learner import ServerLearner, ServerWeights
from coterie.extras.tinker.role import ServerRole
from tests.extras.tinker.conftest import Done, FakeClient, FakeService

ADVANTAGES = np.array([1.0, -0.5, 0.25, -1.5, 0.75, 0.0, -0.25, 1.25])
HINTED = np.array([7, 3, 11, 5, 2])

pytestmark = pytest.mark.usefixtures("fake_tinker")


class Pair:
    """Two learners that begin with equal weights: in this process, and on the fake server."""

    def __init__(self, tiny: Any, server_model: Any, algorithm: Any, settings: Any) -> None:
        self.local_model, remote = tiny(), tiny()
        self.local = Learner(self.local_model, algorithm, settings, total_steps=4)
        self.client = FakeClient(remote)
        service: Any = FakeService()
        weights = ServerWeights(service, server_model, self.client, settings.micro_batch_tokens)
        at_start = ServerWeights(service, server_model, FakeClient(tiny()), 8192)
        self.remote = ServerLearner(weights, at_start.logprobs, algorithm, settings, total_steps=4)

    def check(self, rows: Any, advantages: Any = ADVANTAGES, bonus: Any = None) -> None:
        """Two updates with ``rows`` change both weights, and equally."""
        before = self.local_model.weights()
        for _ in range(2):
            ours = self.local.update(rows, advantages, bonus or {})
            theirs = self.remote.update(rows, advantages, bonus or {})
            assert "loss" in ours.keys() & theirs.keys()
            for name in ours.keys() & theirs.keys():
                assert theirs[name] == pytest.approx(ours[name], rel=2e-3, abs=2e-5), name
            assert self.local.token_bonus.keys() == self.remote.token_bonus.keys()
            for index, bonus_T in self.local.token_bonus.items():
                np.testing.assert_allclose(self.remote.token_bonus[index], bonus_T, atol=1e-4)
        moved = 0.0
        now = self.client.model.weights()
        for name, weight in self.local_model.weights().items():
            torch.testing.assert_close(now[name], weight, rtol=1e-4, atol=5e-5)
            moved = max(moved, float((weight - before[name]).abs().max()))
        assert moved > 1e-4


CORRECTIONS = ("token-truncate", "none", "sequence-mask")


@pytest.mark.parametrize(
    ("name", "correction"),
    [
        (name, correction)
        for name in ALGORITHMS
        for correction in CORRECTIONS[: 3 if name in ("gspo", "grpo") else 1]
    ],
)
def test_every_algorithm(name, correction, tiny, server_model, make_rows) -> None:
    settings = LearnerSettings(importance_correction=correction, micro_batch_tokens=40)
    Pair(tiny, server_model, get(name), settings).check(make_rows())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_several_optimizer_steps_on_a_batch(name, tiny, server_model, make_rows) -> None:
    settings = LearnerSettings(
        epochs=2, minibatches=2, lr=5e-3, schedule="linear", warmup=1, weight_decay=0.1
    )
    pair = Pair(tiny, server_model, get(name), settings)
    pair.check(make_rows())
    assert pair.client.calls.count("optim_step") == 8


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_a_penalty_on_the_distance_from_the_start(estimator, tiny, server_model, make_rows) -> None:
    algorithm = dataclasses.replace(get("grpo"), kl_coefficient=0.5, kl_estimator=estimator)
    Pair(tiny, server_model, algorithm, LearnerSettings(lr=1e-2)).check(make_rows())


@pytest.mark.parametrize("reader", [{"reader": "start"}, {"decay": 0.0}])
def test_self_distillation(reader, tiny, server_model, make_rows) -> None:
    distillation = Distillation(beta=0.7, fade=0.9, **reader)
    algorithm = dataclasses.replace(get("gspo"), distillation=distillation)
    rows = [
        dataclasses.replace(row, reread_after=HINTED) if i in (1, 4) else row
        for i, row in enumerate(make_rows())
    ]
    Pair(tiny, server_model, algorithm, LearnerSettings(lr=1e-2)).check(rows)


def test_rows_that_are_learned_in_another_context(tiny, server_model, make_rows) -> None:
    rows = [dataclasses.replace(row, learned_after=HINTED) for row in make_rows()]
    Pair(tiny, server_model, get("gspo"), LearnerSettings()).check(rows)


def test_rewards_of_turns(tiny, server_model, make_rows) -> None:
    bonus = {2: np.array([0.5]), 5: np.array([-1.0])}
    Pair(tiny, server_model, get("grpo"), LearnerSettings()).check(make_rows(), bonus=bonus)


def test_imitation(tiny, server_model, make_rows) -> None:
    rows = [dataclasses.replace(row, logprobs=np.zeros_like(row.logprobs)) for row in make_rows()]
    settings = imitating(LearnerSettings())
    Pair(tiny, server_model, LIKELIHOOD, settings).check(rows, np.ones(8))


def test_a_step_without_signal_decays_the_moments(tiny, server_model, make_rows) -> None:
    pair = Pair(tiny, server_model, get("gspo"), LearnerSettings())
    rows = make_rows()
    pair.check(rows)
    for learner in (pair.local, pair.remote):
        learner.update(rows, np.zeros(8))
    now = pair.client.model.weights()
    for name, weight in pair.local_model.weights().items():
        torch.testing.assert_close(now[name], weight, rtol=1e-4, atol=5e-5)


def test_divergences(tiny, server_model, make_rows) -> None:
    algorithm = dataclasses.replace(get("grpo"), kl_in_reward=0.1)
    pair = Pair(tiny, server_model, algorithm, LearnerSettings(lr=1e-2))
    pair.check(make_rows())
    ours, theirs = (learner.divergences(make_rows()) for learner in (pair.local, pair.remote))
    assert np.abs(ours).max() > 1e-3
    np.testing.assert_allclose(theirs, ours, rtol=1e-2, atol=1e-3)


def test_tokens_are_counted_and_priced(tiny, server_model, make_rows) -> None:
    rows = make_rows()
    Pair(tiny, server_model, get("gspo"), LearnerSettings(skip_idle_rows=False)).check(rows)
    computed = sum(len(row.tokens) - 1 for row in rows)
    assert server_model.tokens.scored == server_model.tokens.trained == 2 * computed


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_end_the_run(
    poison, tiny, server_model, make_rows, monkeypatch
) -> None:
    pair = Pair(tiny, server_model, get("gspo"), LearnerSettings())
    usual = pair.client._logprobs
    monkeypatch.setattr(pair.client, "_logprobs", lambda datum: usual(datum) + poison)
    with pytest.raises(UserError, match="log-probabilities of alice that are not finite"):
        pair.remote.update(make_rows(), ADVANTAGES)
    assert pair.client.calls == ["forward"]  # nothing reached the weights


def test_losses_that_are_not_finite_change_nothing(tiny, server_model, make_rows) -> None:
    pair = Pair(tiny, server_model, get("gspo"), LearnerSettings())
    before = pair.client.model.weights()
    advantages = np.where(ADVANTAGES > 1, np.inf, ADVANTAGES)
    for _ in range(2):
        metrics = pair.remote.update(make_rows(), advantages)
        assert metrics["skipped_steps"] >= 1
    with pytest.raises(NotFinite):
        pair.remote.update(make_rows(), advantages)
    for name, weight in pair.client.model.weights().items():
        assert torch.equal(weight, before[name])
    assert "optim_step" not in pair.client.calls


def test_states_of_deleted_checkpoints_are_deleted(server_model, tmp_path) -> None:
    learning = LearningSetup(get("gspo"), LearnerSettings(), temperature=1.0, total_steps=9)
    deleted: list[str] = []

    class Server(FakeService):
        url = "http://the-server"

        def delete(self, path: str) -> None:
            deleted.append(path)

    client: Any = SimpleNamespace(
        save_state=lambda name: Done(SimpleNamespace(path=f"tinker://x/weights/{name}"))
    )
    weights = ServerWeights(Server(), server_model, client, 8192)  # type: ignore[arg-type]
    role = ServerRole(weights, weights.logprobs, learning, "run-{}".format)
    for step in range(1, 5):
        server_model.version = step
        folder = tmp_path / f"step-{step}" / "alice"
        folder.mkdir(parents=True)
        plain = role.save(folder)
        shutil.rmtree(tmp_path / f"step-{step - 2}", ignore_errors=True)  # two are kept
    assert deleted == ["tinker://x/weights/run-alice-1"]
    assert plain["states"] == [f"tinker://x/weights/run-alice-{step}" for step in (2, 3, 4)]
