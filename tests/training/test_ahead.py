"""``--resume`` with fewer steps than a run has done is refused before anything is started."""

import subprocess
import sys
from pathlib import Path

import pytest

from coterie import train
from coterie.training.command_line import parse
from coterie.training.rundir import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """As a run that was stopped at step 12 leaves it; nothing else of it is looked at."""
    path = tmp_path / "run"
    RunDirectory.create(path, parse(["--steps", "20"]).plain()).close()
    for step in (9, 12):
        (path / "checkpoints" / f"step-{step:06d}").mkdir(parents=True)
    (path / "checkpoints" / ".step-000015.part").mkdir()
    return path


def test_it_says_where_the_run_stands(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["--resume", str(run), "--steps", "3"]) == 2
    sentence = f"train.py: {run} is at step 12; --steps must be at least that\n"
    assert capsys.readouterr().err == sentence
    assert parse(["--resume", str(run), "--steps", "12"]).run.steps == 12


def test_torch_is_not_imported_for_it(run: Path) -> None:
    code = (
        "import sys; from coterie import train; "
        f"assert train.main(['--resume', {str(run)!r}, '--steps', '3']) == 2; "
        "print('torch' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.split() == ["False"]
