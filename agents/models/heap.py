"""What the C library does with freed memory: it keeps it for the next tensor, within a phase."""

import ctypes
import sys
from functools import lru_cache
from typing import Any

_MALLOC_OPTIONS = {-4: 0, -1: -1, -8: 1}
"""glibc's M_MMAP_MAX, M_TRIM_THRESHOLD and M_ARENA_MAX, so that freed memory is kept for the next
tensor. Otherwise the system provides each large tensor page by page: with two models of 135 and 270
million weights that took half of a warm-up step (82 of 160 seconds; 29 of 113 with these options).
Two steps of their training take 175 seconds instead of 268, and 15.7 GB instead of 13.8."""

_WORTH_IT = 1 << 28
"""Bytes. Returning less would cost the steps of small models more than it saves."""


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def keep_freed_memory() -> None:
    """Keep freed memory from now on, if the C library can (:data:`_MALLOC_OPTIONS`)."""
    if hasattr(libc := _libc(), "mallopt"):
        for option, value in _MALLOC_OPTIONS.items():
            libc.mallopt(option, value)


def return_freed_memory() -> None:
    """Return freed memory to the system if there is much of it. Call it between sampling and
    learning, and between blocks whose activations are recomputed.

    They use tensors of different sizes, so the fragments that one leaves do not fit the other.
    Without this call the process grows with every step, and with every block.
    """
    libc = _libc()
    # musl has neither, glibc before 2.33 has no mallinfo2.
    if not (hasattr(libc, "mallinfo2") and hasattr(libc, "malloc_trim")):
        return
    libc.mallinfo2.restype = _Mallinfo2
    if libc.mallinfo2().fordblks > _WORTH_IT:
        libc.malloc_trim(0)


@lru_cache(maxsize=1)
def _libc() -> Any:
    return ctypes.CDLL(None) if sys.platform == "linux" else None
