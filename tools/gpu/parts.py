"""The measurements, most important first; each part runs in a separate process."""

import argparse
import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULT = "result.json"
"""File in a part's scratch folder with its results."""
SLOWER = "GPU_PARTS_SLOWER"
"""Environment variable: factor for the time limits."""
_TESTS_S = 140
_PACKAGES = ("torch", "transformers", "peft", "accelerate", "trl", "numpy", "bitsandbytes")


@dataclass(frozen=True)
class Measurement:
    """One measurement."""

    name: str
    limit_s: float
    """Time limit in seconds, if all parts together have 540."""
    work: Callable[[Path, bool], dict[str, Any]]
    """A scratch folder that all parts share, and whether to rehearse -> figures."""


def _machine(scratch: Path, small: bool) -> dict[str, Any]:
    import torch

    from gpu.arithmetic import ceiling

    facts: dict[str, Any] = {"python": platform.python_version(), "processors": os.cpu_count()}
    for name in _PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = None
    facts["cuda"] = torch.version.cuda
    if torch.cuda.is_available():
        known = torch.cuda.get_device_properties(0)
        facts |= {"device": known.name, "device_gib": known.total_memory / 2**30}
    else:
        facts["device"] = "cpu"
    return facts | {"ceiling_tflops": ceiling() / 1e12}


def _tests(scratch: Path, small: bool) -> dict[str, Any]:
    from gpu.tests import measure

    return measure(scratch, _TESTS_S * float(os.environ.get(SLOWER, "1")))


def _step(shape: str, tuning: str) -> Callable[[Path, bool], dict[str, Any]]:
    def work(scratch: Path, small: bool) -> dict[str, Any]:
        from gpu.step import measure

        return measure("small" if small else shape, tuning, scratch)

    return work


def _sampler(shape: str) -> Callable[[Path, bool], dict[str, Any]]:
    def work(scratch: Path, small: bool) -> dict[str, Any]:
        from gpu.sampling import measure

        return measure("small" if small else shape, scratch)

    return work


def _trl(shape: str, tuning: str) -> Callable[[Path, bool], dict[str, Any]]:
    def work(scratch: Path, small: bool) -> dict[str, Any]:
        from gpu.beside_trl import measure

        return measure("small" if small else shape, tuning)

    return work


PARTS = (
    Measurement("machine", 60, _machine),
    Measurement("tests", _TESTS_S + 15, _tests),
    Measurement("step-0.5b-lora", 100, _step("0.5b", "lora")),
    Measurement("step-0.5b-full", 100, _step("0.5b", "full")),
    Measurement("step-3b-lora", 120, _step("3b", "lora")),
    Measurement("step-3b-full", 120, _step("3b", "full")),
    Measurement("trl-0.5b-lora", 80, _trl("0.5b", "lora")),
    Measurement("trl-0.5b-full", 80, _trl("0.5b", "full")),
    Measurement("trl-3b-lora", 80, _trl("3b", "lora")),
    Measurement("sampler-0.5b", 60, _sampler("0.5b")),
    Measurement("sampler-3b", 60, _sampler("3b")),
    Measurement("trl-3b-full", 80, _trl("3b", "full")),
)


def measure(options: argparse.Namespace) -> int:
    """Run one part in this process and write its figures to the scratch folder."""
    part = next(candidate for candidate in PARTS if candidate.name == options.name)
    figures = part.work(options.scratch, options.small)
    (options.scratch / RESULT).write_text(json.dumps(figures), encoding="utf-8")
    return 0
