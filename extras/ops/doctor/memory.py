"""Check that a training step fits into free memory, by the plan."""

from collections.abc import Iterable

import torch

from coterie.extras.ops.doctor.finding import Finding, judge
from coterie.extras.ops.machine import meminfo
from coterie.extras.ops.plan import GIB, DevicePlan


def free_by_device(devices: Iterable[torch.device]) -> dict[str, int | None]:
    """Device -> its free bytes; None if unknown."""
    return {
        str(device): torch.cuda.mem_get_info(device)[0]
        if device.type == "cuda"
        else meminfo("MemAvailable")
        for device in devices
    }


def check_memory(device: DevicePlan, free: int | None) -> Finding:
    """Compare what a training step adds to the loaded models with ``free`` bytes; None if these are
    unknown."""
    added: dict[str, int] = {}
    for part in device.parts:
        added[part.kind] = added.get(part.kind, 0) + part.added
    parts = ", ".join(f"{kind} {_size(size)}" for kind, size in added.items() if size)
    measured = f"{_size(device.added)} more ({parts})"
    if free is None:
        return Finding("memory", device.device, measured, "not measured")
    return judge(
        "memory",
        device.device,
        f"{measured} of {_size(free)} free",
        wrong=device.added > free,
        way_out="a lower --learner.micro-batch-tokens, --agents.ROLE.tuning lora, a smaller model, "
        "or with --engine vllm a lower --vllm.gpu-memory or --vllm.cpu-cache-gb",
    )


def _size(count: int) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / 2**20:.0f} MiB"
