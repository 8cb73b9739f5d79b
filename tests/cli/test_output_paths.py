"""Where something is to be written is tried before the work begins."""

import tempfile
from pathlib import Path

import pytest

from coterie.cli.output_paths import check_file, check_folder, keep
from coterie.datatypes import UserError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder" / "results.json").mkdir(parents=True)
    (tmp_path / "folder" / "responses").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    return tmp_path


@pytest.mark.parametrize("name", ["folder", "new", "new/and/deep", "folder/results.json/deep"])
def test_folders_that_can_be(place: Path, name: str) -> None:
    before = sorted(place.rglob("*"))
    check_folder(place / name, "--out")
    assert sorted(place.rglob("*")) == before  # nothing is left of the trial


@pytest.mark.parametrize("name", ["file", "new.json", "new/and/deep.json", "folder/new.json"])
def test_files_that_can_be(place: Path, name: str) -> None:
    check_file(place / name, "--out")
    assert (place / "file").read_text() == "x"


@pytest.mark.parametrize(
    ("check", "name", "sentence"),
    [
        (check_folder, "file", "file is a file, not a folder; name another place"),
        (check_folder, "file/deep", "file, which is a file, not a folder; name another place"),
        (check_folder, "link", "link is a link to nothing, not a folder"),
        (check_folder, "/dev/null", "/dev/null is a device or the like, not a folder"),
        (check_folder, "/proc/nope/x", "/proc is not writable"),
        (check_file, "folder", "folder is a folder, not a file; name another place"),
        (check_file, "", " is a folder, not a file"),
        (check_file, "link", "link is a link to nothing, not a file"),
        (check_file, "/dev/null", "/dev/null is a device or the like, not a file"),
        (check_file, "/proc/nope/x.json", "/proc is not writable (No such file or directory)"),
    ],
)
def test_what_cannot_be_written(place: Path, check: object, name: str, sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        check(place / name, "--out")  # type: ignore[operator]
    assert sentence in str(refused.value)


def test_what_will_be_written_into_a_folder_is_looked_at_too(place: Path) -> None:
    with pytest.raises(UserError, match=r"--out: .*results.json is a folder, not a file"):
        check_folder(place / "folder", "--out", files=["results.json"])
    with pytest.raises(UserError, match=r"--out: .*responses is a file, not a folder"):
        check_folder(place / "folder", "--out", folders=["responses"])


def test_content_that_could_not_be_written_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (path,) = (keep("a.json", "{é\ud800}").removeprefix("it is kept as "),)
    assert Path(path).read_text(encoding="utf-8", errors="surrogatepass") == "{é\ud800}"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert keep("a.json", "x") == f"nor can {tmp_path / 'gone'}, so it is lost"
