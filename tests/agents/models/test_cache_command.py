"""``coterie cache``: what it lists, what it removes, and what it leaves alone."""

import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from coterie.__main__ import main
from coterie.agents.models.cache import cache_folder, converted_folder, fetched_folder
from coterie.agents.models.gguf import converted
from coterie.agents.models.locate import local_folder
from coterie.agents.models.spec import ModelSpec
from coterie.datatypes import UserError


@pytest.fixture
def filled(small_gguf) -> Path:
    """A cache with one converted checkpoint and one fetched file of 3 MB; returns the GGUF file
    that was converted."""
    path, _ = small_gguf.llama()
    converted(path)
    fetched_folder().mkdir()
    (fetched_folder() / "big.gguf").write_bytes(bytes(3_000_000))
    (fetched_folder() / "big.gguf.lock").touch()
    (fetched_folder() / "mine.txt").write_text("a note of the user's")
    return path


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[str]:
    capsys.readouterr()
    assert main(["cache", *words]) == code
    shown = capsys.readouterr()
    return (shown.err if code else shown.out).splitlines()


def test_an_empty_cache_says_so(monkeypatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert said(capsys) == [f"nothing is cached in {tmp_path / 'coterie'}"]
    assert said(capsys, "--clear") == ["nothing to remove"]
    assert not (tmp_path / "coterie").exists()


def test_what_is_cached_is_listed_with_its_file(filled: Path, capsys) -> None:
    converted_line, fetched_line, total = said(capsys)
    assert converted_line.split()[0] == "converted"
    assert f"  {filled.name}  {converted(filled)}" in converted_line
    assert fetched_line.split() == ["fetched", "3", "MB", "big.gguf", str(_big())]
    assert total == f"total             3 MB in {cache_folder()}"


def test_converted_checkpoints_are_removed_and_made_again(filled: Path, capsys) -> None:
    folder = converted(filled)
    (folder.parent / f"{folder.name}.part").mkdir()
    (folder.parent / f"{folder.name}.part" / "half").write_bytes(b"half")
    assert "(interrupted)" in said(capsys)[1]
    assert said(capsys, "--clear")[-1].endswith(" MB freed")
    assert not [path for path in converted_folder().iterdir() if path.is_dir()]
    assert _big().is_file()
    assert (fetched_folder() / "mine.txt").is_file()
    assert converted(filled) == folder


def test_fetched_files_are_removed_when_they_are_named(filled: Path, capsys) -> None:
    left = fetched_folder() / "other.gguf.packages" / "one==1.0"
    left.mkdir(parents=True)
    (left / "one.whl").write_bytes(bytes(2_000_000))
    assert said(capsys, "--clear", "fetched") == [
        "removed other.gguf: 2 MB",
        "removed big.gguf: 3 MB",
        "5 MB freed",
    ]
    assert converted(filled).is_dir()
    assert not _big().exists()
    assert (fetched_folder() / "mine.txt").is_file()
    said(capsys, "--clear", "all")
    assert said(capsys) == [f"nothing is cached in {cache_folder()}"]


def test_what_another_process_writes_is_left_alone(filled: Path, capsys) -> None:
    folder = converted(filled)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        (sentence,) = said(capsys, "--clear", "all", code=2)
    assert sentence.startswith(f"coterie cache: {folder} is being written by another process; ")
    assert (folder / "config.json").is_file()


def test_an_adapters_base_that_was_cleared_is_explained(filled: Path) -> None:
    folder = converted(filled)
    shutil.rmtree(folder)
    with pytest.raises(UserError, match=r"was converted from a GGUF file and is no longer in the"):
        local_folder(ModelSpec(str(folder)))


def _big() -> Path:
    return fetched_folder() / "big.gguf"
