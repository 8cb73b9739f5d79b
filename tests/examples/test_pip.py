"""``pip install ./examples/third_party``: built as its project says, found by its entry point."""

import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from coterie import envs
from coterie.train import main

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "third_party"
# No network: what its project file asks for to build it must be here.
PIP = (
    *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
    *("--no-index", "--no-deps", "--no-build-isolation"),
)


def builds_here() -> bool:
    try:
        return bool(version("pip")) and int(version("setuptools").partition(".")[0]) >= 77
    except PackageNotFoundError:
        return False


@pytest.mark.skipif(not builds_here(), reason="no pip or no setuptools 77 in this environment")
def test_the_installed_package_trains_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A build writes beside its sources.
    source, site, run = (tmp_path / name for name in ("source", "site", "run"))
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    command = [*PIP, "--target", str(site), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    assert "nim" not in envs.names()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "nim_in_words", raising=False)
    assert "nim" in envs.names()
    flags = ("--steps", "2", "--rollout.problems-per-step", "2", "--problems.held-out", "2")
    team = ("--agents.player.model", "tiny:alice")
    assert main(["--env", "nim", *team, *flags, "--run-dir", str(run)]) == 0
    assert Path(sys.modules["nim_in_words"].__file__ or "").parent == site
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 2
    monkeypatch.delitem(sys.modules, "nim_in_words")
