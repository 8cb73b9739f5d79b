"""What the composition root builds, and what it leaves out."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = """
import sys
from pathlib import Path
from coterie.cli.command_line import parse
from coterie.training.config.preflight import preflight
from coterie.training.session import open_session

small = ["--steps", "1", "--rollout.problems-per-step", "2", "--eval.no-enabled"]
settings = parse([*small, "--run-dir", sys.argv[1]])
with open_session(settings, preflight(settings)) as session:
    session.sample(1)
print(*sorted(name for name in sys.modules if name.startswith("coterie.extras.cluster.")))
"""


@pytest.mark.slow
def test_a_run_on_a_laptop_builds_nothing_of_a_cluster(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "run")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    # Its settings, what refuses them, and what would build it.
    parts = {"checks", "host", "room", "settings"}
    assert set(done.stdout.split()) <= {f"coterie.extras.cluster.{part}" for part in parts}
