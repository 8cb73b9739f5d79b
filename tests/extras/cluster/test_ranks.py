"""Two ranks learn what one process learns: gloo between two processes."""

import copy
import multiprocessing
import pickle
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
import torch

from coterie.agents.models.stored import StoredWeights
from coterie.agents.team.backend import LearningSetup
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms import LearnerSettings, get
from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.imitation import Imitation
from coterie.algorithms.nonfinite import NotFinite
from coterie.datatypes import Trajectory
from coterie.extras.cluster.worker import Rank, Worker

FULL = {"bob": AgentSettings("tiny:bob")}
ADAPTER = AgentSettings("tiny:alice", tuning="lora", lora_rank=4, recompute="always")
LORA = {"alice": ADAPTER, "bob": ADAPTER}
# Three micro-batches for two ranks, and a gradient that is clipped.
SETTINGS = LearnerSettings(
    micro_batch_tokens=150, max_grad_norm=0.05, weight_decay=0.01, importance_correction="none"
)
GSPO = LearningSetup(
    get("gspo"), SETTINGS, temperature=1.0, total_steps=10, imitation=Imitation(steps=2, lr=1e-3)
)
# A reference, an average of past weights, an entropy bonus, and steps of which the second compares
# with the first.
MORE = replace(
    GSPO,
    algorithm=replace(
        get("grpo"),
        kl_coefficient=0.1,
        entropy_coefficient=0.01,
        distillation=Distillation(0.5, likeliest=16),
    ),
    settings=replace(SETTINGS, epochs=2, micro_batch_tokens=8192),
)


def rows(step: int, count: int = 7) -> tuple[list[Trajectory], np.ndarray]:
    """Of unequal lengths, four of them after one prompt; and advantages."""
    chance = np.random.default_rng(step)
    shared, trajectories = chance.integers(3, 99, 20), []
    for i in range(count):
        prompt = shared if i % 2 else chance.integers(3, 99, int(chance.integers(4, 30)))
        answer = chance.integers(3, 99, int(chance.integers(3, 25)))
        mask = np.arange(len(prompt) + len(answer)) >= len(prompt)
        trajectories.append(
            Trajectory(
                agent=f"bob_{i}", role="bob", tokens=np.concatenate([prompt, answer]), mask=mask,
                logprobs=np.where(mask, -4.0, 0).astype(np.float32), reward=0.0, reward_terms={},
                groups={}, reread_after=chance.integers(3, 99, 12) if i < 4 else None,
            )
        )  # fmt: skip
    return trajectories, chance.normal(size=count)


Models = dict[str, AgentSettings]
ALONE = Rank()


def worker(models: Models, learning: LearningSetup, rank: Rank = ALONE) -> Worker:
    built = Worker("learner", models, set(models), learning, seed=0, threads=1, rank=rank)
    built.load()
    return built


def learn(learner: Worker, steps: range) -> dict[str, Any]:
    """All that is left of these steps, and of the last one's metrics; solutions are imitated before
    the first."""
    metrics: Any = {}
    roles = list(learner.models.trained)
    for step in steps:
        for role in roles:
            if step == 0:
                learner.learn(role, "imitate", pickle.dumps((rows(99)[0],)))
                learner.learn(role, "begin", pickle.dumps(()))
            (metrics, _), _ = learner.update(role, pickle.dumps(rows(step)))
    weights = {
        f"{role}/{name}": w.clone()
        for role in roles
        for name, w in learner.weights(role)[0].items()
    }
    # What it gives is its own, which the next step changes.
    moments = {
        role: copy.deepcopy(learner.learn(role, "state_dict", pickle.dumps(()))[0])
        for role in roles
    }
    return {"weights": weights, "moments": moments, "metrics": metrics}


Work = Callable[[Rank], Any]


