"""The studies of ``studies.toml``: their arms as commands, their runs, what is stored of them."""

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from coterie.cli.arguments import overlay

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/evidence"
PROBLEMS = "real-problems"
"""Folder of the problems for real models, beside the runs."""
LOOP = "research/evidence/other_hints.py"
_PLACE = re.compile(r"<(?:([\w-]+):)?([\w.-]+)>")
_DONE = {"distill": "distillation.json", "suite": "results.json", "corea": "results.json"}
"""Comparison -> the file that it ends with."""

Row = Mapping[str, Any]
"""A stored line: a finished run."""


@dataclass(frozen=True)
class Arm:
    """A command, with placeholders."""

    flags: str
    asked: str = ""
    """Flags that evaluate the run on the held-out problems."""


@dataclass(frozen=True)
class Study:
    """The arms of a table of ``studies.toml``, and which runs it has."""

    key: str
    results: str
    """File of the results in docs/evidence."""
    name: str
    """Of a run's folder, with placeholders."""
    measure: str
    """What is stored of a training; a name in :data:`evidence.measures.MEASURES`."""
    arms: Mapping[str, Arm]
    runs: Sequence[Mapping[str, Any]]
    shared: Mapping[str, str]
    """Flags by the name that stands for them."""

    def planned(self) -> Iterator["Run"]:
        """Yield all runs in order; the arms of a seed stay together."""
        for entry in self.runs:
            own = {key: value for key, value in entry.items() if key not in ("seeds", "arms")}
            if "<contest>" in self.name:
                own = {"contest": self.key, **own}
            for seed in entry["seeds"]:
                yield from (Run(self, arm, seed, own) for arm in entry["arms"])

    def stored(self) -> dict[str, Row]:
        """Return name -> result of the finished runs, in the order of the file."""
        return {_filled(self.name, row): row for row in stored(self.results)}

    def missing(self) -> list["Run"]:
        """Return the runs that are planned and not stored."""
        done = self.stored()
        return [run for run in self.planned() if run.name not in done]


@dataclass(frozen=True)
class Run:
    """One command of a study with one seed."""

    study: Study
    arm: str
    seed: int
    values: Mapping[str, Any]
    """What else tells the run from others: its problem set and steps, or its contest."""

    @property
    def fields(self) -> dict[str, Any]:
        """Return what identifies the run in its stored line."""
        return {**self.values, "arm": self.arm, "seed": self.seed}

    @property
    def name(self) -> str:
        """Return the name of the run's folder."""
        return _filled(self.study.name, self.fields)

    @property
    def words(self) -> list[str]:
        """Return the command's words, with placeholders for folders and numbers of tokens."""
        return self._words(self.study.arms[self.arm].flags)

    @property
    def asked(self) -> list[str]:
        """Return the words of the evaluation on held-out problems; empty if there is none."""
        return self._words(self.study.arms[self.arm].asked)

    @property
    def program(self) -> str:
        """Return the script that runs the command."""
        if "evidence.other_hints:SPEC" in self.words:
            return LOOP
        return "benchmark.py" if self.words[0] in _DONE else "train.py"

    @property
    def done(self) -> str:
        """Return the name of the file that a complete run has."""
        return _DONE.get(self.words[0], "summary.json")

    def needs(self) -> list["Run"]:
        """Return the runs of the same seed that this one needs first."""
        named = (place[2] for word in (*self.words, *self.asked) for place in _PLACE.finditer(word))
        arms = dict.fromkeys(arm for arm in named if arm in self.study.arms and arm != self.arm)
        return [replace(self, arm=arm) for arm in arms]

    def arguments(self, fill: Callable[[str, str], str], folder: Path) -> list[str]:
        """Return the command's arguments.

        Args:
            fill: called with a placeholder's kind (empty for a folder) and name.
            folder: where the run's files go.
        """
        where = "--run-dir" if self.done == "summary.json" else "--out"
        words = [*self.words, "--seed", str(self.seed), where, str(folder)]
        return overlay(
            [_PLACE.sub(lambda place: fill(place[1] or "", place[2]), word) for word in words]
        )

    def evaluation(self, fill: Callable[[str, str], str]) -> list[str]:
        """Return the arguments of the evaluation, filled in as for :meth:`arguments`."""
        return overlay([_PLACE.sub(lambda place: fill("", place[2]), w) for w in self.asked])

    def _words(self, text: str) -> list[str]:
        words: list[str] = []
        for word in shlex.split(_filled(text, self.fields)):
            known = word.startswith("@")
            words += self._words(self.study.shared[word[1:]]) if known else [word]
        return words


def _filled(text: str, values: Mapping[str, Any]) -> str:
    return _PLACE.sub(lambda place: str(values.get(place[2], place[0])), text)


@cache
def studies() -> Mapping[str, Study]:
    """Return every study by its name, in the order of ``studies.toml``."""
    tables = tomllib.loads(Path(__file__).with_name("studies.toml").read_text(encoding="utf-8"))
    shared = tables.pop("flags")
    found: dict[str, Study] = {}
    for key, table in tables.items():
        common = table.pop("common", "")
        arms: dict[str, Arm] = {}
        for name, told in table.pop("arms").items():
            arm = Arm(told) if isinstance(told, str) else Arm(**told)
            arms[name] = replace(arm, flags=f"{common} {arm.flags}")
        name = table.pop("name", "<contest>-<arm>-<seed>")
        found[key] = Study(key, name=name, arms=arms, shared=shared, **table)
    return found


def stored(results: str) -> list[Row]:
    """Return the lines of a file of results."""
    path = RESULTS / results
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [json.loads(line) for line in lines]
