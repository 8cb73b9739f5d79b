"""Runs all parts one after another within a time limit; saves each part's results at once."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coterie.datatypes import UserError
from gpu.parts import PARTS, RESULT, SLOWER, Measurement
from gpu.table import table

ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 540.0
"""For which the limits of the parts are made."""
_LINES = 12
"""Of what a failed part said last."""


def run_all(options: argparse.Namespace) -> int:
    """Run the parts; return 0 if none failed, else 1.

    Raises:
        UserError: the figures or the wheels have no place, or a part is unknown.
    """
    chosen, out = _chosen(options.parts), options.out
    deadline = time.monotonic() + options.seconds
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "figures.json").write_text("{}", encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {out} cannot be written: {error}") from error
    with tempfile.TemporaryDirectory(prefix="gpu-") as place:
        scratch = Path(place)
        environment = _environment(options.wheels, scratch)
        slower = max(1.0, options.seconds / _SECONDS)
        environment[SLOWER] = str(slower)
        small = options.small or not _has_gpu(environment)
        report: dict[str, Any] = {"small": small, "parts": {}}
        for part in chosen:
            left = deadline - time.monotonic()
            figures = _run_part(
                part, scratch, small, min(slower * part.limit_s, left), environment, out
            )
            report["parts"][part.name] = figures
            _keep(out, report)
            print(f"{part.name}: {figures.get('error', 'done')}, {figures['seconds']:.0f} s")
    print((out / "figures.md").read_text(encoding="utf-8"))
    return int(any("error" in figures for figures in report["parts"].values()))


def _chosen(names: list[str] | None) -> list[Measurement]:
    known = {part.name: part for part in PARTS}
    if unknown := set(names or ()) - known.keys():
        raise UserError(f"--parts {' '.join(sorted(unknown))}: known are {' '.join(known)}")
    return [part for name, part in known.items() if names is None or name in names]


def _environment(wheels: Path | None, scratch: Path) -> dict[str, str]:
    """Return the environment of every part: this tree comes first on the path, then the wheels,
    then what the machine has."""
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
    given = os.environ.get("PYTHONPATH")
    own = {"PYTHONPATH": os.pathsep.join([*path, *([given] if given else [])])}
    return {**os.environ, **own, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def _has_gpu(environment: Mapping[str, str]) -> bool:
    ask = [sys.executable, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"]
    return subprocess.run(ask, env=dict(environment), check=False).returncode == 0


def _run_part(
    part: Measurement,
    scratch: Path,
    small: bool,
    limit_s: float,
    environment: Mapping[str, str],
    out: Path,
) -> dict[str, Any]:
    """Run one part and return its results, or ``error`` with the reason."""
    if limit_s <= 5:
        return {"error": "no time was left", "seconds": 0.0}
    result, log = scratch / RESULT, out / "log.txt"
    result.unlink(missing_ok=True)
    command = [sys.executable, str(ROOT / "tools" / "gpu"), "part", part.name]
    command += ["--scratch", str(scratch), *(["--small"] if small else [])]
    start = time.monotonic()
    with log.open("a", encoding="utf-8") as said:
        said.write(f"\n--- {part.name}\n")
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
            _end(process)
    figures: dict[str, Any] = {"seconds": time.monotonic() - start}
    if code == 0 and result.is_file():
        return json.loads(result.read_text(encoding="utf-8")) | figures
    why = f"ended after {limit_s:.0f} s" if code is None else f"exit code {code}"
    text = log.read_bytes()[begun:].decode(errors="replace")
    figures |= {"error": why, "said": text.splitlines()[-_LINES:]}
    # One part's unfinished files must not reach the next part.
    for half in scratch.glob("*.part"):
        shutil.rmtree(half)
    return figures


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a part and the processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _keep(out: Path, report: Mapping[str, Any]) -> None:
    texts = {"figures.json": json.dumps(report, indent=1), "figures.md": table(report)}
    for name, text in texts.items():
        half = out / f"{name}.part"
        half.write_text(text, encoding="utf-8")
        half.replace(out / name)
