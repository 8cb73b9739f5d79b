"""How the runs behind docs/evidence.md are made: one process per run, with its compute cost."""

import fcntl
import json
import re
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from coterie.extras.papers.sweep_commands import SweepCommand
from coterie.training.run.directory import METRICS, RunDirectory

ROOT = Path(__file__).resolve().parents[2]
BLOCK = 30
"""Steps per point of the training curve."""
# Loss of accuracy that counts as falling apart: against the start, and against the best block.
_BELOW_START, _BELOW_BEST = 0.05, 0.10

Row = Mapping[str, Any]
"""A stored line: a finished run."""


def train_all(protocol: Any, runs: Sequence[Any], out: Path, until: str) -> None:
    """Train runs one after another; start none after the time of day ``until``."""
    for run in runs:
        if f"{datetime.now():%H:%M}" >= until:
            break
        with locked(run.name, out) as ours:
            if not ours or run in protocol.stored():
                continue
            row = protocol.train(run, out)
            with protocol.RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(run.name, row["after"], row["cpu_s"], flush=True)


def again(protocols: Sequence[Any], name: str, seed: int, out: Path) -> str:
    """Train an arm on a seed of one's own; return its results after those that are stored.

    Args:
        protocols: modules of protocols.
        name: of the arm's runs, without a seed.
        seed: the seed of the new run.
        out: folder of all runs.
    """
    known: dict[str, tuple[Any, Any]] = {}
    for protocol in protocols:
        for run in (*protocol.planned(), *protocol.stored()):
            known.setdefault(run.name.removesuffix(f"-{run.seed}"), (protocol, run))
    if name not in known:
        raise SystemExit(f"no run is called {name}; the arms are: {' '.join(sorted(known))}")
    protocol, run = known[name]
    rows = [
        row
        for other, row in protocol.stored().items()
        if replace(other, seed=seed) == replace(run, seed=seed)
    ]
    rows.append(protocol.train(replace(run, seed=seed), out))
    return "\n".join(f"seed {row['seed']}: {json.dumps(row['after'])}" for row in rows)


@contextmanager
def locked(name: str, out: Path, wait: bool = False) -> Iterator[bool]:
    """Lock the run of this name; yield False if another process has it."""
    with (out / f"{name}.lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def finish(job: SweepCommand) -> dict[str, Any]:
    """Run what is left of the job; return commit, time and seconds. They are None for a resumed
    job, of which only the last part would be known."""
    began, used, whole = time.time(), cpu_s(), not job.folder.exists()
    if not job.finished:
        job.run()
    cpu, wall = cpu_s() - used, time.time() - began
    return {
        "commit": commit(),
        "finished": datetime.now().isoformat(timespec="seconds"),
        "cpu_s": round(cpu, 1) if whole else None,
        "wall_s": round(wall, 1) if whole else None,
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


def stored(path: Path, kind: type[Any]) -> dict[Any, dict[str, Any]]:
    """Return run -> its line in the file, for finished runs."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    names = [field.name for field in fields(kind)]
    return {kind(*(row[name] for name in names)): row for row in map(json.loads, lines)}


def outcomes(folder: Path) -> tuple[Any, Any]:
    """Role -> right or wrong by problem and answer, before training and after."""
    first, last = (
        json.loads((folder / f"evaluation/{when}.json").read_text(encoding="utf-8"))["correct"]
        for when in ("before", "after")
    )
    return first, last


def taught(folder: Path) -> dict[str, Any]:
    """Return the stored results of a trained team."""
    first, last = outcomes(folder)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return {
        "before": {role: counts(rows) for role, rows in first.items()},
        "after": {role: counts(rows) for role, rows in last.items()},
        "tokens": summary["sampled_tokens"],
        "curve": curve(folder, tuple(last)),
        # Number of right answers to each held-out problem, one digit per problem.
        "right": {role: "".join(str(sum(row)) for row in rows) for role, rows in last.items()},
    }


def curve(folder: Path, roles: Sequence[str]) -> dict[str, list[float]]:
    """Return each role's training accuracy, block by block."""
    steps = RunDirectory.reopen(folder).read_log(METRICS)
    blocks = [steps[start : start + BLOCK] for start in range(0, len(steps), BLOCK)]
    return {
        role: [round(sum(s[f"measured/{role}/correct"] for s in b) / len(b), 4) for b in blocks]
        for role in roles
    }


def fell(row: Row) -> list[str]:
    """Roles that have fallen apart by the page's definition."""
    return [
        role
        for role in row["curve"]
        if rate(row, role) < rate(row, role, "before") - _BELOW_START
        or row["curve"][role][-1] < max(row["curve"][role]) - _BELOW_BEST
    ]


def rate(row: Row, role: str, when: str = "after") -> float:
    """Pass@1 on the held-out problems."""
    right, asked = row[when][role]
    return right / asked


def differences(ours: Mapping[int, Row], theirs: Mapping[int, Row], role: str) -> list[float]:
    """Pass@1 of ours − theirs after training, for each seed of both in order."""
    seeds = sorted(ours.keys() & theirs.keys())
    return [rate(ours[seed], role) - rate(theirs[seed], role) for seed in seeds]


def counts(correct: Sequence[Sequence[int]]) -> list[int]:
    """Return [right answers, all answers]."""
    return [sum(map(sum, correct)), sum(map(len, correct))]


def quoted(flag: str) -> str:
    return f'"{flag}"' if "?" in flag else flag


def missing_lines(protocol: Any) -> list[str]:
    """Return a page's text about missing runs."""
    done = protocol.stored()
    names = [run.name for run in protocol.planned() if run not in done]
    if not names:
        return ["", "Every run of the protocol is made."]
    return ["", "### Missing", "", *(f"- {name}" for name in names)]


def put(page: Path, lines: Sequence[str]) -> None:
    """Put tables into their place in a page."""
    place = re.compile(r"(<!-- results -->\n).*(<!-- end of results -->)", re.DOTALL)
    text = page.read_text(encoding="utf-8")
    page.write_text(place.sub(lambda m: m[1] + "\n".join(lines) + m[2], text), encoding="utf-8")
