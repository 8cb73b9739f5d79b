"""Freed memory goes back to the system where there is much of it."""

import subprocess
import sys

import pytest

PROGRAM = """
import torch
from coterie.agents.models.heap import keep_freed_memory, return_freed_memory

def resident():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) >> 10

keep_freed_memory()
# Every second tensor stays, so that the freed ones are holes in the heap.
tensors = [torch.ones(1 << 20) for _ in range({count})]
kept, tensors = tensors[::2], None
before = resident()
return_freed_memory()
print(before - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
@pytest.mark.parametrize(("count", "least", "most"), [(256, 400, 520), (64, 0, 1)])
def test_much_is_returned_and_little_is_kept(count: int, least: int, most: int) -> None:
    """MiB: tensors of 4, of which half are freed."""
    program = PROGRAM.format(count=count)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert least <= int(done.stdout) <= most
