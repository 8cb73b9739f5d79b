"""Common processor instructions for tiny models, so that digits agree between machines.

The order of a sum changes its last digit, and after some steps a different token is sampled. Torch
and its libraries choose the order by the processor's features and maker. They read the variables
below at their first operation.
"""

import os
import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what takes time to import waits
    from coterie.agents.models.spec import ModelSpec

COMMON = {
    "ATEN_CPU_CAPABILITY": "avx2",
    # Not AVX2: only COMPATIBLE gives the same digits on processors of all makers.
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}
_OURS = "COTERIE_INSTRUCTIONS"
"""Lists the variables that this module has set, for the processes of a run."""
_CPUINFO = Path("/proc/cpuinfo")


def use_common() -> None:
    """Limit torch to instructions of every x86-64 processor with AVX2, in this process and its
    children. Variables that the user has set stay. Call it before torch is imported."""
    if not has_avx2():
        return
    ours = [name for name in COMMON if name not in os.environ]
    os.environ.update({name: COMMON[name] for name in ours})
    if ours:
        os.environ[_OURS] = " ".join(ours)


def use_fastest() -> None:
    """Undo :func:`use_common`."""
    for name in os.environ.pop(_OURS, "").split():
        os.environ.pop(name, None)


def are_limited() -> bool:
    """Whether the user keeps oneDNN from using all of the processor's instructions."""
    name = "ONEDNN_MAX_CPU_ISA"
    ours = name in os.environ.get(_OURS, "").split()
    return not ours and os.environ.get(name, "DEFAULT").upper() not in ("ALL", "DEFAULT")


def fit_instructions(specs: "Iterable[ModelSpec]") -> None:
    """Use the processor's fastest instructions unless all models are tiny. Call it before anything
    is computed; later it has no effect."""
    from coterie.agents.models.number_format import has_tiny_files

    if not all(map(has_tiny_files, specs)):
        use_fastest()


def described() -> dict[str, str]:
    """Return torch's instructions, the variables of :data:`COMMON` that are set, and on other
    processors the reason why none is."""
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
    if flags := processor_flags():
        return "avx2" in flags
    # no Linux; what numpy knows takes time to import
    from numpy._core._multiarray_umath import __cpu_features__

    return bool(__cpu_features__.get("AVX2"))


@cache
def processor_flags() -> frozenset[str]:
    """Return the processor's flags, such as ``avx2``; empty if the system does not list them."""
    try:
        return frozenset(_CPUINFO.read_text().split())
    except OSError:
        return frozenset()
