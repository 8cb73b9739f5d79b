"""Check that a training step fits into memory."""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from coterie.agents.models.family import cache_width
from coterie.agents.sampling.policy import LocalPolicy
from coterie.agents.team.team import Team
from coterie.agents.team.trained_role import TrainedRole
from coterie.extras.ops.doctor.finding import Finding, judge
from coterie.extras.ops.footprint import Footprint

_GIB = 2**30
# Limit for the cache of a batch; see coterie.agents.sampling.batches.
_CPU_CACHE_BYTES = 2 << 30
_TELLING = 256 << 20
"""Probes below this many bytes drown in the other allocations of a process."""


def optimiser_bytes(trainable_bytes: int, moments: str = "float32") -> dict[str, int]:
    """Bytes that training adds to float32 weights; paged moments need not be on the device."""
    share = {"float32": 2.0, "8bit": 0.5}.get(moments, 0.0)
    return {"gradients": trainable_bytes, "moments": int(share * trainable_bytes)}


def cache_bytes(config: Any, rows: int, longest: int, itemsize: int) -> int:
    """Bytes of the key-value cache of rows that are sampled together.

    Args:
        config: the model's configuration.
        rows: rows that are sampled together.
        longest: tokens of each.
        itemsize: bytes of a number.
    """
    return rows * longest * config.num_hidden_layers * cache_width(config) * itemsize


def free_bytes(device: torch.device) -> int | None:
    """Free memory in bytes; None if unknown."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        import psutil  # pyright: ignore[reportMissingModuleSource]

        return int(psutil.virtual_memory().available)
    except ImportError:
        return available(Path("/proc/meminfo"))


def available(meminfo: Path, what: str = "MemAvailable") -> int | None:
    """The line ``what`` of ``meminfo`` in bytes, by default available memory; None if missing."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    values = [line.split()[1] for line in lines if line.startswith(f"{what}:")]
    return int(values[0]) * 1024 if values else None


def card_bytes(device: str) -> int | None:
    """Total memory of a local device in bytes; None if unknown. For a GPU this calls nvidia-smi:
    torch would allocate memory on it, and processes could no longer fork."""
    if device == "cpu":
        return available(Path("/proc/meminfo"), "MemTotal")
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


def free_by_device(team: Team) -> dict[str, int | None]:
    """Free bytes of each device with models, after models and engines are loaded."""
    return {
        str(device): free_bytes(device)
        for device in {loaded.handle.device for loaded in team.loaded.values()}
        if device.type != "meta"
    }


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


def corrected(planned: int, probe: Footprint, took: int | None) -> int:
    """Scale an update's planned bytes by the ratio of measured to planned bytes of a probe.

    Args:
        planned: plan for the longest rows.
        probe: plan for the probe's rows, which also allocated gradients and moments.
        took: measured bytes of the probe beside the loaded model.
    """
    resident = probe.gradients + probe.moments
    if took is None or resident + probe.update < _TELLING:
        return planned
    return int(planned * min(max((took - resident) / probe.update, 0.5), 2.0))


def needs(
    team: Team, *, updates: Mapping[str, int], rows: Mapping[str, tuple[int, int]]
) -> dict[str, dict[str, int]]:
    """Device -> purpose -> bytes that a training step takes beside the loaded models.

    Args:
        team: the loaded team.
        updates: trained role -> bytes of a micro-batch.
        rows: role -> (rows per step, tokens of the longest row).
    """
    total: dict[str, dict[str, int]] = {}
    for role, loaded in team.loaded.items():
        handle = loaded.handle
        if handle.device.type == "meta":
            continue
        config, size, amounts = handle.causal_lm.config.get_text_config(), handle.dtype.itemsize, {}
        if isinstance(learns := team.trained.get(role), TrainedRole):
            trainable = sum(p.numel() * p.element_size() for p in handle.parameters().values())
            moments = learns.learner.settings.moments
            amounts = optimiser_bytes(trainable, moments)
            # Learners run one after another, and so do samplers in this process.
            amounts["a micro-batch"] = updates[role]
        policy = team.policies[role]
        if isinstance(policy, LocalPolicy):
            amounts["sampler's copy"] = policy.sampler.copy_bytes
            cache = cache_bytes(config, *rows.get(role, (0, 0)), size)
            limit = _CPU_CACHE_BYTES if handle.device.type == "cpu" else cache
            amounts["sampler's cache"] = min(cache, limit)
        place = total.setdefault(str(handle.device), {})
        for name, size in amounts.items():
            shared = name in ("a micro-batch", "sampler's cache")
            place[name] = max(place.get(name, 0), size) if shared else place.get(name, 0) + size
    return total


def engine_needs(devices: Sequence[str], cpu_cache_gb: int) -> int:
    """Cache bytes that CPU engines will still allocate; GPU engines allocate theirs at start."""
    return sum(device == "cpu" for device in devices) * cpu_cache_gb * _GIB


def check_memory(device: str, needed: Mapping[str, int], free: int | None) -> Finding:
    """Compare the needs of one device with its free bytes.

    Args:
        device: name of the device.
        needed: purpose -> bytes.
        free: bytes that are free; None if unknown.
    """
    total = sum(needed.values())
    parts = ", ".join(f"{name} {_size(size)}" for name, size in needed.items() if size)
    measured = f"{_size(total)} more ({parts})"
    if free is None:
        return Finding("memory", device, measured, "not measured")
    return judge(
        "memory",
        device,
        f"{measured} of {_size(free)} free",
        wrong=total > free,
        way_out="a lower --learner.micro-batch-tokens, --agents.ROLE.tuning lora, a smaller model, "
        "or with --engine vllm a lower --vllm.gpu-memory or --vllm.cpu-cache-gb",
    )


def _size(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / 2**20:.0f} MiB"
