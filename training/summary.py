"""What a run ran on, what it has cost so far, and what came out of it (``summary.json``)."""

import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.table import Table

from coterie.datatypes import Trajectory
from coterie.evaluation.evaluation import Resampled
from coterie.evaluation.table import plain_number
from coterie.training import STARTED

_PACKAGES = (
    "coterie", "torch", "transformers", "peft", "tokenizers", "numpy", "pettingzoo", "gymnasium",
    "mpmath", "sentence-transformers", "reasoning-gym", "datasets",
)  # fmt: skip


def surroundings() -> dict[str, Any]:
    """Package versions, Python and the kind of machine; nothing that names the user."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def beginning() -> dict[str, str]:
    """When a run began, by which command, and at which commit of a clone; what cannot be told is
    left out."""
    program = Path(sys.argv[0]).name
    words = ["python", program] if program.endswith(".py") else [program]
    if program == "__main__.py":
        words = ["coterie"]
    facts = {
        "at": time.strftime("%Y-%m-%d %H:%M %z"),
        "command": shlex.join([*words, *sys.argv[1:]]),
        "commit": _commit(Path(__file__).resolve()),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _commit(file: Path) -> str:
    """The commit that ``file`` is of, ``-dirty`` where files were changed since."""
    git = ["git", "-C", str(file.parent)]
    try:
        # An installed package may lie in a folder of somebody else's repository.
        subprocess.run([*git, "ls-files", "--error-unmatch", file.name], check=True, **_QUIET)
        found = [*git, "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
        return subprocess.run(found, check=True, **_QUIET).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


_QUIET: Any = {"capture_output": True, "text": True, "timeout": 10}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


class Tally:
    """Seconds and sampled tokens; a checkpoint holds them as plain numbers."""

    def __init__(self, counters: Mapping[str, float]) -> None:
        """Take up where :meth:`counters` stood; a new run has none."""
        self.tokens = int(counters.get("tokens", 0))
        """Tokens that anybody sampled."""
        self.learner_tokens = int(counters.get("learner_tokens", 0))
        """Those of them that a role learned from."""
        self._wall_before = float(counters.get("wall_s", 0.0))

    def add(self, rows: Sequence[Trajectory], trained: Collection[str]) -> int:
        """Count one step's rows; how many tokens were sampled in them."""
        tokens = sum(int(row.mask.sum()) for row in rows)
        self.tokens += tokens
        self.learner_tokens += sum(int(row.mask.sum()) for row in rows if row.role in trained)
        return tokens

    def wall_s(self) -> float:
        """Seconds since the process began, and those of the runs that this one goes on from."""
        return self._wall_before + time.perf_counter() - STARTED

    def counters(self) -> dict[str, float]:
        """What a checkpoint saves."""
        return {
            "wall_s": self.wall_s(),
            "tokens": self.tokens,
            "learner_tokens": self.learner_tokens,
        }


def summary(
    before: Mapping[str, Resampled],
    after: Mapping[str, Resampled],
    wall_s: float,
    sampled_tokens: int,
    warmed_up: Mapping[str, Resampled] = MappingProxyType({}),
) -> dict[str, Any]:
    """Flat metrics before and after, where there was a warm-up behind that too, their 95 %
    intervals, and what the run took."""
    moments = {"before": before, "warmed_up": warmed_up, "after": after}
    measured = {when: one for when, one in moments.items() if one or when != "warmed_up"}
    return {
        **{when: _values(one) for when, one in measured.items()},
        "intervals": {when: _intervals(one) for when, one in measured.items()},
        "wall_s": round(wall_s, 3),
        "sampled_tokens": sampled_tokens,
    }


def places_table(places: Sequence[Mapping[str, str]]) -> Table:
    """Who sits where on a cluster."""
    table = Table(*places[0])
    for row in places:
        table.add_row(*row.values())
    return table


def _values(metrics: Mapping[str, Resampled]) -> dict[str, float | None]:
    return {name: plain_number(measured.value) for name, measured in metrics.items()}


def _intervals(metrics: Mapping[str, Resampled]) -> dict[str, list[float | None]]:
    return {
        name: [plain_number(bound) for bound in measured.interval()]
        for name, measured in metrics.items()
    }
