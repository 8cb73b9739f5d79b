"""Peak memory of a block of code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gpu.peak import most_taken

ROOT = Path(__file__).parents[2]


def test_what_a_block_of_code_takes_is_measured() -> None:
    with most_taken(torch.device("cpu")) as taken:
        torch.ones(64 << 20)
    # 64 Mi numbers of 4 bytes.
    assert taken == [pytest.approx(256 << 20, rel=0.1)]


@pytest.mark.slow
def test_memory_that_was_kept_counts_as_taken() -> None:
    code = """import torch; from coterie.cli.commands import run_command
from gpu.peak import most_taken
def command():
    for _ in range(8): torch.ones(64 << 20)
    with most_taken(torch.device("cpu")) as taken: torch.ones(64 << 20)
    print(*taken); return 0
run_command(command, program="p", interrupted="")"""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tools")])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(ran.stdout) == pytest.approx(256 << 20, rel=0.1)
