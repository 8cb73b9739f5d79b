import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.evaluation.report.__main__ import main

Run = Callable[..., Path]


def test_the_file_goes_into_the_run_or_where_out_says(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run()
    assert main([str(path)]) == 0
    assert str(path / "report.html") in capsys.readouterr().out
    other = tmp_path / "new" / "page.html"
    assert main([str(path), "--out", str(other)]) == 0
    assert "</html>" in other.read_text(encoding="utf-8")


def test_every_flag_reaches_the_page(run: Run) -> None:
    path = run()
    flags = ["--episodes", "3", "--which", "last", "--only", "hurt", "--megabytes", "2"]
    assert main([str(path), *flags]) == 0
    html = (path / "report.html").read_text(encoding="utf-8")
    assert "1 of the run" in html
    assert "the last among those with the tag hurt" in html


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--episodes", "-1"], "--episodes is -1; say how many, 0 or more"),
        (["--megabytes", "0"], "--megabytes is 0.0; say more than 0"),
        (["--only", "good"], "--only good: episodes of this run can be rescued, hurt"),
    ],
)
def test_a_flag_that_makes_no_sense(run: Run, refused: Any, flags: list[str], said: str) -> None:
    assert said in refused(main, run(), *flags)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "there is no directory"),
        (lambda path: path.mkdir(), "is not a run (it has no config.json)"),
        (
            lambda path: (path.mkdir(), (path / "config.json").write_text("[1]")),
            "cannot be read as a JSON object",
        ),
    ],
)
def test_what_is_no_run(
    tmp_path: Path, refused: Any, make: Callable[[Path], None], said: str
) -> None:
    make(tmp_path / "x")
    assert said in refused(main, tmp_path / "x")


def test_a_place_that_cannot_be_written(
    run: Run, refused: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = run()
    words = (path, "--out", path / "config.json" / "x.html")
    said = refused(main, *words)
    assert "x.html would lie in " in said
    assert "config.json, which is a file, not a folder; name another place" in said
    # It turns out in the end: what was to be written is kept.
    monkeypatch.setattr("coterie.evaluation.report.__main__.check_file", lambda *_: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said, _, kept = refused(main, *words).partition("; it is kept as ")
    assert "x.html cannot be written (File exists)" in said
    assert Path(kept).read_text(encoding="utf-8").startswith("<!doctype html>")
