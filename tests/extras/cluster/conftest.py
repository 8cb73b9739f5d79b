"""Small runs, and a cluster without Ray whose workers are in this process."""

import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest
import torch
from safetensors.torch import load

from coterie.agents.team.backend import Died
from coterie.cli.arguments import overlay
from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.settings import ClusterSettings
from coterie.training.config.preflight import preflight
from coterie.training.session import open_session


class FakeCluster:
    """Holds everything, in one process."""

    closed = 0

    def __init__(self, settings: ClusterSettings) -> None:
        self.needs: dict[str, Any] = {}

    def has_gpus(self) -> bool:
        return False

    def reserve(self, needs: dict[str, Any]) -> None:
        self.needs = needs

    def place(self, place: int, need: Any) -> dict[str, Any]:
        return {}

    def keep(self, value: Any) -> Any:
        return value

    def meeting(self) -> str:
        return ""

    def close(self) -> None:
        FakeCluster.closed += 1


class FakeActor(Actor):
    """What is begun is done at once, unless the process was killed."""

    made: list["FakeActor"]
    dying: ClassVar[dict[str, str]] = {}
    """By name, the question at which one dies, once."""

    def start(self) -> None:
        self.handle = self.worker(self.name, *self.arguments, **self.more)
        FakeActor.made.append(self)

    def begin(self, verb: str, *arguments: Any) -> Any:
        try:
            if FakeActor.dying.get(self.name) == verb:
                del FakeActor.dying[self.name]
                self.handle = None
            if self.handle is None:
                raise Died(f"{self.name} has died")
            for lost in (argument for argument in arguments if isinstance(argument, UserError)):
                raise UserError(f"the request to {self.name} could not be sent: {lost}")
            return getattr(self.handle, verb)(*pickle.loads(pickle.dumps(arguments)))
        except UserError as error:
            return error

    def result(self, begun: Any) -> Any:
        if isinstance(begun, UserError):
            raise begun
        return begun

    def stop(self) -> None:
        self.handle = None


HANGS = object()
"""The answer of a process that never answers."""


class Party:
    """A process whose answers are known; what it is asked is noted."""

    def __init__(self, name: str, said: list[tuple[Any, ...]], **answers: Any) -> None:
        self.name, self.said, self.answers = name, said, answers
        self.handle = object()
        self.hanging: list[Future[Any]] = []

    def begin(self, verb: str, *arguments: Any) -> Future[Any]:
        self.said.append((self.name, verb, *arguments))
        begun, answer = Future[Any](), self.answers.get(verb)
        if verb == "abandon":
            for future in self.hanging:
                future.set_exception(UserError("NCCL: remote process exited"))
        if answer is HANGS:
            self.hanging.append(begun)
        elif isinstance(answer, Exception):
            begun.set_exception(answer)
        else:
            begun.set_result(next(answer) if isinstance(answer, itertools.cycle) else answer)
        return begun

    def future(self, begun: Future[Any]) -> Future[Any]:
        return begun

    def result(self, begun: Future[Any]) -> Any:
        return begun.result(20)

    def ask(self, verb: str, *arguments: Any) -> Any:
        return self.result(self.begin(verb, *arguments))

    def end(self) -> None:
        """As a process that is killed."""
        for future in self.hanging:
            if not future.done():
                future.set_exception(Died(f"{self.name} has died"))


@pytest.fixture
def fake_cluster(monkeypatch: pytest.MonkeyPatch) -> type[FakeActor]:
    """Has ``--cluster.address`` start workers in this process."""
    FakeActor.made, FakeActor.dying, FakeCluster.closed = [], {}, 0
    monkeypatch.setattr("coterie.extras.cluster.pool.Cluster", FakeCluster)
    monkeypatch.setattr("coterie.extras.cluster.pool.Actor", FakeActor)
    monkeypatch.setattr("coterie.extras.cluster.checks.find_spec", lambda name: object())
    return FakeActor


FLAGS = (
    "--steps", "2", "--rollout.problems-per-step", "4", "--eval.no-enabled", "--threads", "1",
    "--env.max-new-tokens", "64",
)  # fmt: skip
Play = Callable[..., dict[str, bytes]]
ROOT = Path(__file__).resolve().parents[3]


def _play(
    path: Path, *flags: str, steps: int = 2, before: Callable[..., None] | None = None
) -> dict[str, bytes]:
    resume = ("--resume", str(path), "--steps", str(steps))
    new = (*FLAGS, "--run-dir", str(path))
    settings = parse(overlay([*(resume if path.exists() else new), *flags]))
    with open_session(settings, preflight(settings)) as session, session.open_logbook() as logbook:
        for step in session.steps_left():
            if before:
                before(session, step)
            batch = session.sample(step)
            credit = session.credit(batch)
            session.record(step, batch, credit, session.update(batch, credit), logbook)
            session.checkpoint(step)
        session.conclude(None, None)
    files = [path / "episodes.jsonl", *path.glob("final/*/*.safetensors")]
    files += path.glob("checkpoints/step-000002/*/*.safetensors")
    return {f"{file.relative_to(path)}": file.read_bytes() for file in files}