class ByValue:
    """Pickles a function with its code: another process cannot import a test."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        return cloudpickle.loads, (cloudpickle.dumps(self.function),)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def on_two(tmp_path: Path) -> Callable[[Work], list[Any]]:
    """What work gives on each of two ranks."""

    def run(work: Work) -> list[Any]:
        # Fork from a clean server process: this one may have Ray's threads, and a fork would break
        # them.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["coterie.extras.cluster.worker"])
        meeting = tmp_path / f"meeting-{len(list(tmp_path.iterdir()))}"
        pipes, processes = [], []
        for i in range(2):
            ours, theirs = context.Pipe()
            rank = Rank(i, 2, str(meeting))
            processes.append(
                context.Process(target=ByValue(_run), args=(ByValue(work), rank, theirs))
            )
            processes[-1].start()
            theirs.close()
            pipes.append(ours)
        replies = [pickle.loads(pipe.recv_bytes()) for pipe in pipes]
        for process in processes:
            process.join(20)
        assert all(error is None for error, _ in replies), replies
        return [answer for _, answer in replies]

    return run


def _run(work: Work, rank: Rank, pipe: Any) -> None:
    try:
        reply = None, work(rank)
    except BaseException:
        reply = traceback.format_exc(), None
    pipe.send_bytes(pickle.dumps(reply))


def difference(tensors: dict[str, torch.Tensor], others: dict[str, torch.Tensor]) -> float:
    assert tensors.keys() == others.keys()
    return max(
        float((tensors[name].float() - others[name].float()).abs().max()) for name in tensors
    )


@pytest.mark.parametrize(
    ("models", "learning"),
    [
        pytest.param(FULL, GSPO, id="full"),
        pytest.param(LORA, GSPO, id="adapters", marks=pytest.mark.slow),
        pytest.param(FULL, MORE, id="full, more", marks=pytest.mark.slow),
    ],
)
def test_two_ranks_learn_as_one_process_does(
    on_two: Any, models: Models, learning: LearningSetup
) -> None:
    there, second = on_two(lambda rank: learn(worker(models, learning, rank), range(5)))
    here = learn(worker(models, learning), range(5))
    start = learn(worker(models, learning), range(0))
    # Adam's steps are about as long as the learning rate, .001.
    assert difference(here["weights"], start["weights"]) > 2e-3
    print("differ by", difference(here["weights"], there["weights"]))
    assert difference(here["weights"], there["weights"]) < 2e-5
    for role in models:
        (tensors, plain), (same, numbers) = here["moments"][role], there["moments"][role]
        assert difference(tensors, same) < 2e-5
        assert plain == numbers
        # Of what the first rank gathers the second keeps nothing.
        assert second["moments"][role] == ({}, plain)
    assert second["weights"] == {}
    assert here["metrics"].keys() == there["metrics"].keys()
    for name, value in here["metrics"].items():
        assert there["metrics"][name] == pytest.approx(value, rel=1e-3, abs=1e-5), name
        assert there["metrics"][name] == second["metrics"][name], name
    assert here["metrics"]["grad_norm"] > SETTINGS.max_grad_norm


def saved(learner: Worker) -> tuple[Any, ...]:
    """A checkpoint after three steps, what was in memory then, and after one more step."""
    then = learn(learner, range(3))
    return learner.write("bob", "save", None), then, learn(learner, range(3, 4))


def resumed(learner: Worker, written: Any) -> tuple[Any, Any]:
    """What is in memory behind such a checkpoint, and after one more step."""
    plain, files = written
    learner.read("bob", files, plain)
    return learn(learner, range(0)), learn(learner, range(3, 4))


@pytest.mark.parametrize("models", [FULL], ids=["full"])
def test_a_checkpoint_of_two_ranks_resumes_on_one_and_the_reverse(
    on_two: Any, models: Models
) -> None:
    first, second = on_two(lambda rank: saved(worker(models, MORE, rank)))
    (written, then, after), ((_, nothing), *_) = first, second
    assert nothing == {}
    restored, later = resumed(worker(models, MORE), written)
    same(restored, then)
    assert difference(later["weights"], after["weights"]) < 2e-5

    own, then, after = saved(worker(models, MORE))
    assert own[1].keys() == written[1].keys()
    (restored, later), _ = on_two(lambda rank: resumed(worker(models, MORE, rank), own))
    same(restored, then)
    assert difference(later["weights"], after["weights"]) < 2e-5


@pytest.mark.slow
def test_an_adapter_of_before_is_the_reference_of_two_ranks(on_two: Any, tmp_path: Path) -> None:
    before = worker({"bob": ADAPTER}, GSPO)
    learn(before, range(3))
    before.models.loaded["bob"].handle.save(tmp_path / "adapter")
    models = {"bob": replace(ADAPTER, model=str(tmp_path / "adapter"))}
    test_two_ranks_learn_as_one_process_does(on_two, models, MORE)
    test_a_checkpoint_of_two_ranks_resumes_on_one_and_the_reverse(on_two, models)


def same(state: dict[str, Any], other_state: dict[str, Any]) -> None:
    """Bit for bit."""
    assert difference(state["weights"], other_state["weights"]) == 0
    (tensors, plain), (others, numbers) = state["moments"]["bob"], other_state["moments"]["bob"]
    assert difference(tensors, others) == 0
    assert plain == numbers


@pytest.mark.slow
def test_bfloat16_computes_and_float32_is_held(on_two: Any) -> None:
    models = {"bob": AgentSettings("tiny:bob", dtype="bfloat16")}
    start = learn(worker(models, GSPO), range(0))["weights"]
    here = learn(worker(models, GSPO), range(5))["weights"]
    there = on_two(lambda rank: learn(worker(models, GSPO, rank), range(5)))[0]["weights"]
    exact = learn(worker(FULL, GSPO), range(5))["weights"]
    assert {weight.dtype for weight in there.values()} == {torch.float32}
    ways = [torch.cat([(x[n] - start[n]).flatten() for n in x]) for x in (here, there, exact)]
    print("cosines", torch.corrcoef(torch.stack(ways)))
    assert torch.cosine_similarity(ways[0], ways[1], dim=0) > 0.95
    assert not torch.equal(ways[1], ways[2])


def test_what_two_ranks_send_is_what_one_process_would(on_two: Any) -> None:
    def sent(rank: Rank) -> dict[str, torch.Tensor]:
        handle = worker(FULL, GSPO, rank).models.loaded["bob"].handle
        return {n: w.clone() for n, w in StoredWeights(handle.causal_lm, torch.bfloat16)}

    first, second = on_two(sent)
    alone = sent(ALONE)
    assert {weight.dtype for weight in alone.values()} == {torch.bfloat16}
    assert list(first) == list(second) == list(alone)
    assert difference(first, alone) == difference(second, alone) == 0


def test_every_rank_reports_a_loss_that_is_not_finite(on_two: Any) -> None:
    def lose(rank: Rank) -> str:
        learner = worker(FULL, GSPO, rank)
        trajectories, advantages = rows(0)
        advantages[3] = np.nan
        for _ in range(3):
            try:
                learner.update("bob", pickle.dumps((trajectories, advantages)))
            except NotFinite as why:
                return f"{why}"
        return "nothing"

    first, second = on_two(lose)
    assert first == second
    assert "the row of bob_3 alone has a loss of nan" in first
