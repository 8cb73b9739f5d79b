"""Training with engines: the same contract as in this process, and one step ahead of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coterie import envs
from coterie.train import main
from coterie.training.session import Session

Opened = Callable[..., Session]
Train = Callable[[Session], list[dict[str, float]]]
ENGINE = ("--engine", "vllm")


@pytest.mark.parametrize("env", [name for name in envs.names() if ":" not in name])
def test_every_environment_trains_on_engines(
    opened: Opened, train: Train, file_engine, env: str
) -> None:
    session = opened("--env", env, *ENGINE, "--rollout.problems-per-step", "4")
    for metrics in train(session):
        for role in session.team.trained:
            # Of a tiny model alone no group may have a difference, and nothing is learned then.
            seen = metrics.get(f"learner/{role}/mismatch/mean", 0.0 if env == "solo" else None)
            assert seen is not None
            assert seen < 1e-4
            assert metrics.get(f"learner/{role}/staleness", 0.0) == 0
        assert metrics["rollout/failed"] == 0
    # Before each of the two steps' episodes, and not in between.
    assert {engine.reloads for engine in file_engine.started} <= {0, 2}


def test_adapters_train_on_one_engine(opened: Opened, train: Train, file_engine) -> None:
    session = opened(
        *ENGINE,
        *("--agents.alice.model", "tiny:alice", "--agents.alice.tuning", "lora"),
        *("--agents.bob.model", "tiny:alice", "--agents.bob.tuning", "lora"),
    )
    for metrics in train(session):
        assert max(metrics[f"learner/{role}/mismatch/max"] for role in ("alice", "bob")) < 1e-3
    assert len(file_engine.started) == 1


def test_a_pool_and_a_frozen_role_are_answered_by_engines(
    opened: Opened, train: Train, file_engine
) -> None:
    session = opened(
        *(*ENGINE, "--env", "eapo-consultation"),
        *("--agents.expert.model", "pool:tiny:expert|scripted:oracle"),
    )
    assert all(m["rollout/failed"] == 0 for m in train(session))
    assert len(file_engine.started) == 2


def test_sampling_ahead_uses_the_weights_before_the_update(
    opened: Opened, train: Train, file_engine
) -> None:
    session = opened(*ENGINE, "--rollout.overlap", "--steps", "3")
    first, second, third = train(session)
    assert [m["learner/alice/staleness"] for m in (first, second, third)] == [0, 1, 1]
    # One update lies between sampler and learner: the mismatch is real, and weighed.
    assert first["learner/alice/mismatch/mean"] < 1e-4
    assert min(second["learner/alice/mismatch/mean"], third["learner/alice/mismatch/mean"]) > 1e-3
    assert third["learner/alice/mismatch/ess"] < 1


def test_an_evaluation_between_steps_asks_the_newest_weights(
    opened: Opened, train: Train, file_engine
) -> None:
    session = opened(
        *(*ENGINE, "--rollout.overlap", "--steps", "2", "--eval.enabled", "--eval.every", "1"),
        *("--problems.held-out", "8"),
    )
    versions = []
    examine = session.runtime.examiner.examine

    async def noted():
        versions.append({p.version for p in session.team.policies.values()})
        return await examine()

    session.runtime.examiner.examine = noted
    train(session)
    assert versions == [{1}]


def test_a_run_on_engines_is_resumed_where_it_stood(
    tmp_path: Path, file_engine, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = (*ENGINE, "--eval.no-enabled", "--rollout.problems-per-step", "4")
    for name, steps in (("whole", "2"), ("cut", "1")):
        assert main([*flags, "--steps", steps, "--run-dir", str(tmp_path / name)]) == 0
    assert main(["--resume", str(tmp_path / "cut"), "--steps", "2"]) == 0
    lines = [
        (tmp_path / name / "episodes.jsonl").read_text().splitlines() for name in ("whole", "cut")
    ]
    assert len(lines[0]) == 8
    assert lines[0] == lines[1]


def test_a_step_that_is_played_ahead_begins_where_the_loop_says_so(
    opened: Opened, file_engine
) -> None:
    session = opened(*ENGINE, "--rollout.overlap", "--steps", "2")
    batch = session.sample(1)
    credit = session.credit(batch)
    assert not session.sampler.is_ahead
    session.sample_ahead(2)
    assert session.sampler.is_ahead
    session.update(batch, credit)
    session.sample(2)
    session.sample_ahead(3)  # there is no third step
    assert not session.sampler.is_ahead
