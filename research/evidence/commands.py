"""Commands as processes: they continue where they stopped, and what they cost is measured."""

import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from evidence.studies import ROOT


def start(program: str, arguments: Sequence[str], folder: Path, done: str) -> None:
    """Run a command to its end, unless it has been run.

    A training continues from its last checkpoint; a comparison keeps the responses it has.

    Args:
        program: script of the repository.
        arguments: its arguments.
        folder: the folder that it writes.
        done: file in the folder that a complete run has.

    Raises:
        SystemExit: the command did not end.
    """
    if (folder / done).exists():
        return
    resumes = program != "benchmark.py" and any(folder.glob("checkpoints/[!.]*"))
    if done in ("summary.json", "distillation.json") and not resumes and folder.is_dir():
        shutil.rmtree(folder)  # a trainer needs an empty folder
    words = [program, *(("--resume", str(folder)) if resumes else arguments)]
    run(words)
    if not (folder / done).exists():
        raise SystemExit(f"{shlex.join(['python', *words])} did not end; start it again")


def run(words: Sequence[str]) -> None:
    """Run a script of the repository in a process of its own, whatever its exit code."""
    subprocess.run([sys.executable, *words], cwd=ROOT, check=False)


@contextmanager
def measured(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what is known at the end: commit, time and seconds of the commands inside. The seconds
    of a resumed run are None, since only its last part would be known."""
    began, used, whole = time.time(), cpu_s(), not folder.exists()
    spent: dict[str, Any] = {}
    yield spent
    spent |= {
        "commit": commit(),
        "finished": datetime.now().isoformat(timespec="seconds"),
        "cpu_s": round(cpu_s() - used, 1) if whole else None,
        "wall_s": round(time.time() - began, 1) if whole else None,
    }


def commit() -> str:
    """Return the commit of the working tree; ``-dirty`` if a file differs that is no result."""
    head = ("git", "rev-parse", "--short=12", "HEAD")
    diff = ("git", "diff", "--quiet", "HEAD", "--", ".", ":!docs/evidence", ":!research/*.md")
    name = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True)
    same = subprocess.run(diff, cwd=ROOT, check=False).returncode == 0
    return name.stdout.strip() + ("" if same else "-dirty")


def cpu_s() -> float:
    """Return CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
