"""An extra of somebody else's package: everything that it may add, in one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = '''
from dataclasses import dataclass
from coterie.datatypes import UserError
from coterie.cli.extras import Comparison, Extra, Program

EXTRA = Extra(
    "mine",
    programs={"greet": Program("mine", "say hello")},
    comparisons={"names": Comparison("mine", "Names", "names", "how long names are")},
    settings={"mine": "mine:Mine"},
    instead={},
    sink="mine:open_sink",
    check="mine:check",
)

@dataclass(frozen=True)
class Mine:
    """Settings of mine."""
    loud: bool = False
    """Whether it is loud."""

@dataclass(frozen=True)
class Names:
    """Compare names."""
    name: str = "alice"
    """Whose."""

def names(settings):
    print(len(settings.name))

def main(argv):
    print("hello", *argv)
    return 0

def check(settings):
    if settings.section(Mine).loud and settings.run.steps > 1:
        raise UserError("--mine.loud is for one step; say --steps 1")

class Sink:
    def scalars(self, step, values):
        print("sink", step, "reward/alice" in values)
    def episodes(self, step, episodes, advantages):
        print("sink", step, len(episodes))
    def close(self):
        print("sink closed")

def open_sink(settings, run, tell):
    return Sink()
'''


@pytest.fixture
def coterie(tmp_path: Path):
    """The command ``coterie`` beside an installed package that registers an extra."""
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (tmp_path / "mine.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[coterie.extras]\nmine = mine:EXTRA\n")

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, "-m", "coterie", *argv],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_its_programs_comparisons_and_flags(coterie) -> None:
    assert "\n  greet      say hello\n" in coterie("--help").stdout
    assert coterie("greet", "you").stdout == "hello you\n"
    assert "\n  names              how long names are\n" in coterie("benchmark", "--help").stdout
    assert coterie("benchmark", "names", "--name", "bob").stdout == "3\n"
    assert "--mine.loud, --mine.no-loud" in coterie("train", "--env", "solo", "--help-all").stdout
    refused = coterie("train", "--mine.loud", "--steps", "2")
    assert refused.returncode == 2
    assert refused.stderr == "coterie train: --mine.loud is for one step; say --steps 1\n"


@pytest.mark.slow
def test_its_sink_is_given_a_run(coterie, tmp_path: Path) -> None:
    small = ("--rollout.problems-per-step", "2", "--eval.no-enabled", "--transcripts-every", "1")
    done = coterie("train", "--steps", "1", *small, "--run-dir", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("sink")]
    assert lines == ["sink 1 True", "sink 1 2", "sink closed"]
    assert '"mine":' in (tmp_path / "run" / "config.json").read_text()
