"""The default number format of a model, by its size and device."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from coterie.agents.models.gguf import is_quantized
from coterie.agents.models.instructions import are_limited, processor_flags
from coterie.agents.models.locate import local_folder
from coterie.agents.models.spec import TINY_BYTES, ModelSpec

_NATIVE = ("amx_bf16", "avx512_bf16")
"""Flags of processors that multiply matrices in bfloat16, about twice as fast as in float32."""
_INTEGERS = ("avx512_vnni", "avx_vnni")
"""Flags of processors that multiply 8-bit integers, two to five times as fast as float32."""


@dataclass(frozen=True)
class NumberFormat:
    """Example: ``NumberFormat("bfloat16", "the processor has avx512_bf16")``"""

    name: str
    """torch's name."""
    why: str
    codes: Literal["int8", "nf4"] | None = None
    """How frozen linear layers are held; None: in the format of the computation."""

    @property
    def dtype(self) -> Any:
        """The format as a ``torch.dtype``; imports torch."""
        import torch

        return getattr(torch, self.name)


def number_format_of(spec: ModelSpec, *, trained: bool = False) -> NumberFormat:
    """Return the format in which ``spec`` computes, and the reason; imports torch only to look for
    a GPU.

    Args:
        spec: the model.
        trained: whether the role learns; full weights that learn are not held in codes.
    """
    if spec.dtype == "nf4":
        chosen = number_format_of(replace(spec, dtype="auto"))
        return NumberFormat(chosen.name, f"{chosen.why}; 4 bits a weight", "nf4")
    if spec.dtype == "int8":
        return NumberFormat("float32", "8 bits a frozen weight, asked for", "int8")
    if spec.dtype != "auto":
        return NumberFormat(spec.dtype, "asked for")
    if not _on_cpu(spec.device):
        return NumberFormat("bfloat16", "on a GPU")
    if has_tiny_files(spec):
        return NumberFormat("float32", f"at most {TINY_BYTES >> 20} MiB of weights")
    if (flag := native_bfloat16()) is not None:
        return NumberFormat("bfloat16", f"the processor has {flag}")
    why = "the processor has no " + " or ".join(_NATIVE)
    full = trained and spec.lora is None
    # 8 bits change weights less than the rounding to 4 or 6 bits that they have been through.
    if full or not is_quantized(spec.model) or (flag := native_int8()) is None:
        return NumberFormat("float32", why)
    return NumberFormat("float32", f"{why} but {flag}: 8 bits a frozen weight", "int8")


def native_bfloat16() -> str | None:
    """Return the processor's flag for multiplication in bfloat16; None without one."""
    return next((flag for flag in _NATIVE if flag in processor_flags()), None)


def native_int8() -> str | None:
    """Return the processor's flag for multiplication of 8-bit integers; None without one, or if it
    may not be used."""
    if are_limited():
        return None
    return next((flag for flag in _INTEGERS if flag in processor_flags()), None)


def _on_cpu(device: str) -> bool:
    if device == "auto":
        from torch import cuda

        return not cuda.is_available()
    return device == "cpu"


def has_tiny_files(spec: ModelSpec) -> bool:
    """Whether the local files of weights have at most ``TINY_BYTES``; models of the hub count as
    large. ``size.is_tiny`` counts weights instead."""
    folder = local_folder(spec)
    if folder is None or not folder.is_dir():
        return False
    sizes = [file.stat().st_size for file in folder.glob("*.safetensors")]
    return bool(sizes) and sum(sizes) <= TINY_BYTES
