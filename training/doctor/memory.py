"""Will a training step fit?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from coterie.agents.local import LocalPolicy
from coterie.models.family import activation_bytes, cache_width
from coterie.teams.team import Team
from coterie.training.doctor.finding import Finding, judge

_GIB = 2**30
# Of a step's batches, see coterie.algorithms.logprobs and coterie.models.sampler.batches.
_LOGITS_BYTES = 1 << 26
_CPU_CACHE_BYTES = 2 << 30


def optimiser_bytes(trainable_bytes: int, moment_share: float = 2.0) -> dict[str, int]:
    """What training adds to weights in float32."""
    return {"gradients": trainable_bytes, "moments": int(moment_share * trainable_bytes)}


def micro_batch_bytes(config: Any, tokens: int, itemsize: int, *, recompute: bool) -> int:
    """What the backward pass of one micro-batch needs: activations, or the blocks' inputs and one
    block's activations where they are computed twice, and a tile of logits in float32, with its
    softmax and both gradients."""
    kept = activation_bytes(config, tokens, itemsize)
    if recompute:
        inputs = itemsize * tokens * config.num_hidden_layers * config.hidden_size
        kept = inputs + kept // config.num_hidden_layers
    return kept + 4 * min(_LOGITS_BYTES, 4 * tokens * config.vocab_size)


def cache_bytes(config: Any, rows: int, longest: int, itemsize: int) -> int:
    """Keys and values of rows that are sampled side by side."""
    return rows * longest * config.num_hidden_layers * cache_width(config) * itemsize


def free_bytes(device: torch.device) -> int | None:
    """Memory that nobody uses; None where nobody says."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        import psutil  # pyright: ignore[reportMissingModuleSource]

        return int(psutil.virtual_memory().available)
    except ImportError:
        return available(Path("/proc/meminfo"))


def available(meminfo: Path) -> int | None:
    """The kernel's own estimate, in bytes."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None


def free_by_device(team: Team) -> dict[str, int | None]:
    """What is free where models are; models and engines are loaded already."""
    return {
        str(device): free_bytes(device)
        for device in {one.handle.device for one in team.loaded.values()}
        if device.type != "meta"
    }


def needs(
    team: Team, *, micro_batch_tokens: int, rows: Mapping[str, tuple[int, int]]
) -> dict[str, dict[str, int]]:
    """device -> what for -> bytes that a training step takes beside the loaded models.

    Args:
        team: loaded.
        micro_batch_tokens: the learner's.
        rows: role -> (rows in a step, tokens of the longest).
    """
    total: dict[str, dict[str, int]] = {}
    for role, one in team.loaded.items():
        handle = one.handle
        if handle.device.type == "meta":
            continue
        config, size, found = handle.causal_lm.config.get_text_config(), handle.dtype.itemsize, {}
        if role in team.trained:
            trainable = sum(p.numel() * p.element_size() for p in handle.parameters().values())
            share = team.trained[role].learner.settings.moment_share
            found = optimiser_bytes(trainable, share)
            # Learners take turns, and so do samplers in this process.
            found["a micro-batch"] = micro_batch_bytes(
                config, micro_batch_tokens, size, recompute=handle.recomputes(micro_batch_tokens)
            )
        policy = team.policies[role]
        if isinstance(policy, LocalPolicy):
            if policy.sampler.fused:
                found["sampler's copy"] = handle.weight_bytes
            cache = cache_bytes(config, *rows.get(role, (0, 0)), size)
            limit = _CPU_CACHE_BYTES if handle.device.type == "cpu" else cache
            found["sampler's cache"] = min(cache, limit)
        place = total.setdefault(str(handle.device), {})
        for name, size in found.items():
            shared = name in ("a micro-batch", "sampler's cache")
            place[name] = max(place.get(name, 0), size) if shared else place.get(name, 0) + size
    return total


def engine_needs(devices: Sequence[str], cpu_cache_gb: int) -> int:
    """Bytes that CPU engines will fill their caches with; a GPU engine takes its share at once."""
    return sum(device == "cpu" for device in devices) * cpu_cache_gb * _GIB


def check_memory(device: str, needed: Mapping[str, int], free: int | None) -> Finding:
    """One device."""
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