@pytest.fixture
def play() -> Play:
    """The loop of train.py over a small run, from its beginning or its last checkpoint; gives its
    episodes and what was trained."""
    return _play


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Of a run in this process."""
    return _play(tmp_path_factory.mktemp("full") / "here")


def _nearly(files: dict[str, bytes], other_files: dict[str, bytes]) -> None:
    assert files.keys() == other_files.keys()
    (tokens, logprobs), (others, same) = map(_sampled, (files, other_files))
    assert tokens == others
    assert logprobs == pytest.approx(same, abs=1e-4)
    for name in files.keys() - {"episodes.jsonl"}:
        tensors, others = load(files[name]), load(other_files[name])
        assert tensors.keys() == others.keys()
        apart = torch.cat([(tensors[k] - others[k]).abs().flatten() for k in tensors])
        # Adam's first steps go by signs: where a gradient is next to nothing, which is rare,
        # rounding decides about a part of a step, which is 1e-3.
        assert float((apart > 2e-5).float().mean()) < 1e-4, name
        assert float(apart.max()) < (2e-5 if "optimizer" in name else 1e-4), name


def _sampled(run: dict[str, bytes]) -> tuple[list[Any], list[float]]:
    """Tokens and rewards by trace, and all log-probabilities."""
    episodes = map(json.loads, run["episodes.jsonl"].splitlines())
    rows = [row for episode in episodes for row in episode["trajectories"]]
    tokens = [(row["agent"], row["tokens"], row["reward"]) for row in rows]
    return tokens, [value for row in rows for turn in row["logprobs"] for value in turn]


@pytest.fixture
def nearly() -> Callable[..., None]:
    """Runs have the same tokens and files, and log-probabilities, weights and moments to
    rounding."""
    return _nearly


@pytest.fixture
def interrupted() -> Callable[..., None]:
    """Runs ``train.py`` until a step is logged and gives Ctrl-C to all that it started; it has to
    save, say so, and leave nothing running."""

    def run(path: Path, *more: str) -> None:
        long = ("--steps", "400", "--run-dir", str(path))
        process = subprocess.Popen(
            [sys.executable, "train.py", *overlay([*FLAGS, *more, *long])],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        log, until = path / "metrics.jsonl", time.monotonic() + 1200
        while not (log.exists() and log.read_bytes()):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < until
            time.sleep(0.01)
        # To all of them, as a terminal sends it.
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=1200)
        assert process.returncode == 130, out
        assert "Saved. Continue with" in out
        assert "Traceback" not in out
        until = time.monotonic() + 1200
        while _alive(process.pid):
            assert time.monotonic() < until, "something that the run started is still there"
            time.sleep(0.1)

    return run


def _alive(group: int) -> list[int]:
    """Processes of a group that still run; one that has ended and that nobody has waited for, as
    a slow init leaves it, does not."""
    running = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process.pid)
    return running


class KillWhenAsked:
    """Kills once, as soon as an actor has been asked for ``verb``."""

    def __init__(self) -> None:
        self.killed: list[str] = []

    def __call__(
        self, actor: Any, verb: str, kill: Callable[[], None], name: str | None = None
    ) -> None:
        begin = actor.begin

        def begun(asked: str, *arguments: Any) -> Any:
            call = begin(asked, *arguments)
            if asked == verb and not self.killed:
                kill()
                self.killed.append(name or actor.name)
            return call

        actor.begin = begun


@pytest.fixture
def kill_when_asked() -> KillWhenAsked:
    return KillWhenAsked()


class Nodes:
    """A head and three nodes with as little shared memory as Ray allows; what is removed is added
    again for the next test."""

    store = 80 << 20
    """Bytes."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        # By default Ray's workers run at low priority, and Ray refuses to spill to a disk that is
        # 95 % full.
        os.environ.update(RAY_worker_niceness="0", RAY_local_fs_capacity_threshold="1")
        # Nothing is placed on the head, which cannot be removed.
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": self.store}
        self.ray = Cluster(initialize_head=True, head_node_args=head)
        self.more: list[Any] = []
        self.fill()
        self.flags = ("--cluster.address", self.ray.address)

    def remove(self, node: str) -> None:
        """The node whose number begins so."""
        gone = next(running for running in self.more if running.node_id.startswith(node))
        self.more.remove(gone)
        self.ray.remove_node(gone, allow_graceful=False)

    def fill(self) -> None:
        """Three nodes again."""
        while len(self.more) < 3:
            # Ray gives a node 30 s to start, which a busy machine may not do.
            with suppress(Exception):
                self.more.append(self.ray.add_node(num_cpus=1, object_store_memory=self.store))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    nodes = Nodes()
    yield nodes
    nodes.ray.shutdown()


@pytest.fixture
def nodes(cluster: Nodes) -> Nodes:
    cluster.fill()
    return cluster


@pytest.fixture
def apart() -> tuple[str, ...]:
    """Engines apart from their learners."""
    replicas = [f"--agents.{role}.engine-replicas" for role in ("alice", "bob")]
    return ("--cluster.cpus", "0.25", replicas[0], "1", replicas[1], "1")
