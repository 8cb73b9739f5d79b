"""Ranks in processes of this machine, without Ray: whole runs, and what ends when one is killed."""

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load

from coterie.agents.team.backend import Died
from coterie.datatypes import UserError
from coterie.extras.cluster import processes
from coterie.extras.cluster.group import Group
from coterie.extras.cluster.processes import Machine, Process, _Running
from coterie.training.session import Session
from tests.extras.cluster.conftest import HANGS, Party

Play = Callable[..., dict[str, bytes]]
TWO = ("--agents.bob.learner-devices", "2", "--cluster.cpus", "0.25")
ONE = ("--agents.bob.learner-devices", "1", "--cluster.cpus", "0.25")


def test_the_first_ranks_answer_counts_and_who_has_died_is_named_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask(*outcomes: Any) -> Any:
        ranks: Any = [
            Party(f"learner {i + 1}", [], update=outcome) for i, outcome in enumerate(outcomes)
        ]
        return Group("learner", [], ranks=ranks).ask("update")

    lost, gone = UserError("learner 1 failed: connection closed"), Died("learner 2 has died")
    assert ask("mine", "yours") == "mine"
    with pytest.raises(Died, match="learner 2"):
        ask(lost, gone)
    with pytest.raises(UserError, match="learner 1 failed"):
        ask(lost, "done")
    # The first would wait for the second for ever.
    monkeypatch.setattr("coterie.extras.cluster.group.NOTICED_S", 0.01)
    with pytest.raises(Died, match="learner 2"):
        ask(HANGS, gone)


@pytest.mark.parametrize(
    ("end", "why"), [("os._exit(3)", "exit code 3"), ("os.kill(os.getpid(), 9)", "signal 9")]
)
def test_how_a_process_ended_is_told(end: str, why: str) -> None:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=exec, args=(f"import os; {end}",))
    process.start()
    process.join()
    running = _Running(process, context.Pipe()[0], ThreadPoolExecutor(1))
    running.pending[1] = answer = Future[Any]()
    Process("learner of bob", ["bob"])._end(running)
    with pytest.raises(Died, match=rf"learner of bob has died, or its node has \({why}\)"):
        answer.result(0)


class Odd:
    """A worker whose values cannot cross."""

    def __reduce__(self) -> Any:
        return int, ("x",)

    def itself(self) -> Any:
        return self

    def lock(self) -> Any:
        return threading.Lock()

    def echo(self, value: Any) -> Any:
        return value


def test_a_call_whose_values_cannot_cross_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_ENDS_S", 0.0)
    ours, theirs = multiprocessing.Pipe()
    alive, _ = multiprocessing.Pipe()
    process: Any = SimpleNamespace(sentinel=alive, exitcode=None)
    actor = Process("odd", ["bob"], handle=_Running(process, ours, ThreadPoolExecutor(1)))
    serve = asyncio.run, (processes._answer(theirs, Odd(), "odd"),)  # type: ignore[arg-type]
    with ours:
        for target, arguments in (serve, (actor._listen, (actor.handle,))):
            threading.Thread(target=target, args=arguments, daemon=True).start()
        with pytest.raises(UserError, match="odd failed: TypeError: cannot pickle"):
            actor.begin("lock").result(20)
        with pytest.raises(UserError, match="to odd could not be sent: TypeError: cannot pickle"):
            actor.begin("echo", threading.Lock()).result(20)
        assert actor.begin("echo", 5).result(20) == 5
        with pytest.raises(Died, match="an answer cannot be read, ValueError"):
            actor.begin("itself").result(20)
        with pytest.raises(Died):
            actor.begin("echo", 5).result(20)


@pytest.mark.parametrize(("kind", "most"), [("CPU", os.cpu_count()), ("GPU", 1)])
def test_more_ranks_than_this_machine_has_are_refused(
    monkeypatch: pytest.MonkeyPatch, kind: str, most: int
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    machine, need = Machine(), {"CPU": 0.0, kind: 1.0}
    machine.reserve({f"learner {i + 1} of bob": need for i in range(most)})
    said = rf"this run: {most + 1} processes \({most + 1} x learner of bob\) need .*learner-devices"
    with pytest.raises(UserError, match=f"this machine cannot hold {said}"):
        machine.reserve({f"learner {i + 1} of bob": need for i in range(most + 1)})
    machine.close()


@pytest.mark.slow
def test_a_rank_that_is_killed_ends_the_run_and_one_process_goes_on_with_it(
    play: Play, kill_when_asked: Any, full: dict[str, bytes], nearly: Any, tmp_path: Path
) -> None:
    """Replacing a rank is tested in test_ray.py."""
    started: list[Any] = []
    killed: list[float] = []

    def arrange(session: Session, step: int) -> None:
        pool: Any = session.team.backend
        group = next(base.learner for base in pool._bases if "bob" in base.roles)
        assert [actor.name for actor in group.ranks] == ["learner 1 of bob", "learner 2 of bob"]

        def kill() -> None:
            ranks = [rank for actor in pool._actors for rank in actor.processes]
            started.extend(rank.handle.process for rank in ranks)
            group.ranks[1].handle.process.kill()
            killed.append(time.monotonic())

        if step == 2:
            kill_when_asked(group, "update", kill)

    with pytest.raises(UserError, match=r"learner 2 of bob has died.*--resume"):
        play(tmp_path / "run", *TWO, "--cluster.restarts", "0", before=arrange)
    # Not the ten minutes for which a rank waits for the others.
    assert time.monotonic() - killed[0] < 500
    nearly(play(tmp_path / "run", *ONE), full)
    assert len(started) == 4
    assert not any(process.is_alive() for process in started)


@pytest.mark.slow
def test_engines_of_this_machine_answer_apart_from_their_learner(
    play: Play, full: dict[str, bytes], apart: tuple[str, ...], tmp_path: Path
) -> None:
    """Without Ray."""
    killed: list[str] = []

    def kill(session: Session, step: int) -> None:
        pool: Any = session.team.backend
        if step == 2:
            (engine,) = pool._bases[1].separate_engines
            engine.handle.process.kill()
            killed.append(engine.name)

    assert play(tmp_path / "run", *apart, before=kill) == full
    assert killed == ["engine 1 of bob"]


@pytest.mark.slow
def test_ctrl_c_ends_the_step_and_all_ranks(interrupted: Any, tmp_path: Path) -> None:
    interrupted(tmp_path / "run", *TWO)


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 3, reason="not run: needs three GPUs")
def test_two_gpus_learn_as_this_process_does_on_a_cpu(play: Play, tmp_path: Path) -> None:
    there = ("--agents.alice.device", "cpu", "--agents.bob.dtype", "float32")
    play(tmp_path / "two", *there, *TWO, "--agents.bob.device", "cuda")
    play(tmp_path / "one", *there, "--agents.bob.device", "cpu")
    two, single = (
        load((tmp_path / n / "final/bob/model.safetensors").read_bytes()) for n in ("two", "one")
    )
    assert all(float((two[name] - single[name]).abs().max()) < 1e-3 for name in single)
