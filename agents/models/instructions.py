"""Instructions for tiny models: those that processors have in common, so that digits are the same.

A sum in another order ends in another last digit, after some steps another token is sampled, and a
run ends elsewhere. Torch and its libraries choose the order by what a processor can do and by who
made it. They read these variables at their first operation.
"""

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what takes time to import waits
    from coterie.agents.models.spec import ModelSpec

COMMON = {
    "ATEN_CPU_CAPABILITY": "avx2",
    # Not AVX2: on processors of other makers MKL promises the same digits for this one only.
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}
_OURS = "COTERIE_INSTRUCTIONS"
"""Names those variables that the user has not set, for the processes of a run."""
_CPUINFO = Path("/proc/cpuinfo")


def use_common() -> None:
    """Have torch compute with instructions that every x86-64 processor with AVX2 has, here and in
    processes to come, unless the user wants otherwise. To be called before torch is imported."""
    if not has_avx2():
        return
    ours = [name for name in COMMON if name not in os.environ]
    os.environ.update({name: COMMON[name] for name in ours})
    if ours:
        os.environ[_OURS] = " ".join(ours)


def use_fastest() -> None:
    """Take back what :func:`use_common` has set."""
    for name in os.environ.pop(_OURS, "").split():
        os.environ.pop(name, None)


def fit_instructions(specs: "Iterable[ModelSpec]") -> None:
    """Let models compute with the processor's fastest instructions unless all of them are tiny. To
    be called before anything is computed; later it changes nothing."""
    from coterie.agents.models.number_format import is_tiny

    if not all(map(is_tiny, specs)):
        use_fastest()


def described() -> dict[str, str]:
    """What this process computes with: torch's instructions, the variables of :data:`COMMON` that
    are set, and why none was where the processor is another."""
    import torch

    facts = {"torch": torch.backends.cpu.get_cpu_capability()}
    facts |= {name: os.environ[name] for name in COMMON if name in os.environ}
    if not has_avx2():
        facts["why"] = "no x86-64 processor with AVX2: digits may differ from those of one"
    return facts


def has_avx2() -> bool:
    """Whether this is an x86-64 processor with AVX2."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        return "avx2" in _CPUINFO.read_text().split()
    except OSError:  # no Linux; what numpy knows takes time to import
        from numpy._core._multiarray_umath import __cpu_features__

        return bool(__cpu_features__.get("AVX2"))
