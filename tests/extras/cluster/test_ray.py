"""Real Ray: three nodes on this machine, whole runs, and what happens when something is killed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from coterie.agents.team.backend import Died
from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Actor, Cluster
from coterie.training.session import Session

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    # Of Ray's own.
    pytest.mark.filterwarnings("ignore"),
]
Play = Callable[..., dict[str, bytes]]
ROOT = Path(__file__).resolve().parents[3]


def test_what_is_killed_while_it_answers_is_replaced_and_nothing_changes(
    nodes: Any, play: Play, kill_when_asked: Any, apart: tuple[str, ...],
    full: dict[str, bytes], tmp_path: Path,
) -> None:  # fmt: skip
    """An engine in the first step, a node in the second."""
    killed: list[str] = []

    def arrange(session: Session, step: int) -> None:
        pool: Any = session.team.backend
        engine = [engine for base in pool._bases for engine in base.separate_engines][1]
        gone = end(engine) if step == 1 else lambda: nodes.remove(engine.row["node"])
        killed.extend(kill_when_asked.killed)
        kill_when_asked.killed.clear()
        kill_when_asked(engine, "sample", gone)

    assert play(tmp_path / "run", *nodes.flags, *apart, before=arrange) == full
    assert killed + kill_when_asked.killed == ["engine 1 of bob"] * 2


def end(actor: Any) -> Callable[[], None]:
    """Kills the actor that has this place now."""

    def kill() -> None:
        import ray

        ray.kill(actor.handle)

    return kill


def test_a_learner_that_is_killed_while_it_learns_is_replaced_and_nothing_changes(
    nodes: Any, play: Play, kill_when_asked: Any, full: dict[str, bytes], tmp_path: Path
) -> None:
    def arrange(session: Session, step: int) -> None:
        pool: Any = session.team.backend
        if step == 2:
            kill_when_asked(pool._actors[0], "update", end(pool._actors[0]))

    flags = (*nodes.flags, "--cluster.cpus", "0.5", "--cluster.checkpoints", "shared")
    assert play(tmp_path / "run", *flags, before=arrange) == full
    assert kill_when_asked.killed == ["learner of alice"]
    kill_when_asked.killed.clear()
    with pytest.raises(UserError, match=r"learner of alice has died, or its node has.*; --resume"):
        play(tmp_path / "two", *flags, "--cluster.restarts", "0", before=arrange)
    assert play(tmp_path / "two", *nodes.flags) == full


def test_ranks_on_three_nodes_learn_as_one_process_does_though_one_is_killed(
    nodes: Any, play: Play, kill_when_asked: Any, full: dict[str, bytes], nearly: Any,
    tmp_path: Path,
) -> None:  # fmt: skip
    def arrange(session: Session, step: int) -> None:
        pool: Any = session.team.backend
        group = next(base.learner for base in pool._bases if "bob" in base.roles)
        if step == 2:
            second = group.ranks[1]
            kill_when_asked(group, "update", end(second), second.name)

    two = ("--agents.bob.learner-devices", "2", "--cluster.cpus", "0.25")
    nearly(play(tmp_path / "run", *nodes.flags, *two, before=arrange), full)
    assert kill_when_asked.killed == ["learner 2 of bob"]


def test_a_run_on_three_nodes_is_the_run_in_this_process_though_their_store_is_full(
    nodes: Any, play: Play, full: dict[str, bytes], apart: tuple[str, ...], tmp_path: Path
) -> None:
    """What finds no room there goes to disk."""
    kept: list[Any] = []

    def fill(session: Session, step: int) -> None:
        import ray

        pool: Any = session.team.backend
        third = np.zeros(nodes.store // 3, np.uint8)
        kept.extend(pool._cluster.keep(third + i) for i in range(6))
        assert [ray.get(reference)[0] for reference in kept[:6]] == list(range(6))

    assert play(tmp_path / "run", *nodes.flags, *apart, before=fill) == full
    assert len(kept) == 12
    places = json.loads((tmp_path / "run" / "summary.json").read_text())["places"]
    assert len(places) == 4
    assert len({row["node"] for row in places}) == 3


def test_what_a_cluster_cannot_hold_and_errors_in_an_actor_are_one_sentence(
    nodes: Any, play: Play, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"cannot hold this run: 2 processes .* need 16 cores"):
        play(tmp_path / "a", *nodes.flags, "--cluster.cpus", "8")
    with pytest.raises(UserError, match="need 2 cores and 1 GPUs"):
        play(tmp_path / "b", *nodes.flags, "--agents.bob.device", "cuda")
    assert not list(tmp_path.iterdir())

    def fail(session: Session, step: int) -> None:
        pool: Any = session.team.backend
        pool._actors[1].ask("weights", "nobody")

    with pytest.raises(UserError, match="learner of bob failed: KeyError"):
        play(tmp_path / "c", *nodes.flags, "--cluster.cpus", "0.5", before=fail)


def test_deaths_of_every_kind_have_a_reason_and_may_be_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ray
    from ray.exceptions import NodeDiedError, OutOfMemoryError, RayActorError

    killed = "The actor died unexpectedly before finishing this task.\n\tpid: 7\nThe actor is dead "
    killed += "because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit "
    killed += "detail: Worker exits with an exit code 1. There may be more."
    low = "Task was killed due to the node running low on memory."
    for error, why in (
        (RayActorError("7", killed), "Worker exits with an exit code 1"),
        (OutOfMemoryError(f"{low}\nMemory on the node was 29GB"), low[:-1]),
        (NodeDiedError("Its node is unreachable"), "Its node is unreachable"),
    ):
        monkeypatch.setattr(ray, "get", Mock(side_effect=error))
        with pytest.raises(Died) as ended:
            Actor("engine 1 of bob", ["bob"]).result(None)
        assert str(ended.value) == f"engine 1 of bob has died, or its node has ({why})"


def test_a_full_store_on_a_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    def full(value: Any) -> None:
        raise ray.exceptions.OutOfDiskError

    monkeypatch.setattr(ray, "put", full)
    with pytest.raises(UserError, match="the disk it spills to"):
        Cluster.__new__(Cluster).keep(b"")


def test_nobody_at_the_address_is_one_sentence(play: Play, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no cluster can be joined"):
        play(tmp_path / "run", "--cluster.address", "127.0.0.1:9")


def test_ctrl_c_ends_the_step_and_everything_that_was_started(
    interrupted: Any, tmp_path: Path
) -> None:
    interrupted(tmp_path / "run", "--cluster.address", "local", "--cluster.cpus", "0.25")
