"""What every backend that is loaded in this process does with those who learn."""

from typing import Any

import numpy as np
import pytest

from coterie.agents.sampling import copies
from coterie.agents.team.backend import Backend, Learners, LearningSetup, RestorePoint
from coterie.agents.team.local_backend import LocalBackend
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.vllm_backend import VllmBackend
from coterie.agents.vllm.settings import VllmSettings
from coterie.algorithms import LearnerSettings, get
from coterie.datatypes import Prompt, Sampling

LEARNING = LearningSetup(get("gspo"), LearnerSettings(), temperature=1.0, total_steps=2)
MODELS = {
    "bob": AgentSettings("tiny:bob"),
    "carol": AgentSettings("tiny:carol", trained=False),
    "alice": AgentSettings("tiny:alice"),
}
LEARN = {"alice", "bob"}


def local() -> Backend:
    return LocalBackend()


def vllm() -> Backend:
    return VllmBackend(VllmSettings())


@pytest.mark.parametrize("make", [local, vllm])
def test_those_who_learn_are_reached_by_role(make: Any, file_engine: Any) -> None:
    backend: Backend = make()
    models = backend.load(MODELS, LEARN, LEARNING, 0)
    assert list(models.policies) == list(models.codecs) == list(MODELS)
    # In the order of the models, and without those who are frozen.
    assert list(models.trained) == ["bob", "alice"]
    assert backend.learn(lambda role, learner: learner.version) == {"bob": 0, "alice": 0}
    seen: list[list[str]] = []

    def note(learners: Learners) -> RestorePoint:
        seen.append([role for role in learners if learners[role] is models.trained[role]])
        return lambda others: None

    backend.save(note)
    backend.restore(note)
    assert seen == [["bob", "alice"]] * 2
    assert backend.places() == []
    backend.close()


@pytest.mark.parametrize("make", [local, vllm])
async def test_without_a_model_there_is_nothing_to_start(make: Any, file_engine: Any) -> None:
    backend: Backend = make()
    assert not backend.load({}, set(), LEARNING, 0).policies
    await backend.start()
    await backend.refresh()
    await backend.rest()
    assert backend.learn(lambda role, learner: role) == {}
    backend.close()
    assert not file_engine.started


@pytest.mark.parametrize("make", [local, vllm])
def test_whose_learner_is_elsewhere_only_answers(make: Any, file_engine: Any) -> None:
    backend: Backend = make()
    models = backend.load(MODELS, LEARN, None, 0)
    assert set(models.policies) == set(MODELS)
    assert models.trained == {}
    backend.close()


async def test_before_learning_only_a_frozen_role_keeps_a_copy_of_its_weights() -> None:
    backend = local()
    models = backend.load(MODELS, LEARN, LEARNING, 0)
    ask = Prompt(np.array([5, 6], np.int64), "", "a", 0)
    first = {role: await policy(ask, Sampling(4)) for role, policy in models.policies.items()}
    await backend.rest()
    kept = {role for role in MODELS if models.policies[role].sampler._weights is not None}
    assert kept == {"carol"}
    for role, policy in models.policies.items():
        assert (await policy(ask, Sampling(4))).tokens.tolist() == first[role].tokens.tolist()


def test_how_large_a_model_is_copied_to_sample_from() -> None:
    assert copies(4 << 30, None)
    assert not copies((4 << 30) + 1, None)
    assert copies(int(5.8 * 2**30), 80 << 30)  # 3B in bfloat16
    assert not copies(int(5.8 * 2**30), 24 << 30)
