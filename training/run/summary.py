"""A run's machine and packages, its cost so far, and its results (``summary.json``)."""

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

from coterie.agents.models.instructions import described
from coterie.datatypes import Trajectory
from coterie.evaluation.evaluation import Resampled
from coterie.evaluation.json_values import plain_number
from coterie.training import STARTED

_PACKAGES = (
    "coterie", "torch", "transformers", "peft", "tokenizers", "numpy", "pettingzoo", "gymnasium",
    "mpmath", "sentence-transformers", "reasoning-gym", "datasets",
)  # fmt: skip


def surroundings() -> dict[str, Any]:
    """Versions of packages, the kind of machine and its instructions; nothing names the user."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: installed for name in _PACKAGES if (installed := _version(name))},
        "instructions": described(),
    }


def beginning() -> dict[str, str]:
    """Time, command and commit at the start of a run; unknown ones are left out."""
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
    """The commit of ``file``'s repository, ``-dirty`` where files were changed since."""
    git = ["git", "-C", str(file.parent)]
    try:
        # An installed package may lie in a folder of somebody else's repository.
        subprocess.run([*git, "ls-files", "--error-unmatch", file.name], check=True, **_QUIET)
        describe = [*git, "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
        return subprocess.run(describe, check=True, **_QUIET).stdout.strip()
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
        """Continue from ``counters``, as :meth:`counters` gave them; empty for a new run."""
        self.tokens = int(counters.get("tokens", 0))
        """Sampled tokens of all roles."""
        self.learner_tokens = int(counters.get("learner_tokens", 0))
        """Sampled tokens of the roles that learn."""
        self._wall_before = float(counters.get("wall_s", 0.0))

    def add(self, rows: Sequence[Trajectory], trained: Collection[str]) -> int:
        """Count the tokens of a step's rows; returns the number sampled in them."""
        tokens = sum(int(row.mask.sum()) for row in rows)
        self.tokens += tokens
        self.learner_tokens += sum(int(row.mask.sum()) for row in rows if row.role in trained)
        return tokens

    def wall_s(self) -> float:
        """Seconds since the process began, plus those before the run was resumed."""
        return self._wall_before + time.perf_counter() - STARTED

    def counters(self) -> dict[str, float]:
        """The counts as plain numbers, for a checkpoint."""
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
    """The content of ``summary.json``: metrics at each moment, and their 95 % intervals.

    Args:
        before: metric -> value before training.
        after: metric -> value after it.
        wall_s: seconds of the run.
        sampled_tokens: of all roles in training.
        warmed_up: metric -> value after the warm-up; empty without one.
    """
    moments = {"before": before, "warmed_up": warmed_up, "after": after}
    measured = {
        when: metrics for when, metrics in moments.items() if metrics or when != "warmed_up"
    }
    return {
        **{when: _values(metrics) for when, metrics in measured.items()},
        "intervals": {when: _intervals(metrics) for when, metrics in measured.items()},
        "wall_s": round(wall_s, 3),
        "sampled_tokens": sampled_tokens,
    }


def places_table(places: Sequence[Mapping[str, str]]) -> Table:
    """The places of roles on a cluster as a table."""
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
