"""The number of torch's threads: the user's choice, or as many as other programs leave free."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch

_STAT = Path("/proc/stat")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_fixed = False


def fix_threads(count: int) -> None:
    """Compute with ``count`` threads from now on; 0 changes nothing."""
    global _fixed
    if count:
        _fixed = True
        torch.set_num_threads(count)


@dataclass(frozen=True)
class ProcessorLoad:
    """Processor times up to a moment, in seconds."""

    clock: float
    idle: float
    """Summed over the processors that this process may use; nan if the system does not say."""
    own: float
    """Processor time of this process and of its ended children."""

    @staticmethod
    def now() -> "ProcessorLoad":
        """Return the times up to now."""
        return ProcessorLoad(time.perf_counter(), _idle_s(_usable()), sum(os.times()[:4]))


def use_free_threads(since: ProcessorLoad) -> int:
    """Set torch's threads to the number of processors that other programs have left free since
    then, at least one, and return it. A number set by :func:`fix_threads` or OMP_NUM_THREADS
    stays."""
    count = torch.get_num_threads()
    if not _fixed and "OMP_NUM_THREADS" not in os.environ:
        count = min(count, free_threads(since, ProcessorLoad.now(), len(_usable()), _quota()))
        torch.set_num_threads(count)
    return count


def free_threads(since: ProcessorLoad, now: ProcessorLoad, processors: int, quota: float) -> int:
    """Return the number of processors that other programs left free between two moments, at least
    one.

    Args:
        since: the first moment.
        now: the second moment.
        processors: processors that this process may use.
        quota: processors that the control group grants.
    """
    passed = now.clock - since.clock
    free = (now.idle - since.idle + now.own - since.own) / passed if passed > 0 else processors
    # free can be nan, which compares false.
    most = processors if not free < processors else round(free)
    return max(1, min(most, int(quota) if quota < processors else processors))


def _usable() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _idle_s(processors: set[int]) -> float:
    """Seconds idle or waiting for a disk: columns 4 and 5 of each processor (proc_stat(5))."""
    try:
        lines = [line.split() for line in _STAT.read_text().splitlines()]
    except OSError:
        return float("nan")
    names = {f"cpu{number}" for number in processors}
    ticks = sum(int(x) for name, *columns in lines if name in names for x in columns[3:5])
    return ticks / os.sysconf("SC_CLK_TCK")


def _quota() -> float:
    """Processors that the control group grants; infinite without a limit."""
    try:
        granted, period = _QUOTA.read_text().split()
    except (OSError, ValueError):
        return float("inf")
    return float("inf") if granted == "max" else int(granted) / int(period)
