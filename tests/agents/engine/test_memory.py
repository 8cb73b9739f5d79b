"""Where weights wait for an engine."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import agents.engine.processes
from agents.engine.processes import memory_folder


@pytest.mark.parametrize(("free", "roomy"), [(2000, True), (500, False)])
def test_a_small_memory_file_system_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, roomy: bool
) -> None:
    """Containers often have 64 MiB of it."""
    memory, disk = tmp_path / "shm", tmp_path / "tmp"
    memory.mkdir()
    disk.mkdir()
    really = Path
    monkeypatch.setattr(
        agents.engine.processes, "Path", lambda p: memory if p == "/dev/shm" else really(p)
    )
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    monkeypatch.setattr(
        shutil, "disk_usage", lambda p: SimpleNamespace(free=free if p == memory else 10**9)
    )
    abandoned = disk / "coterie-999999999-x"
    abandoned.mkdir()
    assert memory_folder(1000).parent == (memory if roomy else disk)
    assert not abandoned.exists()
