"""Peak memory of a block of code, on a GPU or in this process."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch


@contextmanager
def most_taken(device: torch.device) -> Iterator[list[int]]:
    """Yield a list. On exit it gets the peak bytes allocated inside, beyond those before; it stays
    empty if they are unknown."""
    peak: list[int] = []
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        yield peak
        peak.append(torch.cuda.max_memory_allocated(device) - before)
        return
    status = Path("/proc/self/status")
    _give_back()
    try:
        # Reset the process's high-water mark to its current memory (proc(5)).
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        start = _high_water(status)
    except OSError:
        start = None
    yield peak
    if start is not None and (end := _high_water(status)) is not None:
        peak.append(end - start)


def _give_back() -> None:
    """Return freed memory, which commands keep, to the system; glibc's malloc_trim(3)."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None:
        trim(0)


def _high_water(status: Path) -> int | None:
    marks = [x for x in status.read_text(encoding="ascii").splitlines() if x.startswith("VmHWM:")]
    return int(marks[0].split()[1]) * 1024 if marks else None
