"""Processes of engines: their environment, their end, and the folder for their weights."""

import itertools
import os
import re
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path

from coterie.agents.models.instructions import use_fastest
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import UserError

# Only for engines' processes, which are spawned while these are set.
_QUIET = {"PYTHONWARNINGS": "ignore", "TORCH_CPP_LOG_LEVEL": "ERROR"}
# On a CPU, compilation takes longer than it saves.
_ON_CPU = {"TORCH_COMPILE_DISABLE": "1"}


@contextmanager
def engine_environment(
    settings: VllmSettings, *, engines: int = 1, on_gpu: bool, transfer: bool
) -> Iterator[None]:
    """Set environment variables for the start of engines inside the block; those that the user has
    set stay.

    Args:
        settings: settings of the engines.
        engines: number of engines that share the cores.
        on_gpu: whether an engine runs on a GPU.
        transfer: whether weights are sent as handles to GPU memory.
    """
    use_fastest()
    # These stay set: vLLM reads them in this process, too, at any later time.
    lasting = {
        "VLLM_LOGGING_LEVEL": settings.log,
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_CPU_KVCACHE_SPACE": str(settings.cpu_cache_gb),
        # Several engines and a learner share the cores.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }
    if transfer:
        # Handles to GPU memory are pickled, between this process and its children only.
        lasting["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
    for name, value in lasting.items():
        os.environ.setdefault(name, value)
    for_cpu = {} if on_gpu else _ON_CPU | {"OMP_NUM_THREADS": str(_threads(engines))}
    with _set(_QUIET | for_cpu), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _threads(engines: int) -> int:
    """Threads of each engine on a CPU. They spin while they wait, so more threads than cores stall.
    One core is left for this process, which plays the episodes."""
    # macOS has no affinity.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, ((cores or 1) - 1) // engines)


@contextmanager
def own_gpus(device: str, count: int = 1) -> Iterator[None]:
    """Show processes started inside the block only ``count`` GPUs, from this process's ``cuda:N``
    on. Nothing changes for ``cpu``.

    Raises:
        UserError: this process does not see that many GPUs.
    """
    kind, _, number = device.partition(":")
    if kind != "cuda":
        yield
        return
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names, first = seen.split(",") if seen else [], int(number or 0)
    if names and first + count > len(names):
        raise UserError(f"{device}: CUDA_VISIBLE_DEVICES={seen} leaves {len(names)} of the GPUs")
    mine = names[first : first + count] or [str(first + i) for i in range(count)]
    with _set({"CUDA_VISIBLE_DEVICES": ",".join(mine)}, True):
        yield


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Block Ctrl-C for processes started inside the block, so that a run can finish its step; a
    terminal sends it to all processes."""
    # Its start, together with the first process, would unblock the signal.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _set(values: Mapping[str, str], over: bool = False) -> Iterator[None]:
    new = {name: value for name, value in values.items() if over or name not in os.environ}
    before = {name: os.environ.get(name) for name in new}
    os.environ.update(new)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def end_with_parent(every_s: float = 1.0) -> None:
    """End this process soon after its parent has ended; checks every ``every_s`` seconds."""
    # Linux's signal at a parent's death comes when the starting thread ends, which is too early.
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every_s)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


_NAME = re.compile(r"coterie-(\d+)-.*")


def memory_folder(size: int = 0) -> Path:
    """Create a folder for this process, in a memory file system if it has room for ``size`` bytes,
    else on disk. Folders of killed processes are removed before."""
    shared, disk = Path("/dev/shm"), Path(tempfile.gettempdir())
    usable = shared.is_dir() and os.access(shared, os.W_OK)
    roots = [shared, disk] if usable else [disk]
    for old in itertools.chain.from_iterable(root.glob("coterie-*") for root in roots):
        owner = _NAME.fullmatch(old.name)
        if owner and not _alive(int(owner[1])):
            shutil.rmtree(old, ignore_errors=True)
    # Containers often limit /dev/shm to 64 MiB.
    roomy = [root for root in roots if shutil.disk_usage(root).free > size]
    root = roomy[0] if roomy else disk
    return Path(tempfile.mkdtemp(prefix=f"coterie-{os.getpid()}-", dir=root))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


if __name__ == "__mp_main__":  # in processes that an actor's engine starts
    end_with_parent()
