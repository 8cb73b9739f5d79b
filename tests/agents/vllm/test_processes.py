"""What engines' processes inherit, and where weights wait for them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from coterie.agents.vllm.processes import engine_environment, memory_folder, own_gpus
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import UserError


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    with mock.patch.dict(os.environ):
        yield


@pytest.mark.parametrize(
    ("cores", "engines", "given", "on_gpu", "threads"),
    [
        # Engines share the cores, less one for this process.
        *((1, 1, None, False, "1"), (2, 2, None, False, "1"), (16, 2, None, False, "7")),
        # What the user has set stays; an engine on a GPU is left alone.
        *((16, 2, "3", False, "3"), (16, 2, None, True, None)),
    ],
)
def test_threads_of_engines_on_a_cpu(
    monkeypatch: pytest.MonkeyPatch, cores, engines, given, on_gpu, threads
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    with engine_environment(VllmSettings(), engines=engines, on_gpu=on_gpu, transfer=False):
        assert os.environ.get("OMP_NUM_THREADS") == threads
    # This process is as before.
    assert os.environ.get("OMP_NUM_THREADS") == given


_SPAWNS = """
import multiprocessing, signal
from coterie.agents.vllm.processes import no_interrupts

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


def test_no_engine_sees_an_interrupt(python, tmp_path: Path) -> None:
    """Starting the first of all processes unblocks signals on its own account."""
    script = tmp_path / "spawns.py"
    script.write_text(_SPAWNS, encoding="utf-8")
    root = str(Path(__file__).parents[3])
    assert python(script, PYTHONPATH=root).stdout.split() == ["True", "True", "False"]


@pytest.mark.parametrize(
    ("seen", "device", "count", "given"),
    [
        *(("", "cuda:1", 1, "1"), ("2,5", "cuda:1", 1, "5"), ("2", "cuda", 1, "2")),
        *(("", "cuda:1", 2, "1,2"), ("2,5,6", "cuda:1", 2, "5,6"), ("2", "cpu", 1, "2")),
    ],
)
def test_an_engine_sees_its_gpus_under_their_names_here(
    monkeypatch: pytest.MonkeyPatch, seen: str, device: str, count: int, given: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    with own_gpus(device, count):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == given
    assert os.environ["CUDA_VISIBLE_DEVICES"] == seen


def test_a_hidden_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
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
        "coterie.agents.vllm.processes.Path",
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
