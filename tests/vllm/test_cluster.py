"""Real engines in other processes: actors of a Ray that starts here, and without Ray."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from coterie.cli.command_line import parse
from coterie.training.config.preflight import preflight
from coterie.training.session import open_session

pytestmark = pytest.mark.filterwarnings("ignore")

FLAGS = (
    "--engine", "vllm", "--cluster.cpus", "0.25", "--threads", "1",
    "--steps", "3", "--rollout.problems-per-step", "4", "--eval.no-enabled",
    # Full weights beside their learner; adapters on two engines apart.
    "--agents.bob.tuning", "lora", "--agents.bob.engine-replicas", "2", "--learner.lr", "0.001",
)  # fmt: skip

ENGINES = ("engine 1 of bob", "engine 2 of bob")


@pytest.mark.parametrize("address", ["local", "none"])
def test_full_weights_and_adapters_answer_with_the_learners_probabilities(
    tmp_path: Path, address: str, kill_engine: Callable[[Any], None]
) -> None:
    if address == "local" and find_spec("ray") is None:
        pytest.skip("not run: Ray is not installed")
    settings = parse([*FLAGS, "--cluster.address", address, "--run-dir", str(tmp_path / "run")])
    updates: list[dict[str, float]] = []
    with open_session(settings, preflight(settings)) as session, session.open_logbook() as logbook:
        pool: Any = session.team.backend
        places = [row["process"] for row in pool.places()]
        assert places == ["learner of alice", "learner of bob", *ENGINES]
        for step in session.steps_left():
            if step == 3:  # an engine, and a learner with the one beside it
                learner, engine = pool._actors[0], pool._actors[3]
                if address == "local":
                    # Imported before a run has said who may speak to it, it takes nobody's word.
                    import ray

                    ray.kill(learner.handle)
                    ray.kill(engine.handle)
                else:
                    learner.handle.process.kill()
                    kill_engine(engine)
            batch = session.sample(step)
            rows = [row for episode in batch.episodes for row in episode.trajectories]
            assert {row.weight_version for row in rows} == {step - 1}
            credit = session.credit(batch)
            updates.append(session.update(batch, credit))
            session.record(step, batch, credit, updates[-1], logbook)
            session.checkpoint(step)
        assert [actor.restarts for actor in pool._actors] == [1, 0, 0, 1]
    for metrics in updates:
        for role in ("alice", "bob"):
            assert metrics[f"learner/{role}/mismatch/mean"] < 1e-6
            assert metrics[f"learner/{role}/staleness"] == 0
