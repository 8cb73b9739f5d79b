"""What engines' processes inherit, and where weights wait for them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from coterie.agents.engine.processes import engine_environment, memory_folder, own_gpus
from coterie.agents.engine.settings import VllmSettings
from coterie.datatypes import UserError


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    with mock.patch.dict(os.environ):
        yield


def _threads(monkeypatch: pytest.MonkeyPatch, cores: int, engines: int, **given: str) -> str | None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with engine_environment(VllmSettings(), engines=engines, on_gpu=False, transfer=False):
        return os.environ.get("OMP_NUM_THREADS")


@pytest.mark.parametrize(
    ("cores", "engines", "threads"),
    [(1, 1, "1"), (2, 1, "1"), (2, 2, "1"), (9, 2, "4"), (16, 2, "7"), (16, 1, "15")],
)
def test_engines_share_the_cores_less_one_for_this_process(
    monkeypatch: pytest.MonkeyPatch, cores: int, engines: int, threads: str
) -> None:
    assert _threads(monkeypatch, cores, engines) == threads


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _threads(monkeypatch, 16, 2, OMP_NUM_THREADS="3") == "3"


def test_this_process_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    _threads(monkeypatch, 16, 2)
    assert "OMP_NUM_THREADS" not in os.environ


def test_a_gpu_engine_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with engine_environment(VllmSettings(), engines=2, on_gpu=True, transfer=False):
        assert "OMP_NUM_THREADS" not in os.environ


_SPAWNS = """
import multiprocessing, signal
from coterie.agents.engine.processes import no_interrupts

def show():
    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)

if __name__ == "__main__":
    for _ in range(2):
        with no_interrupts():
            child = multiprocessing.get_context("spawn").Process(target=show)
            child.start()
        child.join()
    show()
"""


def test_no_engine_sees_an_interrupt(tmp_path: Path) -> None:
    """Starting the first of all processes unblocks signals on its own account."""
    script = tmp_path / "spawns.py"
    script.write_text(_SPAWNS, encoding="utf-8")
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
        check=True,
    )
    assert done.stdout.split() == ["True", "True", "False"]


@pytest.mark.parametrize(
    ("seen", "device", "given"),
    [("", "cuda:1", "1"), ("2,5", "cuda:1", "5"), ("2", "cuda", "2"), ("2", "cpu", "2")],
)
def test_an_engine_sees_the_gpu_that_this_process_calls_so(
    monkeypatch: pytest.MonkeyPatch, seen: str, device: str, given: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    with own_gpus(device):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == given
    assert os.environ["CUDA_VISIBLE_DEVICES"] == seen


@pytest.mark.parametrize(("seen", "given"), [("", "1,2"), ("2,5,6", "5,6")])
def test_an_engine_that_spans_gpus_sees_those_from_its_first_on(
    monkeypatch: pytest.MonkeyPatch, seen: str, given: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    with own_gpus("cuda:1", 2):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == given


def test_a_gpu_of_somebody_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    with pytest.raises(UserError, match="cuda:1: CUDA_VISIBLE_DEVICES=2"), own_gpus("cuda:1"):
        pass


@pytest.mark.parametrize(("free", "roomy"), [(2000, True), (500, False)])
def test_a_small_memory_file_system_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, roomy: bool
) -> None:
    """Containers often have 64 MiB of it."""
    memory, disk = tmp_path / "shm", tmp_path / "tmp"
    memory.mkdir()
    disk.mkdir()
    really = Path
    monkeypatch.setattr(
        "coterie.agents.engine.processes.Path",
        lambda p: memory if p == "/dev/shm" else really(p),
    )
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    monkeypatch.setattr(
        shutil, "disk_usage", lambda p: SimpleNamespace(free=free if p == memory else 10**9)
    )
    abandoned = disk / "coterie-999999999-x"
    abandoned.mkdir()
    assert memory_folder(1000).parent == (memory if roomy else disk)
    assert not abandoned.exists()
