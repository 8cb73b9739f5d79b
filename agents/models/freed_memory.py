"""Memory that the C library has freed and keeps for the next tensor."""

import ctypes
import sys
from functools import lru_cache
from typing import Any

_WORTH_IT = 1 << 28
"""Bytes. To return less costs a small model's step more than it gives."""


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def return_freed_memory() -> None:
    """Return freed memory to the system, if there is much of it.

    A run keeps it (:data:`coterie.cli.commands._MALLOC_OPTIONS`), so that the tensors of a phase
    are not provided page by page. Sampling and learning need tensors of other sizes, though, and
    what one leaves in pieces does not serve the other: without this call both add up, and grow.
    """
    if (libc := _glibc()) is not None and libc.mallinfo2().fordblks > _WORTH_IT:
        libc.malloc_trim(0)


@lru_cache(maxsize=1)
def _glibc() -> Any:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not hasattr(libc, "mallinfo2") or not hasattr(libc, "malloc_trim"):
        return None  # musl, macOS, or glibc before 2.33
    libc.mallinfo2.restype = _Mallinfo2  # type: ignore[union-attr]
    return libc
