"""Worker processes: killed at the deadline, replaced, and gone when they are not needed."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from coterie.datatypes import UserError
from coterie.rewards.grading.answers.equality import Pair
from coterie.rewards.grading.answers.grammar import read
from coterie.rewards.grading.answers.pool import WorkerPool


def pair(gold: str, answer: str) -> Pair:
    left, right = read(gold), read(answer)
    assert left is not None
    assert right is not None
    return left, right


# To turn this by whole turns takes a third of a billion digits of pi.
MONSTER = pair("1+x", r"\cos((10^{9999}+x)^{9999})")
ONE, SAME = pair("1", "1"), pair("x+1", "1+x")


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(1, deadline_s=2.0)
    yield pool
    pool.close()


def pids(pool: WorkerPool) -> list[int]:
    return [worker.process.pid for worker in pool._workers]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_outcomes_come_in_order(pool: WorkerPool) -> None:
    pairs = [SAME, pair("x+1", "x+2"), pair("1", "2"), pair("1", "2/0"), ONE]
    assert pool.run(pairs) == ["equal", "different", "different", "different", "equal"]
    assert pool.run([]) == []


def test_a_hanging_worker_is_killed_at_the_deadline(pool: WorkerPool) -> None:
    pool.run([ONE])
    (before,) = pids(pool)
    timeouts = pool.timeouts
    start = time.monotonic()
    assert pool.run([MONSTER]) == ["timeout"]
    assert 2.0 <= time.monotonic() - start < 6.0
    assert gone(before)
    assert pool.timeouts == timeouts + 1
    assert pool.run([SAME]) == ["equal"]


def test_a_worker_that_died_while_idle_is_replaced(pool: WorkerPool) -> None:
    pool.run([ONE])
    (before,) = pids(pool)
    os.kill(before, signal.SIGKILL)
    pool._workers[0].process.wait()
    assert pool.run([pair("x", "x")]) == ["equal"]
    assert pids(pool) != [before]


def test_it_runs_in_a_thread_and_in_an_event_loop(pool: WorkerPool) -> None:
    outcomes: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(list(pool.run([SAME])))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [["equal"]] * 4

    async def inside() -> list[str]:
        return list(pool.run([SAME]))

    assert asyncio.run(inside()) == ["equal"]


def test_an_interrupted_batch_leaves_no_stale_reply(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.run([ONE])
    (before,) = pids(pool)
    with monkeypatch.context() as patch:
        patch.setattr(pool._workers[0], "receive", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            pool.run([pair("x", "x")])
    assert pool.alive == 0
    assert gone(before)
    assert pool.run([pair("1", "2"), ONE]) == ["different", "equal"]


def test_two_workers_share_a_large_batch() -> None:
    pool = WorkerPool(2, deadline_s=20.0)
    assert pool.alive == 0
    pairs = [pair(f"x+{i}", f"{i % 3}+x") for i in range(24)]
    assert pool.run(pairs) == ["equal" if i < 3 else "different" for i in range(24)]
    assert pool.alive == 2
    started = pids(pool)
    pool.close()
    assert pool.alive == 0
    assert all(map(gone, started))


_SCRIPT = """
import warnings, sys
from coterie.rewards.grading.answers.grammar import read
from coterie.rewards.grading.answers.pool import WorkerPool
pool = WorkerPool(1)
assert pool.run([(read("x+1"), read("1+x"))]) == ["equal"]
print(pool._workers[0].process.pid)
"""


def test_workers_end_with_the_interpreter_and_nothing_complains() -> None:
    # Code from standard input: a worker must not import the caller's main module.
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error"],
        input=_SCRIPT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert gone(int(done.stdout))


def test_a_forked_child_starts_its_own_workers(pool: WorkerPool) -> None:
    pool.run([ONE])
    before = pids(pool)
    child = os.fork()
    if child == 0:
        # Pytest must not come to life a second time in here.
        ok = pool.run([SAME]) == ["equal"] and pids(pool) != before
        pool.close()
        os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert pids(pool) == before
    assert pool.run([SAME]) == ["equal"]


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(UserError, match="at least 1 worker"):
        WorkerPool(0)
    with pytest.raises(UserError, match="deadline"):
        WorkerPool(1, 0.0)
