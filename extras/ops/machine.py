"""Memory of this machine's devices."""

import os
import subprocess
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def meminfo(line: str) -> int | None:
    """``MemTotal`` or another line of ``/proc/meminfo``, in bytes; None if it is missing."""
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:  # no Linux
        return None
    values = [words[1] for words in map(str.split, lines) if words[0] == f"{line}:"]
    return int(values[0]) * 1024 if values else None


def card_bytes(device: str) -> int | None:
    """Total memory of a local device in bytes; None if unknown. For a GPU this calls nvidia-smi:
    torch would allocate memory on it, and processes could no longer fork."""
    if device == "cpu":
        return meminfo("MemTotal")
    number = int(device.partition(":")[2] or 0) if device.startswith("cuda:") else 0
    visible = [x for x in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if x]
    named = visible[number] if number < len(visible) else str(number)
    try:
        output = subprocess.run(
            ["nvidia-smi", f"--id={named}", "--query-gpu=memory.total", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
        )
        return int(output.stdout.split()[0]) << 20
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
