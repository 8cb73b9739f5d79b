"""Against Hatchery, a server by others, with the official client."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from coterie.agents.models.loading import load_team
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.team.backend import LearningSetup
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms import ALGORITHMS, Learner, LearnerSettings, get
from coterie.algorithms.algorithm import Distillation
from coterie.extras.tinker.backend import TinkerBackend
from coterie.extras.tinker.learner import SCALE
from coterie.extras.tinker.settings import TinkerSettings
from tests.extras.tinker import hatchery
from tests.extras.tinker.hatchery import Hatchery

ADVANTAGES = np.array([1.0, -0.5, 0.25, -1.5, 0.75, 0.0, -0.25, 1.25])

pytestmark = [
    pytest.mark.skipif(not hatchery.available(), reason="not run: Hatchery is not installed"),
    # The official client leaves its connections open.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def opened(
    server: Hatchery, algorithm: Any, settings: LearnerSettings
) -> tuple[TinkerBackend, Any]:
    backend = TinkerBackend(TinkerSettings(server.url, limit_s=60), "test")
    learning = LearningSetup(algorithm, settings, temperature=1.0, total_steps=4)
    models = backend.load({"alice": AgentSettings("tiny:alice")}, {"alice"}, learning, seed=0)
    return backend, models


def same_adapter(server: Hatchery, session: str) -> Any:
    """A model in this process with the adapter of a session."""
    spec = ModelSpec("tiny:alice", lora=LoraSpec(16, 32))
    handle = load_team({"alice": spec}, {"alice"})["alice"].handle
    own, theirs = by_layer(handle.parameters()), by_layer(server.adapter(session))
    assert own.keys() == theirs.keys()
    assert len(own) == 28  # seven projections in two layers, two matrices each
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(theirs[name])
    return handle


def by_layer(weights: dict[str, Any]) -> dict[str, Any]:
    """By the part of the names that is the same here and on the server."""
    return {
        name[name.index("layers.") :].replace(".role-alice", ""): weight
        for name, weight in weights.items()
    }


@pytest.mark.parametrize("name", ALGORITHMS)
def test_gradients_and_losses_are_those_of_this_process(name, server, make_rows) -> None:
    settings, rows = (
        LearnerSettings(micro_batch_tokens=40, importance_correction="none"),
        make_rows(),
    )
    backend, models = opened(server, get(name), settings)
    remote: Any = models.trained["alice"]
    session = backend._weights["alice"].client.model_id
    handle = same_adapter(server, session)
    local = Learner(handle, get(name), settings, total_steps=4)
    arguments = (rows, ADVANTAGES, None, None, range(8))
    (mine, *_), (of_server, *_) = local._gradient(*arguments), remote.learner._gradient(*arguments)
    assert of_server == pytest.approx(mine, abs=1e-4)
    own = by_layer({name: p.grad for name, p in handle.parameters().items()})
    theirs = by_layer(server.gradient(session))
    assert max(float(gradient.abs().max()) for gradient in own.values()) > 1e-3
    for layer, gradient in own.items():
        torch.testing.assert_close(theirs[layer] / SCALE, gradient, rtol=1e-3, atol=1e-4)
    backend.close()


def test_steps_are_those_of_this_process(server, make_rows) -> None:
    settings = LearnerSettings(
        lr=1e-2, epochs=2, minibatches=2, weight_decay=0.1, importance_correction="none"
    )
    algorithm = dataclasses.replace(
        get("gspo"), distillation=Distillation(beta=0.5, reader="start"), kl_coefficient=0.1
    )
    rows = [dataclasses.replace(row, reread_after=np.array([7, 3, 11])) for row in make_rows()]
    backend, models = opened(server, algorithm, settings)
    session = backend._weights["alice"].client.model_id
    handle = same_adapter(server, session)
    local, before = (
        Learner(handle, algorithm, settings, total_steps=4),
        by_layer({name: p.detach().clone() for name, p in handle.parameters().items()}),
    )
    for _ in range(2):
        mine, of_server = (
            learner.update(rows, ADVANTAGES) for learner in (local, models.trained["alice"])
        )
        for metric in ("loss", "mismatch/mean", "distillation/mean", "kl", "ratio/max"):
            assert of_server[metric] == pytest.approx(mine[metric], rel=1e-2, abs=1e-4), metric
    theirs, moved = by_layer(server.adapter(session)), 0.0
    for layer, weight in by_layer(handle.parameters()).items():
        # AdamW turns a tiny gradient into a whole step, so a rounding error can, too.
        close = (theirs[layer] - weight).abs() < 1e-3
        assert close.float().mean() > 0.98, layer
        moved = max(moved, float((weight.detach() - before[layer]).abs().max()))
    assert moved > 3e-2
    backend.close()
