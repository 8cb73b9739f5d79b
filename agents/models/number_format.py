"""The default number format of a model, by its size and device."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from coterie.agents.models.locate import local_folder
from coterie.agents.models.spec import TINY_BYTES, ModelSpec

_CPUINFO = Path("/proc/cpuinfo")
_NATIVE = ("amx_bf16", "avx512_bf16")
"""Flags of processors that multiply matrices in bfloat16, about twice as fast as in float32."""


@dataclass(frozen=True)
class NumberFormat:
    """Example: ``NumberFormat("bfloat16", "the processor has avx512_bf16")``"""

    name: str
    """torch's name."""
    why: str


def number_format_of(spec: ModelSpec) -> NumberFormat:
    """Return the format in which ``spec`` computes, and the reason; imports torch only to look for
    a GPU."""
    if spec.quantized:
        chosen = number_format_of(replace(spec, dtype="auto"))
        return NumberFormat(chosen.name, f"{chosen.why}; 4 bits a weight")
    if spec.dtype != "auto":
        return NumberFormat(spec.dtype, "asked for")
    if not _on_cpu(spec.device):
        return NumberFormat("bfloat16", "on a GPU")
    if is_tiny(spec):
        return NumberFormat("float32", f"at most {TINY_BYTES >> 20} MiB of weights")
    flag = native_bfloat16()
    if flag is None:
        return NumberFormat("float32", "the processor has no " + " or ".join(_NATIVE))
    return NumberFormat("bfloat16", f"the processor has {flag}")


@cache
def native_bfloat16() -> str | None:
    """Return the processor's flag for multiplication in bfloat16; None without one."""
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:  # no Linux
        return None
    flags = next((line.split() for line in lines if line.startswith("flags")), ())
    return next((flag for flag in _NATIVE if flag in flags), None)


def _on_cpu(device: str) -> bool:
    if device == "auto":
        from torch import cuda

        return not cuda.is_available()
    return device == "cpu"


def is_tiny(spec: ModelSpec) -> bool:
    """Whether the local files have at most ``TINY_BYTES``; models of the hub count as large."""
    folder = local_folder(spec)
    if folder is None or not folder.is_dir():
        return False
    sizes = [file.stat().st_size for file in folder.glob("*.safetensors")]
    return bool(sizes) and sum(sizes) <= TINY_BYTES
