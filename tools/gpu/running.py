"""Run all parts one after another, each in a process with a time limit, within ten minutes."""

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coterie.datatypes import UserError
from gpu.table import table

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 540.0
"""For all parts together."""
PARTS: Mapping[str, float] = {
    "machine": 60,
    "tests": 155,
    "step-0.5b-lora": 100,
    "step-0.5b-full": 100,
    "step-3b-lora": 120,
    "step-3b-full": 120,
    "trl-0.5b-lora": 80,
    "trl-0.5b-full": 80,
    "trl-3b-lora": 80,
    "sampler-0.5b": 60,
    "sampler-3b": 60,
    "trl-3b-full": 80,
}
"""Part -> its limit in seconds. The most important come first: the last may find no time left."""
_RESULT = "result.json"
_PACKAGES = ("torch", "transformers", "peft", "accelerate", "trl", "numpy", "bitsandbytes")


def measure(name: str, scratch: Path, small: bool) -> int:
    """Run one part in this process, and write its figures to ``scratch``, which all parts share."""
    # A part imports what it needs alone: a broken package must not end the others.
    match name.split("-"):
        case ["tests"]:
            from gpu import tests

            figures = tests.measure(scratch)
        case ["step", shape, tuning]:
            from gpu import step

            figures = step.measure("small" if small else shape, tuning, scratch)
        case ["trl", shape, tuning]:
            from gpu import update

            figures = update.measure("small" if small else shape, tuning)
        case ["sampler", shape]:
            from gpu import sampling

            figures = sampling.measure("small" if small else shape, scratch)
        case _:
            figures = _machine()
    (scratch / _RESULT).write_text(json.dumps(figures), encoding="utf-8")
    return 0


def _machine() -> dict[str, Any]:
    import torch

    from gpu.shapes import ceiling

    facts: dict[str, Any] = {"python": platform.python_version(), "processors": os.cpu_count()}
    for name in _PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = None
    facts |= {"cuda": torch.version.cuda, "device": "cpu"}
    if torch.cuda.is_available():
        known = torch.cuda.get_device_properties(0)
        facts |= {"device": known.name, "device_gib": known.total_memory / 2**30}
    return facts | {"ceiling_tflops": ceiling() / 1e12}


def run(out: Path, wheels: Path | None, names: Sequence[str] | None, small: bool) -> int:
    """Run the parts; return 0 if none failed, else 1.

    Args:
        out: folder for the figures, which are written after each part.
        wheels: folder of wheels to install for this run.
        names: the parts to run; None for all.
        small: whether to rehearse with small shapes.

    Raises:
        UserError: the figures or the wheels have no place, or a part is unknown.
    """
    if unknown := set(names or ()) - PARTS.keys():
        raise UserError(f"--parts {' '.join(sorted(unknown))}: known are {' '.join(PARTS)}")
    deadline = time.monotonic() + SECONDS
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "figures.json").write_text("{}", encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {out} cannot be written: {error}") from error
    with tempfile.TemporaryDirectory(prefix="gpu-") as place:
        scratch = Path(place)
        environment = _environment(wheels, scratch)
        small = small or not _has_gpu(environment)
        report: dict[str, Any] = {"small": small, "parts": {}}
        for name, limit_s in PARTS.items():
            if names is not None and name not in names:
                continue
            seconds = min(limit_s, deadline - time.monotonic())
            figures = _run_part(name, scratch, small, seconds, environment, out)
            report["parts"][name] = figures
            _keep(out, report)
            print(f"{name}: {figures.get('error', 'done')}, {figures['seconds']:.0f} s")
    print((out / "figures.md").read_text(encoding="utf-8"))
    return int(any("error" in figures for figures in report["parts"].values()))


def _environment(wheels: Path | None, scratch: Path) -> dict[str, str]:
    """Return the parts' environment: this tree, then the wheels, then what the machine has."""
    path = [str(ROOT / folder) for folder in ("", "tools", "research")]
    if wheels is not None:
        files = sorted(map(str, wheels.glob("*.whl")))
        if not files:
            raise UserError(f"--wheels {wheels} holds no wheels")
        site = scratch / "site"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
        command += ["--no-compile", "--target", str(site), *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UserError(f"pip cannot install the wheels: {done.stderr.strip()[-300:]}")
        path.append(str(site))
    if given := os.environ.get("PYTHONPATH"):
        path.append(given)
    own = {"PYTHONPATH": os.pathsep.join(path), "HF_HUB_OFFLINE": "1"}
    return {**os.environ, **own, "TOKENIZERS_PARALLELISM": "false"}


def _has_gpu(environment: Mapping[str, str]) -> bool:
    """Ask in another process: this one lacks the wheels."""
    ask = [sys.executable, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"]
    return subprocess.run(ask, env=dict(environment), check=False).returncode == 0


def _run_part(
    name: str,
    scratch: Path,
    small: bool,
    limit_s: float,
    environment: Mapping[str, str],
    out: Path,
) -> dict[str, Any]:
    """Run one part and return its figures, or ``error`` with the reason."""
    if limit_s <= 5:
        return {"error": "no time was left", "seconds": 0.0}
    result, log = scratch / _RESULT, out / "log.txt"
    result.unlink(missing_ok=True)
    command = [sys.executable, str(ROOT / "tools" / "gpu"), "part", name]
    command += ["--scratch", str(scratch), *(["--small"] if small else [])]
    start = time.monotonic()
    with log.open("a", encoding="utf-8") as said:
        said.write(f"\n--- {name}\n")
        said.flush()
        begun = said.tell()
        process = subprocess.Popen(
            command, cwd=ROOT, env=dict(environment), stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
        try:
            code: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            # The group: a part starts processes, too.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    figures: dict[str, Any] = {"seconds": time.monotonic() - start}
    if code == 0 and result.is_file():
        return json.loads(result.read_text(encoding="utf-8")) | figures
    why = f"ended after {limit_s:.0f} s" if code is None else f"exit code {code}"
    text = log.read_bytes()[begun:].decode(errors="replace")
    # A half-written checkpoint must not reach the next part.
    for half in scratch.glob("*.part"):
        shutil.rmtree(half)
    return figures | {"error": why, "said": text.splitlines()[-12:]}


def _keep(out: Path, report: Mapping[str, Any]) -> None:
    """Replace both files at once: whatever ends the run leaves whole ones."""
    texts = {"figures.json": json.dumps(report, indent=1), "figures.md": table(report)}
    for name, text in texts.items():
        half = out / f"{name}.part"
        half.write_text(text, encoding="utf-8")
        half.replace(out / name)
