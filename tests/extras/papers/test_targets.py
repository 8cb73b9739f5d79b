"""The papers' comparisons, too, try where they are to write before they ask or read anything."""

from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark
from coterie.comparison import ask
from coterie.extras.papers import distill, sweep


@pytest.mark.parametrize(
    "command", ["corea --base tiny:small", "eapo --base tiny:policy", "distill", "sweep core-1"]
)
def test_a_target_that_cannot_be_is_refused_in_one_line(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("work has begun")

    monkeypatch.setattr(ask, "sample", never)
    monkeypatch.setattr(distill, "build_team", never)
    monkeypatch.setattr(sweep.SweepCommand, "run", never)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for target in ("file", "file/deep", "/proc/nope", "/dev/null", "link"):
        assert benchmark.main([*command.split(), "--out", str(tmp_path / target)]) == 2
        said = capsys.readouterr().err
        assert "--out" in said
        assert "name another" in said
        assert said.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"
